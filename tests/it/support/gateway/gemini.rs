//! Gemini's `generateContent`: a call without a signature and a call without a response are refused.

use serde_json::{Value, json};

use super::{items, pieces, push};

/// Reads a request as one of Chat Completions; refuses what the real endpoint refuses.
pub fn chat(body: &Value, model: &str) -> Result<Value, String> {
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
        Ok(json!({ "model": model, "messages": messages }))
    } else {
        Err("contents is not specified".to_owned())
    }
}

/// Writes an answer of Chat Completions.
pub fn answer(completion: &Value) -> Value {
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

/// Writes an answer as the events of a stream: each text in pieces, each call whole.
pub fn events(answer: &Value) -> Vec<String> {
    let mut chunks = Vec::new();
    for part in items(&answer["candidates"][0]["content"]["parts"]) {
        match part["text"].as_str() {
            Some(text) => {
                chunks.extend(pieces(text).into_iter().map(|piece| json!({ "text": piece })));
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
pub fn error(status: u16, message: &str) -> Value {
    let kind = if status >= 500 { "INTERNAL" } else { "INVALID_ARGUMENT" };
    json!({ "error": { "code": status, "message": message, "status": kind } })
}
