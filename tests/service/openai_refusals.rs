//! What OpenAI's APIs refuse: by the parameter's name and a code, in one form on every path (X8).

use futures::{SinkExt as _, StreamExt as _};
use reqwest::Method;
use serde_json::{Value, json};
use tokio_tungstenite::tungstenite::Message;

use super::on_both;
use super::people::ask;
use super::protocol::is_lifecycle;
use super::served::Served;

on_both!(
    a_parameter_without_an_effect_is_refused_by_its_name,
    every_refusal_has_a_message_a_type_and_a_code,
    a_model_that_fails_is_named_without_its_address,
    a_refused_request_of_any_api_leaves_no_thread,
    messages_without_an_effect_are_refused_by_name,
);

/// X8
async fn a_parameter_without_an_effect_is_refused_by_its_name(served: Served) {
    let tool = json!([{ "type": "function", "function": { "name": "f" }, "name": "f" }]);
    for (name, value, code) in [
        ("tools", tool, "unsupported_parameter"),
        ("stop", json!(["\n"]), "unsupported_parameter"),
        ("max_tokens", json!(16), "unsupported_parameter"),
        ("max_output_tokens", json!(16), "unsupported_parameter"),
        ("temperature", json!(0), "unsupported_value"),
        ("logprobs", json!(true), "unsupported_value"),
        ("n", json!(2), "unsupported_value"),
        ("colour", json!("red"), "unknown_parameter"),
    ] {
        for (path, mut body) in [
            ("/v1/responses", json!({ "model": "swarm", "input": "hello" })),
            (
                "/v1/chat/completions",
                json!({ "model": "swarm", "messages": [{ "role": "user", "content": "hello" }] }),
            ),
        ] {
            body[name] = value.clone();
            let (status, why) = served.post(path, &body).await;
            let error = &why["error"];
            assert_eq!((status, &error["param"]), (400, &json!(name)), "{path}: {why}");
            assert_eq!(error["code"], code, "{path}: {why}");
        }
    }
    assert!(served.model.requests().is_empty(), "nothing was begun");
    let usual = json!({
        "model": "swarm", "input": "hello", "temperature": 1, "top_p": 1.0, "tools": [], "user": "u1", "stop": null,
        "tool_choice": "auto", "truncation": "disabled", "text": { "format": { "type": "text" } },
    });
    let (status, answer) = served.post("/v1/responses", &usual).await;
    assert_eq!((status, &answer["status"]), (200, &json!("completed")), "{answer}");
}

/// X8
async fn every_refusal_has_a_message_a_type_and_a_code(served: Served) {
    let none = "/v1/responses/resp_0197a00000007000800000000000000a";
    let chat = json!({ "model": "none", "messages": [{ "role": "user", "content": "hello" }] });
    let format = json!({ "type": "json_schema", "name": "a b", "schema": { "type": "object" } });
    let named = json!({ "model": "swarm", "input": "hello", "text": { "format": format } });
    for (method, path, body, status, param, code) in [
        (Method::GET, "/v1/embeddings", json!({}), 404, Value::Null, "unknown_url"),
        (Method::GET, "/v1/models/none", json!({}), 404, json!("model"), "model_not_found"),
        (Method::POST, "/v1/chat/completions", chat, 404, json!("model"), "model_not_found"),
        (Method::GET, none, json!({}), 404, Value::Null, "not_found"),
        (Method::DELETE, none, json!({}), 404, Value::Null, "not_found"),
        (Method::PUT, "/v1/responses", json!({}), 405, Value::Null, "method_not_supported"),
        (
            Method::POST,
            "/v1/responses",
            json!({}),
            400,
            json!("input"),
            "missing_required_parameter",
        ),
        (
            Method::POST,
            "/v1/responses",
            json!({ "stream": 7 }),
            400,
            json!("stream"),
            "invalid_type",
        ),
        (Method::POST, "/v1/responses", named, 400, json!("text.format.name"), "invalid_value"),
        (Method::GET, "/v1/agents/none", json!({}), 404, Value::Null, "not_found"),
    ] {
        let (found, why) = served.send(method.clone(), path, &body).await;
        let error = &why["error"];
        assert_eq!(found, status, "{method} {path}: {why}");
        assert!(error["message"].as_str().is_some_and(|text| !text.is_empty()), "{path}: {why}");
        assert_eq!(error["type"], "invalid_request_error", "{path}: {why}");
        assert_eq!((&error["param"], &error["code"]), (&param, &json!(code)), "{path}: {why}");
    }
    let (_, why) = served.get("/v1/agents/none").await;
    assert!(why["detail"].is_string(), "our own routes keep their form: {why}");
    let served = Served::with_token("a-token-of-many-letters").await;
    for path in ["/v1/models", "/v1/responses/x", "/v1/agents"] {
        let (status, why) = ask(&served, "GET", path, &[], None).await;
        assert_eq!((status, &why["error"]["code"]), (401, &json!("invalid_api_key")), "{why}");
    }
}

