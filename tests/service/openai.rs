//! OpenAI's faces as their clients use them: conversations that are sent whole, responses that are cancelled (X8).

use serde_json::{Value, json};

use super::on_both;
use super::served::Served;

on_both!(
    a_conversation_that_is_sent_whole_begins_its_thread,
    a_response_reads_as_cancelled_only_if_it_was,
);

/// X8
async fn a_conversation_that_is_sent_whole_begins_its_thread(served: Served) {
    let text = json!([
        { "role": "developer", "content": "Answer in French." },
        { "role": "user", "content": "Who wrote Faust?" },
        { "role": "assistant", "content": "Goethe." },
        { "role": "user", "content": "And when?" },
    ]);
    let mut items = text.clone();
    items[2] = json!({
        "type": "message", "role": "assistant", "content": [{ "type": "output_text", "text": "Goethe." }],
    });
    // What other models think and call says nothing here.
    items.as_array_mut().unwrap().insert(3, json!({ "type": "reasoning", "summary": [] }));
    let responses = json!({ "model": "swarm", "instructions": "Be brief.", "input": items });
    let chat = json!({ "model": "swarm", "messages": text });
    for (path, body, instructions) in [
        ("/v1/responses", responses, "Be brief.\n\nAnswer in French."),
        ("/v1/chat/completions", chat, "Answer in French."),
    ] {
        let before = served.model.requests().len();
        let (code, answer) = served.post(path, &body).await;
        assert_eq!(code, 200, "{answer}");
        let thread = answer["metadata"]["thread_id"].as_str().unwrap();
        let (_, state) = served.get(&format!("/threads/{thread}/state")).await;
        let values = &state["values"];
        assert_eq!(values["preferences"]["system_prompt"], instructions, "{path}");
        assert_eq!(values["input_request"], "And when?", "{path}");
        let texts: Vec<&Value> =
            values["messages"].as_array().unwrap().iter().map(|one| &one["content"]).collect();
        let wanted = ["Who wrote Faust?", "Goethe.", "And when?", "Hello from the star."];
        assert_eq!(texts, wanted, "{path}");
        let asked = &served.model.requests()[before..];
        assert!(
            asked.iter().any(|one| one.contains("Goethe.")),
            "{path}: the model was not shown it"
        );
    }
}

/// X8
async fn a_response_reads_as_cancelled_only_if_it_was(served: Served) {
    let create = |input: &str| json!({ "model": "swarm", "input": input, "background": true });
    let place = |response: &Value| format!("/v1/responses/{}", response["id"].as_str().unwrap());
    let (_, done) = served.post("/v1/responses", &create("hello")).await;
    let is_done = |shown: &Value| shown["status"] == "completed";
    let done = served.until_got(&place(&done), is_done).await;
    let (code, late) = served.post(&format!("{}/cancel", place(&done)), &json!({})).await;
    assert_eq!((code, &late), (200, &done));
    assert_eq!(late["output"][0]["content"][0]["text"], "Hello from the star.");

    let before = served.model.requests().len();
    let (_, hangs) = served.post("/v1/responses", &create("hang")).await;
    served.model.wait_for_requests(before + 1).await;
    let (code, cancelled) = served.post(&format!("{}/cancel", place(&hangs)), &json!({})).await;
    assert_eq!((code, &cancelled["status"]), (200, &json!("cancelled")), "{cancelled}");
    let (_, read) = served.get(&place(&hangs)).await;
    assert_eq!(read, cancelled);
    assert_eq!((&read["error"], &read["output"]), (&Value::Null, &json!([])));
}
