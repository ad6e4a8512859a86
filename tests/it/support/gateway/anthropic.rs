//! Anthropic's Messages: turns out of order, results of calls that were not made and a missing limit are refused.

use serde_json::{Value, json};

use super::{items, pieces, push};

/// Reads a request as one of Chat Completions; refuses what the real endpoint refuses.
pub fn chat(body: &Value) -> Result<Value, String> {
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

/// Writes an answer of Chat Completions to a request; a tool that had to be called gets the answer as its input.
pub fn answer(completion: &Value, sent: &Value) -> Value {
    let choice = &completion["choices"][0];
    let message = &choice["message"];
    let text = message["content"].as_str().unwrap_or_default();
    let input = serde_json::from_str::<Value>(text).ok().filter(Value::is_object);
    let mut content = Vec::new();
    match (sent["tool_choice"]["name"].as_str(), input) {
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

/// Writes an answer as the events of a stream.
pub fn events(message: &Value) -> Vec<String> {
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
        for piece in pieces(&text) {
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

/// Writes the body of a refusal.
pub fn error(status: u16, message: &str) -> Value {
    let kind = if status >= 500 { "api_error" } else { "invalid_request_error" };
    json!({ "type": "error", "error": { "type": kind, "message": message } })
}