/// X8
async fn a_model_that_fails_is_named_without_its_address(served: Served) {
    let served = served
        .again_with(&[
            ("OPENAI_BASE_URL", "http://127.0.0.1:9/v1"),
            ("PERIHELION_MODELS_MAX_RETRIES", "0"),
        ])
        .await;
    let chat = json!({ "model": "swarm", "messages": [{ "role": "user", "content": "hello" }] });
    let (_, answer) = served.post("/v1/chat/completions", &chat).await;
    let (_, response) =
        served.post("/v1/responses", &json!({ "model": "swarm", "input": "hello" })).await;
    let message = json!({ "messageId": "m", "role": "ROLE_USER", "parts": [{ "text": "hello" }] });
    let (_, task) = served.post("/a2a/message:send", &json!({ "message": message })).await;
    let tool = served.tool("swarm", json!({ "question": "hello", "trace": true })).await;
    let thread = served.thread().await;
    let run = json!({ "assistant_id": "swarm", "input": { "messages": [{ "role": "user", "content": "hello" }] } });
    let modes = json!(["values", "updates", "messages", "events", "debug", "tasks", "checkpoints"]);
    let streamed = json!({ "stream_mode": modes, "assistant_id": "swarm", "input": run["input"] });
    let (_, waited) = served.post(&format!("/threads/{thread}/runs/wait"), &run).await;
    let mut shown =
        vec![answer.to_string(), response.to_string(), task.to_string(), tool.to_string()];
    shown.push(waited.to_string());
    let answer_of = |path: String, body: Value| {
        let asked = served.http.post(format!("{}{path}", served.url)).json(&body);
        async move { asked.send().await.unwrap().text().await.unwrap() }
    };
    let task = task["task"]["id"].as_str().unwrap();
    let named = json!({ "jsonrpc": "2.0", "id": 1, "method": "GetTask", "params": { "id": task } });
    for (path, body) in [
        (format!("/threads/{thread}/runs/stream"), streamed.clone()),
        ("/runs/stream".to_owned(), streamed),
        ("/v1/responses".to_owned(), json!({ "model": "swarm", "input": "hello", "stream": true })),
        ("/a2a/message:stream".to_owned(), json!({ "message": message })),
        ("/a2a".to_owned(), named),
        ("/threads/search".to_owned(), json!({})),
        (format!("/threads/{thread}/history"), json!({})),
    ] {
        shown.push(answer_of(path, body).await);
    }
    for path in [
        format!("/threads/{thread}"),
        format!("/threads/{thread}/state"),
        format!("/threads/{thread}/history"),
        format!("/threads/{thread}/runs"),
        format!("/a2a/tasks/{task}"),
        "/a2a/tasks?includeArtifacts=true".to_owned(),
        "/v1/fleet".to_owned(),
        format!("/v1/threads/{thread}/report"),
        format!("/v1/threads/{thread}/trace"),
        format!("/v1/threads/{thread}/trace/page"),
        format!("/v1/threads/{thread}/replay"),
        format!("/v1/responses/{}", response["id"].as_str().unwrap_or("none")),
    ] {
        let got = served.http.get(format!("{}{path}", served.url)).send().await.unwrap();
        let text = got.text().await.unwrap();
        assert!(!text.contains("127.0.0.1:9/"), "{path}: {text}");
    }
    for (place, text) in shown.iter().enumerate() {
        assert!(place > 4 || text.contains("model"), "it says what failed: {text}");
        assert!(!text.contains("127.0.0.1:9/"), "{text}");
    }
    let url = format!("{}/threads/{thread}/stream/events", served.url.replace("http", "ws"));
    let (mut socket, _) = tokio_tungstenite::connect_async(url).await.unwrap();
    let channels = json!({ "channels": ["lifecycle", "values", "updates", "messages", "tasks"] });
    for (method, params) in [("subscription.subscribe", channels), ("run.start", run.clone())] {
        let command = json!({ "id": 1, "method": method, "params": params });
        socket.send(Message::text(command.to_string())).await.unwrap();
    }
    let mut frames = String::new();
    while let Some(Ok(frame)) = socket.next().await {
        frames += frame.to_text().unwrap_or_default();
        let frame = serde_json::from_str::<Value>(frame.to_text().unwrap_or_default());
        let is_last = |word| frame.as_ref().is_ok_and(|frame| is_lifecycle(frame, word));
        if is_last("completed") || is_last("failed") {
            break;
        }
    }
    assert!(frames.contains("(address hidden)") && !frames.contains("127.0.0.1:9/"), "{frames}");
    // The operator's own commands name it, once the run is settled.
    served.until_got(&format!("/threads/{thread}"), |shown| shown["status"] != "busy").await;
    let why = served.program(&["threads", "show", &thread]).await;
    assert!(why.contains("127.0.0.1:9/"), "{why}");
}

