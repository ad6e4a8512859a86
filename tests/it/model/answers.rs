//! Answers as endpoints really send them.

use perihelion::llm::scripted::Reply;
use perihelion::llm::{Error, ToolCall, Usage};
use serde_json::json;

use super::answer_to;

#[tokio::test]
async fn answers_that_cannot_be_read_are_errors_that_show_them() {
    for (body, shown) in [
        ("<html>hello</html>", "<html>hello</html>"),
        ("", "it is empty"),
        ("{\"choices\":[]}", "its `choices` are empty"),
        ("{\"choices\":[{\"text\":\"x\"}]}", "has no `message`"),
        ("{\"object\":\"list\"}", "no `choices`"),
        ("[1]", "no `choices`"),
        ("{\"choices\":[{\"message\":{\"content\":\"cut", "it is not JSON"),
    ] {
        let error = answer_to(Reply::raw(body)).await.unwrap_err();
        assert!(matches!(error, Error::Malformed { .. }), "{error}");
        assert!(error.to_string().contains(shown), "{error}");
    }
}

#[tokio::test]
async fn answers_with_missing_or_odd_fields_are_read() {
    let answer =
        answer_to(Reply::raw(r#"{"choices":[{"message":{"content":"bare"}}]}"#)).await.unwrap();
    assert_eq!((answer.content.as_str(), answer.model.as_str()), ("bare", "big"));
    assert_eq!(answer.usage, Usage::default());

    let odd = json!({
        "model": "m", "service_tier": "odd", "usage": { "input_tokens": 3.0, "output_tokens": 4 },
        "choices": [{ "finish_reason": "eos", "message": {
            "content": [{ "type": "text", "text": "a" }, { "type": "text", "text": "b" }],
            "reasoning_content": "hm",
            "tool_calls": [
                { "function": { "name": "x", "arguments": { "a": 1 } } },
                { "id": "same", "function": { "name": "x", "arguments": "{\"a\":2}" } },
                { "id": "same", "function": { "name": "x", "arguments": "not json" } },
                { "id": "last", "function": { "name": "x" } },
            ],
        } }],
    });
    let answer = answer_to(Reply::raw(odd.to_string())).await.unwrap();
    assert_eq!((answer.content.as_str(), answer.reasoning.as_deref()), ("ab", Some("hm")));
    assert_eq!(answer.finish_reason.as_deref(), Some("eos"));
    assert_eq!(answer.usage, Usage { input_tokens: 3, output_tokens: 4, cached_tokens: 0 });
    let call = |id: &str, arguments| ToolCall { id: id.into(), name: "x".into(), arguments };
    assert_eq!(
        answer.tool_calls,
        [
            call("call_0", json!({ "a": 1 })),
            call("same", json!({ "a": 2 })),
            call("call_2", json!("not json")),
            call("last", json!({})),
        ]
    );
}

#[tokio::test]
async fn an_error_inside_a_good_status_is_an_error() {
    let body = r#"{"error":{"message":"no credits left","code":402}}"#;
    let error = answer_to(Reply::raw(body)).await.unwrap_err().to_string();
    assert!(error.ends_with("status 402: no credits left"), "{error}");
}
