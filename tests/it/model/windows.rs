//! Requests fitted into windows, and tokens that providers keep.

use perihelion::llm::scripted::{Reply, Rule, Script};
use perihelion::llm::{Attached, ChatMessage, ChatModel, Role, Usage};

use super::{model_at, request, serve};
use crate::support::gateway::Gateway;

/// S1.06: a model whose window nobody named says so, and is asked once more with less.
#[tokio::test]
async fn a_request_that_is_refused_as_too_long_is_shortened_once() {
    let refusal = "This model's maximum context length is 8192 tokens.";
    let mut long = request(Role::Agent);
    let material =
        format!("<task>\nfind it\n</task>\n<output>\n{}\n</output>", "word ".repeat(9_000));
    long.messages[1] = ChatMessage::user(material);
    for (status, refusal) in [
        (400, refusal),
        // llama.cpp, before an answer and within one.
        (
            400,
            "request (6031 tokens) exceeds the available context size (4096 tokens), try increasing it",
        ),
        (500, "Context size has been exceeded."),
        // Ollama.
        (400, "prompt too long; exceeded max context length by 1935 tokens"),
        // vLLM, and a gateway in front of it.
        (
            400,
            "The decoder prompt (length 6031) is longer than the maximum model length of 4096. Make sure that \
               `max_model_len` is no smaller than the number of text tokens.",
        ),
        (500, "The decoder prompt (length 6031) is longer than the maximum model length of 4096."),
        // LM Studio.
        (
            400,
            "Trying to keep the first 6031 tokens when context the overflows. However, the model is loaded with \
               context length of only 4096 tokens, which is not enough.",
        ),
    ] {
        let script = Script::new()
            .rule(Rule::new(Reply::status(status, refusal)).times(1))
            .rule(Rule::new(Reply::text("So be it.")));
        let server = serve(script).await;
        let model = model_at(server.url(), &[("PERIHELION_MODELS_MAX_RETRIES", "0")]);
        assert_eq!(model.chat(&long, None).await.unwrap().content, "So be it.", "{refusal}");
        let requests = server.requests();
        let [first, second] = requests.as_slice() else { panic!("{requests:#?}") };
        assert!(second.last_text().len() < first.last_text().len() / 2 + 1_000);
        for words in ["find it", "characters are left out here)"] {
            assert!(second.contains(words), "{words}: {}", second.last_text());
        }
    }

    let script = Script::new().rule(Rule::new(Reply::status(400, refusal)));
    let server = serve(script).await;
    let model = model_at(server.url(), &[("PERIHELION_MODELS_MAX_RETRIES", "0")]);
    assert!(model.chat(&long, None).await.unwrap_err().to_string().contains("maximum context"));
    assert_eq!(server.requests().len(), 2, "once, not for ever");
}

/// S1.06: the texts of attachments are counted and cut like other material, and the task stays.
#[tokio::test]
async fn attached_texts_are_fitted_into_the_window_with_their_request() {
    let server = serve(Script::new().rule(Rule::new(Reply::text("Seen.")))).await;
    let model = model_at(server.url(), &[("PERIHELION_MODELS_CONTEXT_WINDOW", "8192")]);
    let mut asked = request(Role::Agent);
    asked.messages[1] = ChatMessage::user("<task>\nfind it\n</task>");
    let file = |name: &str| Attached {
        artifact: format!("attached/1/{name}"),
        name: name.into(),
        media_type: "text/plain".into(),
        bytes: 8_000,
        data: Some("word ".repeat(1_600).into()),
    };
    asked.messages[1].attached = vec![file("a.txt"), file("b.txt"), file("c.txt")];
    model.chat(&asked, None).await.unwrap();
    let sent = server.requests().remove(0);
    let text = sent.last_text();
    assert!(text.len() < 22_000, "{}", text.len());
    for words in ["find it", "characters are left out here)", "artifact attached/1/c.txt"] {
        assert!(text.contains(words), "{words}: {text}");
    }
    server.stop().await;
}

/// S2.05: what a provider kept is counted over each wire, whole and streamed.
#[tokio::test]
async fn cached_tokens_are_counted_with_each_api() {
    for api in ["chat_completions", "anthropic", "gemini"] {
        let server =
            serve(Script::new().rule(Rule::new(Reply::text("Yes.").usage(100, 5).cached(80))))
                .await;
        let gateway = Gateway::before(server.url()).await;
        let model = model_at(&gateway.url(api), &[("PERIHELION_MODELS_API", api)]);
        let expected =
            Usage { input_tokens: 100, output_tokens: 5, cached_tokens: 80, ..Usage::default() };
        assert_eq!(model.chat(&request(Role::Agent), None).await.unwrap().usage, expected, "{api}");
        let mut heard = |_: &str| {};
        let streamed = model.chat(&request(Role::Qa), Some(&mut heard)).await.unwrap();
        assert_eq!(streamed.usage, expected, "{api}, streamed");
    }
}
