//! Images and files in messages, as clients of each face send them.

use serde_json::json;

use crate::served::Served;

/// S2.01
#[tokio::test]
async fn attachments_of_a_message_are_stored_shown_to_the_model_and_returned() {
    for served in [Served::sqlite().await, Served::postgres().await] {
        let served = served.again_with(&[("PERIHELION_MODELS_INPUT", "text,image,pdf")]).await;
        let thread = served.thread().await;
        let content = json!([
            { "type": "text", "text": "hello" },
            { "type": "image_url", "image_url": { "url": "data:image/png;base64,cG5n" } },
            { "type": "file", "source_type": "base64", "mime_type": "application/pdf", "data": "cGRm",
              "metadata": { "name": "plan.pdf" } },
        ]);
        let input = json!({ "messages": [{ "type": "human", "content": content }] });
        let body = json!({ "assistant_id": "swarm", "input": input });
        let (code, state) = served.post(&format!("/threads/{thread}/runs/wait"), &body).await;
        assert_eq!(code, 200, "{state}");
        let sent = served
            .model
            .requests()
            .iter()
            .filter(|one| {
                let text = one.body.to_string();
                text.contains("data:image/png;base64,cG5n")
                    && text.contains("data:application/pdf;base64,cGRm")
            })
            .count();
        assert!(sent >= 2, "the supervisor and the answer's author see it: {sent}");
        let attached = &state["messages"][0]["additional_kwargs"]["attachments"];
        assert_eq!(attached[1]["name"], "plan.pdf", "{state}");
        assert!(!state.to_string().contains("cGRm"), "{state}");
        let key = attached[1]["artifact"].as_str().unwrap();
        let (code, kept) = served.get(&format!("/v1/threads/{thread}/artifacts/{key}")).await;
        assert_eq!(
            (code, &kept["content"], &kept["encoding"]),
            (200, &json!("cGRm"), &json!("base64"))
        );
        assert_eq!(kept["media_type"], "application/pdf");
    }
}

/// S2.01, X8
#[tokio::test]
async fn the_openai_apis_accept_images_and_refuse_remote_addresses() {
    let served = Served::sqlite().await;
    let served = served.again_with(&[("PERIHELION_MODELS_INPUT", "text,image")]).await;
    let url = "data:image/png;base64,cG5n";
    let chat = json!({ "model": "swarm", "messages": [{ "role": "user", "content": [
        { "type": "text", "text": "hello" }, { "type": "image_url", "image_url": { "url": url } },
    ] }] });
    let responses = json!({ "model": "swarm", "input": [{ "role": "user", "content": [
        { "type": "input_text", "text": "hello" }, { "type": "input_image", "image_url": url },
    ] }] });
    for (path, body) in [("/v1/chat/completions", chat), ("/v1/responses", responses)] {
        let before = served.model.requests().len();
        let (code, answer) = served.post(path, &body).await;
        assert_eq!(code, 200, "{answer}");
        let requests = served.model.requests();
        assert!(requests[before..].iter().all(|one| one.body.to_string().contains(url)), "{path}");
    }
    let elsewhere = json!({ "model": "swarm", "messages": [{ "role": "user", "content": [
        { "type": "text", "text": "hello" },
        { "type": "image_url", "image_url": { "url": "https://example.org/a.png" } },
    ] }] });
    let (code, why) = served.post("/v1/chat/completions", &elsewhere).await;
    assert_eq!(code, 400, "{why}");
    assert!(why.to_string().contains("send the bytes in base64"), "{why}");
}
