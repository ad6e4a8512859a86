//! Turns a reply into an HTTP response, whole or streamed.

use axum::body::{Body, Bytes};
use axum::http::header::CONTENT_TYPE;
use axum::http::{HeaderName, HeaderValue, StatusCode};
use axum::response::Response;
use futures::{StreamExt as _, stream};
use serde_json::{Value, json};

use super::{choose::RecordedRequest, script::Reply};
use crate::Usage;
use perihelion_clock as clock;

/// Characters of one streamed piece at most; pieces end at spaces.
const PIECE_CHARS: usize = 24;

/// Writes the response to `request`; `number` makes its ids unique.
pub(super) fn response(reply: &Reply, request: &RecordedRequest, number: usize) -> Response {
    let streamed = request.is_streamed() && !reply.ignore_stream;
    let status = reply.status.unwrap_or(200);
    let (content_type, parts) = if let Some(raw) = &reply.raw {
        let sse = raw.starts_with("data:");
        (if sse { "text/event-stream" } else { "application/json" }, vec![raw.clone()])
    } else if status >= 400 {
        ("application/json", vec![error(status, &text(reply)).to_string()])
    } else if streamed {
        ("text/event-stream", chunks(reply, request, number))
    } else {
        ("application/json", vec![completion(reply, request, number).to_string()])
    };
    let mut response = Response::new(body(parts, reply.drop_connection));
    *response.status_mut() = StatusCode::from_u16(status).unwrap_or(StatusCode::OK);
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    for (name, value) in &reply.headers {
        if let (Ok(name), Ok(value)) = (HeaderName::try_from(name), HeaderValue::try_from(value)) {
            response.headers_mut().insert(name, value);
        }
    }
    response
}

pub(super) fn error(status: u16, message: &str) -> Value {
    let kind = if status >= 500 { "server_error" } else { "invalid_request_error" };
    json!({ "error": { "message": message, "type": kind, "param": null, "code": status } })
}

/// Sends the parts one by one; for a broken connection, only the first half of them.
fn body(mut parts: Vec<String>, drop_connection: bool) -> Body {
    if parts.len() == 1 && !drop_connection {
        return Body::from(parts.remove(0));
    }
    if drop_connection {
        parts.truncate(parts.len() / 2);
    }
    let kept = parts.into_iter().map(|part| Ok(Bytes::from(part)));
    let broken = || std::io::Error::other("the script breaks the connection");
    let end = drop_connection.then(broken).map(Err);
    // Yielding lets the server send each part by itself; otherwise a break would swallow those before it.
    Body::from_stream(stream::iter(kept.chain(end)).then(async |part| {
        tokio::task::yield_now().await;
        part
    }))
}

fn text(reply: &Reply) -> String {
    match &reply.content {
        None => String::new(),
        Some(Value::String(text)) => text.clone(),
        Some(value) => value.to_string(),
    }
}

fn usage(reply: &Reply, request: &RecordedRequest) -> Value {
    let estimate = || {
        let asked: usize = request.texts().iter().map(|text| text.chars().count()).sum();
        let calls: usize =
            reply.tool_calls.iter().map(|call| call.arguments.to_string().len()).sum();
        let words = text(reply).chars().count() + calls;
        let tokens = |characters: usize| u64::try_from(characters.div_ceil(4)).unwrap_or(u64::MAX);
        Usage { input_tokens: tokens(asked), output_tokens: tokens(words), ..Usage::default() }
    };
    let usage = reply.usage.unwrap_or_else(estimate);
    let mut counted = json!({
        "prompt_tokens": usage.input_tokens,
        "completion_tokens": usage.output_tokens,
        "total_tokens": usage.input_tokens + usage.output_tokens,
    });
    if usage.cached_tokens > 0 {
        counted["prompt_tokens_details"] = json!({ "cached_tokens": usage.cached_tokens });
    }
    counted
}

fn envelope(object: &str, request: &RecordedRequest, number: usize) -> Value {
    json!({
        "id": format!("scripted-{number}"),
        "object": object,
        "created": clock::now().timestamp(),
        "model": request.body["model"].as_str().unwrap_or("scripted"),
    })
}

fn tool_calls(reply: &Reply, number: usize) -> Vec<Value> {
    let calls = reply.tool_calls.iter().enumerate().map(|(index, call)| {
        let arguments = match &call.arguments {
            Value::String(text) => text.clone(),
            Value::Null => "{}".to_owned(),
            value => value.to_string(),
        };
        json!({
            "index": index,
            "id": format!("call_{number}_{index}"),
            "type": "function",
            "function": { "name": call.name, "arguments": arguments },
        })
    });
    calls.collect()
}

fn finish_reason(reply: &Reply) -> &'static str {
    if reply.tool_calls.is_empty() { "stop" } else { "tool_calls" }
}

fn completion(reply: &Reply, request: &RecordedRequest, number: usize) -> Value {
    let mut message = json!({ "role": "assistant", "content": Value::Null });
    if reply.content.is_some() {
        message["content"] = text(reply).into();
    }
    if !reply.tool_calls.is_empty() {
        message["tool_calls"] = tool_calls(reply, number).into();
    }
    let mut completion = envelope("chat.completion", request, number);
    completion["choices"] =
        json!([{ "index": 0, "message": message, "finish_reason": finish_reason(reply) }]);
    if !reply.without_usage {
        completion["usage"] = usage(reply, request);
    }
    completion
}

fn chunks(reply: &Reply, request: &RecordedRequest, number: usize) -> Vec<String> {
    let chunk = |delta: Value, finish_reason: Value| {
        let mut chunk = envelope("chat.completion.chunk", request, number);
        chunk["choices"] = json!([{ "index": 0, "delta": delta, "finish_reason": finish_reason }]);
        chunk
    };
    let mut chunks = vec![chunk(json!({ "role": "assistant", "content": "" }), Value::Null)];
    let text = text(reply);
    chunks.extend(pieces(&text).map(|piece| chunk(json!({ "content": piece }), Value::Null)));
    for call in tool_calls(reply, number) {
        chunks.push(chunk(json!({ "tool_calls": [call] }), Value::Null));
    }
    chunks.push(chunk(json!({}), finish_reason(reply).into()));
    if request.body["stream_options"]["include_usage"] == true && !reply.without_usage {
        let mut last = envelope("chat.completion.chunk", request, number);
        last["choices"] = json!([]);
        last["usage"] = usage(reply, request);
        chunks.push(last);
    }
    let mut events: Vec<String> =
        chunks.into_iter().map(|chunk| format!("data: {chunk}\n\n")).collect();
    events.push("data: [DONE]\n\n".to_owned());
    events
}

/// Cuts a text into pieces that end after a space where possible; joined they are the text.
fn pieces(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let limit = rest.char_indices().nth(PIECE_CHARS).map_or(rest.len(), |(at, _)| at);
        let end = match rest[..limit].rfind(' ') {
            Some(space) if limit < rest.len() => space + 1,
            _ => limit,
        };
        let (piece, left) = rest.split_at(end);
        rest = left;
        Some(piece)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_join_to_the_text() {
        for text in
            ["", "a", "one two three four five six seven eight", &"ä".repeat(100), "  \n x "]
        {
            assert_eq!(pieces(text).collect::<String>(), text);
        }
    }
}
