//! The other wires of the scripted model: Anthropic's Messages and Gemini's `generateContent`.
//!
//! Requests are read as Chat Completions, so that one script serves all wires. Like the real ones this endpoint refuses
//! what they refuse: turns out of order, results of calls that nobody made, a missing version or bound.

use serde_json::{Value, json};

/// Which wire a request came over.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Wire {
    #[default]
    ChatCompletions,
    Anthropic,
    Gemini,
}

fn items(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

/// Reads a request of Anthropic's API as one of Chat Completions.
pub(super) fn from_anthropic(body: &Value) -> Result<Value, String> {
    if !body["max_tokens"].is_u64() {
        return Err("max_tokens: Field required".to_owned());
    }
    let marks = body.to_string().matches("\"cache_control\"").count();
    if marks > 4 {
        return Err(format!(
            "A maximum of 4 blocks with cache_control may be provided. Found {marks}."
        ));
    }
    let mut messages: Vec<Value> = items(&body["system"])
        .map(|block| json!({ "role": "system", "content": block["text"] }))
        .collect();
    let mut last: &str = "";
    let mut open: Vec<&Value> = Vec::new();
    for message in items(&body["messages"]) {
        let role = message["role"].as_str().unwrap_or_default();
        if role == last || (last.is_empty() && role != "user") {
            return Err("messages: roles must alternate, and the first must be user".to_owned());
        }
        last = role;
        let mut text = String::new();
        let mut calls = Vec::new();
        for block in items(&message["content"]) {
            match block["type"].as_str() {
                Some("text") if block["text"] == "" => {
                    return Err("messages: text content blocks must be non-empty".to_owned());
                }
                Some("text") => text.push_str(block["text"].as_str().unwrap_or_default()),
                Some("tool_use") => {
                    open.push(&block["id"]);
                    let arguments = block["input"].to_string();
                    calls.push(json!({ "id": block["id"], "type": "function",
                        "function": { "name": block["name"], "arguments": arguments } }));
                }
                Some("tool_result") => {
                    let id = &block["tool_use_id"];
                    let Some(at) = open.iter().position(|one| *one == id) else {
                        return Err(format!(
                            "messages: unexpected tool_use_id in tool_result: {id}"
                        ));
                    };
                    open.remove(at);
                    let content = &block["content"];
                    messages
                        .push(json!({ "role": "tool", "tool_call_id": id, "content": content }));
                }
                Some(kind @ ("image" | "document")) => sent_whole(kind, &block["source"])?,
                _ => return Err("messages: unknown type of block".to_owned()),
            }
        }
        if role == "user" && !open.is_empty() {
            return Err("messages: tool_use ids were found without tool_result blocks".to_owned());
        }
        push(&mut messages, role, text, calls);
    }
    if last.is_empty() {
        return Err("messages: at least one message is required".to_owned());
    }
    Ok(json!({ "model": body["model"], "messages": messages, "tools": body["tools"],
        "stream": body["stream"] }))
}

/// Checks an image or a document as the real one does.
fn sent_whole(kind: &str, source: &Value) -> Result<(), String> {
    let media_type = source["media_type"].as_str().unwrap_or_default();
    let fits = match kind {
        "image" => media_type.starts_with("image/"),
        _ => media_type == "application/pdf",
    };
    if fits && source["type"] == "base64" && source["data"].is_string() {
        Ok(())
    } else {
        Err(format!("messages: {kind}.source: Input should be valid: {media_type}"))
    }
}

/// Reads a request of Gemini's API as one of Chat Completions.
pub(super) fn from_gemini(body: &Value, model: &str, streamed: bool) -> Result<Value, String> {
    let texts = |content: &Value| -> String {
        items(&content["parts"]).filter_map(|part| part["text"].as_str()).collect()
    };
    let mut messages = Vec::new();
    if !body["systemInstruction"].is_null() {
        messages.push(json!({ "role": "system", "content": texts(&body["systemInstruction"]) }));
    }
    let mut called = 0;
    let mut answered = 0;
    for content in items(&body["contents"]) {
        let role = match content["role"].as_str() {
            Some("model") => "assistant",
            Some("user") => "user",
            _ => return Err("Please use a valid role: user, model.".to_owned()),
        };
        let mut calls = Vec::new();
        for part in items(&content["parts"]) {
            if let Some(call) = part.get("functionCall") {
                if calls.is_empty() && part["thoughtSignature"].is_null() {
                    return Err("Function call is missing a thought_signature.".to_owned());
                }
                let id = format!("call_{called}");
                calls.push(json!({ "id": id, "type": "function", "function": {
                    "name": call["name"], "arguments": call["args"].to_string() } }));
                called += 1;
            }
            if let Some(response) = part.get("functionResponse") {
                let id = format!("call_{answered}");
                answered += 1;
                let content = &response["response"]["result"];
                messages.push(json!({ "role": "tool", "tool_call_id": id, "content": content }));
            }
        }
        if role == "user" && answered != called {
            return Err("the number of function response parts must equal that of calls".to_owned());
        }
        push(&mut messages, role, texts(content), calls);
    }
    if messages.iter().any(|message| message["role"] != "system") {
        Ok(json!({ "model": model, "messages": messages, "stream": streamed }))
    } else {
        Err("contents is not specified".to_owned())
    }
}

fn push(messages: &mut Vec<Value>, role: &str, text: String, calls: Vec<Value>) {
    if text.is_empty() && calls.is_empty() {
        return;
    }
    let mut message = json!({ "role": role, "content": text });
    if !calls.is_empty() {
        message["tool_calls"] = calls.into();
    }
    messages.push(message);
}

/// Writes an answer of Chat Completions as one of Anthropic's API; `demanded` is the tool that had to be called.
pub(super) fn to_anthropic(completion: &Value, demanded: Option<&str>) -> Value {
    let choice = &completion["choices"][0];
    let message = &choice["message"];
    let text = message["content"].as_str().unwrap_or_default();
    let input = serde_json::from_str::<Value>(text).ok().filter(Value::is_object);
    let mut content = Vec::new();
    match (demanded, input) {
        (Some(tool), Some(input)) => content.push(
            json!({ "type": "tool_use", "id": "toolu_answer", "name": tool, "input": input }),
        ),
        _ if text.is_empty() => {}
        _ => content.push(json!({ "type": "text", "text": text })),
    }
    for call in items(&message["tool_calls"]) {
        let arguments = call["function"]["arguments"].as_str().unwrap_or_default();
        let input: Value = serde_json::from_str(arguments).unwrap_or_else(|_| json!({}));
        let name = &call["function"]["name"];
        content.push(json!({ "type": "tool_use", "id": call["id"], "name": name, "input": input }));
    }
    let counted = &completion["usage"];
    let cached = counted["prompt_tokens_details"]["cached_tokens"].as_u64().unwrap_or_default();
    let asked = counted["prompt_tokens"].as_u64().unwrap_or_default();
    let is_call = content.iter().any(|block| block["type"] == "tool_use");
    json!({
        "id": completion["id"], "type": "message", "role": "assistant", "model": completion["model"],
        "content": content, "stop_reason": if is_call { "tool_use" } else { "end_turn" },
        "usage": {
            "input_tokens": asked.saturating_sub(cached),
            "cache_read_input_tokens": cached,
            "output_tokens": counted["completion_tokens"],
        },
    })
}

/// Writes an answer of Anthropic's API as the events of a stream.
pub(super) fn anthropic_events(message: &Value) -> Vec<String> {
    let mut start = message.clone();
    start["content"] = json!([]);
    start["stop_reason"] = Value::Null;
    start["usage"]["output_tokens"] = 1.into();
    let mut events =
        vec![json!({ "type": "message_start", "message": start }), json!({ "type": "ping" })];
    for (index, block) in items(&message["content"]).enumerate() {
        let mut empty = block.clone();
        let (kind, key, text) = match block["type"].as_str() {
            Some("text") => {
                empty["text"] = "".into();
                ("text_delta", "text", block["text"].as_str().unwrap_or_default().to_owned())
            }
            _ => {
                empty["input"] = json!({});
                ("input_json_delta", "partial_json", block["input"].to_string())
            }
        };
        events
            .push(json!({ "type": "content_block_start", "index": index, "content_block": empty }));
        for piece in super::reply::pieces(&text) {
            let delta = json!({ "type": kind, key: piece });
            events.push(json!({ "type": "content_block_delta", "index": index, "delta": delta }));
        }
        events.push(json!({ "type": "content_block_stop", "index": index }));
    }
    events
        .push(json!({ "type": "message_delta", "delta": { "stop_reason": message["stop_reason"] },
        "usage": { "output_tokens": message["usage"]["output_tokens"] } }));
    events.push(json!({ "type": "message_stop" }));
    let named = |event: Value| {
        format!("event: {}\ndata: {event}\n\n", event["type"].as_str().unwrap_or_default())
    };
    events.into_iter().map(named).collect()
}

/// Writes an answer of Chat Completions as one of Gemini's API.
pub(super) fn to_gemini(completion: &Value) -> Value {
    let message = &completion["choices"][0]["message"];
    let mut parts = Vec::new();
    if let Some(text) = message["content"].as_str().filter(|text| !text.is_empty()) {
        parts.push(json!({ "text": text }));
    }
    for call in items(&message["tool_calls"]) {
        let arguments = call["function"]["arguments"].as_str().unwrap_or_default();
        let args: Value = serde_json::from_str(arguments).unwrap_or_else(|_| json!({}));
        parts.push(json!({ "functionCall": { "name": call["function"]["name"], "args": args },
            "thoughtSignature": "c2lnbmVk" }));
    }
    json!({
        "candidates": [{ "content": { "role": "model", "parts": parts }, "finishReason": "STOP", "index": 0 }],
        "usageMetadata": {
            "promptTokenCount": completion["usage"]["prompt_tokens"],
            "cachedContentTokenCount": completion["usage"]["prompt_tokens_details"]["cached_tokens"],
            "candidatesTokenCount": completion["usage"]["completion_tokens"],
        },
        "modelVersion": completion["model"],
    })
}

/// Writes an answer of Gemini's API as the events of a stream: each text in pieces, each call whole.
pub(super) fn gemini_events(answer: &Value) -> Vec<String> {
    let mut chunks = Vec::new();
    for part in items(&answer["candidates"][0]["content"]["parts"]) {
        match part["text"].as_str() {
            Some(text) => {
                chunks.extend(super::reply::pieces(text).map(|piece| json!({ "text": piece })));
            }
            None => chunks.push(part.clone()),
        }
    }
    let last = chunks.len().saturating_sub(1);
    let chunks = if chunks.is_empty() { vec![json!({ "text": "" })] } else { chunks };
    let event = |(at, part): (usize, Value)| {
        let mut event = answer.clone();
        event["candidates"][0]["content"]["parts"] = json!([part]);
        if at != last {
            event["candidates"][0]["finishReason"] = Value::Null;
        }
        format!("data: {event}\r\n\r\n")
    };
    chunks.into_iter().enumerate().map(event).collect()
}

/// Writes the body of a refusal.
pub(super) fn error(wire: Wire, status: u16, message: &str) -> Value {
    match wire {
        Wire::ChatCompletions => super::reply::error(status, message),
        Wire::Anthropic => {
            let kind = if status >= 500 { "api_error" } else { "invalid_request_error" };
            json!({ "type": "error", "error": { "type": kind, "message": message } })
        }
        Wire::Gemini => {
            let kind = if status >= 500 { "INTERNAL" } else { "INVALID_ARGUMENT" };
            json!({ "error": { "code": status, "message": message, "status": kind } })
        }
    }
}
