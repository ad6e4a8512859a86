//! Requests fitted into windows, and tokens that providers keep.

use perihelion::llm::scripted::{Reply, Rule, Script};
use perihelion::llm::{ChatMessage, ChatModel, Role, Usage};

use super::{model_at, request, serve};

/// S1.06: a model whose window nobody named says so, and is asked once more with less.
#[tokio::test]
async fn a_request_that_is_refused_as_too_long_is_shortened_once() {
    let refusal = "This model's maximum context length is 8192 tokens.";
    let script = Script::new()
        .rule(Rule::new(Reply::status(400, refusal)).times(1))
        .rule(Rule::new(Reply::text("So be it.")));
    let server = serve(script).await;
    let mut long = request(Role::Agent);
    let material =
        format!("<task>\nfind it\n</task>\n<output>\n{}\n</output>", "word ".repeat(9_000));
    long.messages[1] = ChatMessage::user(material);
    let model = model_at(server.url(), &[("PERIHELION_MODELS_MAX_RETRIES", "0")]);
    assert_eq!(model.chat(&long, None).await.unwrap().content, "So be it.");
    let requests = server.requests();
    let [first, second] = requests.as_slice() else { panic!("{requests:#?}") };
    assert!(second.last_text().len() < first.last_text().len() / 2 + 1_000);
    for words in ["find it", "characters are left out here)"] {
        assert!(second.contains(words), "{words}: {}", second.last_text());
    }

    let script = Script::new().rule(Rule::new(Reply::status(400, refusal)));
    let server = serve(script).await;
    let model = model_at(server.url(), &[("PERIHELION_MODELS_MAX_RETRIES", "0")]);
    assert!(model.chat(&long, None).await.unwrap_err().to_string().contains("maximum context"));
    assert_eq!(server.requests().len(), 2, "once, not for ever");
}

/// S2.05: what a provider kept is counted over each wire, whole and streamed.
#[tokio::test]
async fn cached_tokens_are_counted_with_each_api() {
    for api in ["chat_completions", "anthropic", "gemini"] {
        let server =
            serve(Script::new().rule(Rule::new(Reply::text("Yes.").usage(100, 5).cached(80))))
                .await;
        let url = if api == "gemini" { server.gemini_url() } else { server.url().to_owned() };
        let model = model_at(&url, &[("PERIHELION_MODELS_API", api)]);
        let expected = Usage { input_tokens: 100, output_tokens: 5, cached_tokens: 80 };
        assert_eq!(model.chat(&request(Role::Agent), None).await.unwrap().usage, expected, "{api}");
        let mut heard = |_: &str| {};
        let streamed = model.chat(&request(Role::Qa), Some(&mut heard)).await.unwrap();
        assert_eq!(streamed.usage, expected, "{api}, streamed");
    }
}
