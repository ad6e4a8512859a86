//! Images and files over each wire: whole where the model takes them, by name where it does not.

use std::sync::Arc;

use perihelion::llm::scripted::{Reply, Rule, Script};
use perihelion::llm::{Attached, ChatModel, ChatRequest, Role};
use serde_json::{Value, json};

use super::{model_at, request, serve};
use crate::support::gateway::Gateway;

fn carrying() -> ChatRequest {
    let one = |name: &str, media_type: &str, data: &str| Attached {
        artifact: format!("attached/1/{name}"),
        name: name.into(),
        media_type: media_type.into(),
        bytes: 3,
        data: Some(Arc::from(data)),
    };
    let mut request = request(Role::Agent);
    request.messages[1].attached = vec![
        one("a.png", "image/png", "cG5n"),
        one("plan.pdf", "application/pdf", "cGRm"),
        one("x.csv", "text/csv", "a,b"),
    ];
    request
}

/// Sends a message with attachments over a wire, and returns the user's turn as it was sent.
async fn sent(api: &str, input: &str) -> Value {
    let server = serve(Script::new().rule(Rule::new(Reply::text("Seen.")))).await;
    let gateway = Gateway::before(server.url()).await;
    let env = [("PERIHELION_MODELS_API", api), ("PERIHELION_MODELS_INPUT", input)];
    let answer = model_at(&gateway.url(api), &env).chat(&carrying(), None).await.unwrap();
    assert_eq!(answer.content, "Seen.", "{api}");
    let asked = server.requests().remove(0);
    server.stop().await;
    match api {
        "chat_completions" => asked.body["messages"][1]["content"].clone(),
        "anthropic" => gateway.sent()[0]["messages"][0]["content"].clone(),
        _ => gateway.sent()[0]["contents"][0]["parts"].clone(),
    }
}

/// S1.02
#[tokio::test]
async fn images_and_files_are_sent_in_the_form_of_each_wire() {
    let words = sent("chat_completions", "text,image,pdf").await;
    assert_eq!(words[1]["image_url"]["url"], "data:image/png;base64,cG5n");
    let file = json!({ "filename": "plan.pdf", "file_data": "data:application/pdf;base64,cGRm" });
    assert_eq!(words[2], json!({ "type": "file", "file": file }));
    let text = words[0]["text"].as_str().unwrap();
    assert!(text.starts_with("Hello\n\nattached: a.png, image/png, 3 bytes"), "{text}");
    assert!(text.contains("<attached>\na,b\n</attached>"), "{text}");

    let words = sent("anthropic", "text,image,pdf").await;
    let source = json!({ "type": "base64", "media_type": "image/png", "data": "cG5n" });
    assert_eq!(words[1], json!({ "type": "image", "source": source }));
    assert_eq!((&words[2]["type"], &words[2]["title"]), (&json!("document"), &json!("plan.pdf")));
    assert_eq!(words[2]["source"]["data"], "cGRm");

    let words = sent("gemini", "text,image,pdf").await;
    let data = json!({ "mimeType": "image/png", "data": "cG5n" });
    assert_eq!(words[1], json!({ "inlineData": data }));
    assert_eq!(words[2]["inlineData"]["mimeType"], "application/pdf");
}

/// S1.02
#[tokio::test]
async fn a_model_without_file_input_receives_the_names_of_files() {
    for api in ["chat_completions", "anthropic", "gemini"] {
        for (input, images) in [("text", false), ("text,image", true)] {
            let words = sent(api, input).await.to_string();
            assert!(
                words.contains("attached: plan.pdf, 3 bytes; this model takes no files"),
                "{words}"
            );
            assert_eq!(words.contains("cG5n"), images, "{api}: {words}");
            assert!(!words.contains("cGRm"), "{api}: {words}");
        }
    }
}