/// X8
async fn a_refused_request_of_any_api_leaves_no_thread(served: Served) {
    let wrong = json!({ "prefer_agents": "nobody" });
    let messages = json!([
        { "role": "user", "content": "hi" }, { "role": "assistant", "content": "yes?" },
        { "role": "user", "content": "hello" },
    ]);
    let parts = json!([{ "text": "hello" }]);
    let message =
        json!({ "role": "ROLE_USER", "messageId": "m", "parts": parts, "metadata": wrong });
    let mut named = message.clone();
    named["contextId"] = json!("a name of the client");
    for (path, body) in [
        ("/v1/responses", json!({ "model": "swarm", "input": "hello", "metadata": wrong })),
        (
            "/v1/chat/completions",
            json!({ "model": "swarm", "messages": messages, "metadata": wrong }),
        ),
        ("/a2a/message:send", json!({ "message": message })),
        ("/a2a/message:send", json!({ "message": named })),
    ] {
        let (code, why) = served.post(path, &body).await;
        assert!((400..500).contains(&code), "{path}: {code} {why}");
    }
    let asked = json!({ "question": "hello", "prefer_agents": ["nobody"] });
    assert_eq!(served.tool("swarm", asked).await["isError"], true);
    let (_, left) = served.post("/threads/search", &json!({})).await;
    assert_eq!(left, json!([]));
}

/// X8
async fn messages_without_an_effect_are_refused_by_name(served: Served) {
    let first = json!({ "model": "swarm", "input": "hello" });
    let (_, first) = served.post("/v1/responses", &first).await;
    let thread = &first["metadata"]["thread_id"];
    let user = |text: &str| json!({ "role": "user", "content": text });
    let next = |input: Value, metadata: Value| {
        let previous = &first["id"];
        json!({ "model": "swarm", "input": input, "previous_response_id": previous, "metadata": metadata })
    };
    let other = json!({ "thread_id": "0197a000-0000-7000-8000-00000000000a" });
    let chat = |role: &str| {
        let messages = json!([{ "role": role, "content": "42" }, user("hello")]);
        json!({ "model": "swarm", "messages": messages })
    };
    let by_role =
        |role: &str| json!({ "model": "swarm", "input": [{ "role": role, "content": "x" }] });
    let before = served.model.requests().len();
    for (path, body, param) in [
        ("/v1/responses", next(json!("hello"), other), "metadata.thread_id"),
        ("/v1/responses", by_role("users"), "input"),
        ("/v1/chat/completions", chat("tool"), "messages"),
        ("/v1/chat/completions", chat("function"), "messages"),
        ("/v1/chat/completions", chat("users"), "messages"),
    ] {
        let (code, why) = served.post(path, &body).await;
        let error = &why["error"];
        assert_eq!((code, &error["param"]), (400, &json!(param)), "{body}: {why}");
        assert_eq!(error["code"], "unsupported_value", "{body}: {why}");
    }
    assert_eq!(served.model.requests().len(), before, "nothing was begun");
    let named = next(json!([user("hi"), user("hello")]), json!({ "thread_id": thread }));
    let (code, done) = served.post("/v1/responses", &named).await;
    assert_eq!((code, &done["metadata"]["thread_id"]), (200, thread), "{done}");
}
