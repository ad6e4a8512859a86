//! Captured texts: cut to size, and messages in the form of the conventions.

use serde_json::json;

use crate::llm::{ChatMessage, MessageRole, ToolCall};

/// Bytes of one captured text; the rest is cut off, its digest and length stay.
pub const CONTENT_BYTES: usize = 16 * 1024;

/// Cuts a text at the cap, between characters.
pub(super) fn cut(text: &str) -> String {
    if text.len() <= CONTENT_BYTES {
        return text.to_owned();
    }
    let end = (0..=CONTENT_BYTES).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
    format!("{}…", &text[..end])
}

/// Writes messages in the form of the conventions.
pub(super) fn sent(messages: &[ChatMessage]) -> String {
    let one = |message: &ChatMessage| {
        let role = match message.role {
            MessageRole::System => "system",
            MessageRole::User => "user",
            MessageRole::Assistant => "assistant",
            MessageRole::Tool => "tool",
        };
        let mut parts = match (&message.tool_call_id, message.content.is_empty()) {
            (Some(id), _) => {
                vec![json!({ "type": "tool_call_response", "id": id, "response": message.content })]
            }
            (None, true) => Vec::new(),
            (None, false) => vec![json!({ "type": "text", "content": message.content })],
        };
        parts.extend(message.tool_calls.iter().map(call));
        json!({ "role": role, "parts": parts })
    };
    json!(messages.iter().map(one).collect::<Vec<_>>()).to_string()
}

pub(super) fn said(text: &str, calls: &[ToolCall], finish_reason: Option<&str>) -> String {
    let mut parts = Vec::new();
    if !text.is_empty() {
        parts.push(json!({ "type": "text", "content": text }));
    }
    parts.extend(calls.iter().map(call));
    json!([{ "role": "assistant", "parts": parts, "finish_reason": finish_reason }]).to_string()
}

fn call(call: &ToolCall) -> serde_json::Value {
    json!({ "type": "tool_call", "id": call.id, "name": call.name, "arguments": call.arguments })
}
