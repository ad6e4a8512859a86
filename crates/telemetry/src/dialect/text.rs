//! Captured texts: cut to size, and messages in the forms that backends read.

use serde_json::{Value, json};

use perihelion_llm::{ChatMessage, ToolCall};

/// Bytes of one captured text; the rest is cut off, its digest and length stay.
pub const CONTENT_BYTES: usize = 16 * 1024;

/// Below this many bytes the texts of messages are not cut further; the JSON is cut instead.
const LEAST_BYTES: usize = 64;

pub(super) fn cut(text: &str) -> String {
    cut_at(text, CONTENT_BYTES)
}

fn cut_at(text: &str, bytes: usize) -> String {
    if text.len() <= bytes {
        return text.to_owned();
    }
    format!("{}…", &text[..text.floor_char_boundary(bytes)])
}

/// Writes messages with each text cut so far that the whole keeps below the cap, and so stays JSON.
pub(super) fn fitted(write: impl Fn(usize) -> String) -> String {
    let mut bytes = CONTENT_BYTES;
    loop {
        let text = write(bytes);
        if text.len() <= CONTENT_BYTES || bytes <= LEAST_BYTES {
            return cut(&text);
        }
        bytes /= 2;
    }
}

/// Writes messages in the form of the conventions, each text cut to a number of bytes.
pub(super) fn sent(messages: &[ChatMessage], bytes: usize) -> String {
    let one = |message: &ChatMessage| {
        let content = cut_at(&message.content, bytes);
        let mut parts = match &message.tool_call_id {
            Some(id) => {
                vec![json!({ "type": "tool_call_response", "id": id, "response": content })]
            }
            None if content.is_empty() => Vec::new(),
            None => vec![json!({ "type": "text", "content": content })],
        };
        parts.extend(message.tool_calls.iter().map(|call| part(call, bytes)));
        json!({ "role": message.role, "parts": parts })
    };
    json!(messages.iter().map(one).collect::<Vec<_>>()).to_string()
}

/// Writes an answer in the form of the conventions, each text cut to a number of bytes.
pub(super) fn message_text(
    text: &str,
    calls: &[ToolCall],
    finish_reason: Option<&str>,
    bytes: usize,
) -> String {
    let mut parts = Vec::new();
    if !text.is_empty() {
        parts.push(json!({ "type": "text", "content": cut_at(text, bytes) }));
    }
    parts.extend(calls.iter().map(|call| part(call, bytes)));
    json!([{ "role": "assistant", "parts": parts, "finish_reason": finish_reason }]).to_string()
}

fn part(call: &ToolCall, bytes: usize) -> Value {
    let arguments = arguments(call, bytes);
    json!({ "type": "tool_call", "id": call.id, "name": call.name, "arguments": arguments })
}

/// Writes messages in the form of Chat Completions, which Langfuse shows as a conversation.
pub(super) fn asked_in_chat(messages: &[ChatMessage], bytes: usize) -> String {
    let one = |message: &ChatMessage| {
        let mut one = json!({ "role": message.role, "content": cut_at(&message.content, bytes) });
        if let Some(id) = &message.tool_call_id {
            one["tool_call_id"] = json!(id);
        }
        with_calls(one, &message.tool_calls, bytes)
    };
    json!(messages.iter().map(one).collect::<Vec<_>>()).to_string()
}

pub(super) fn answered_in_chat(text: &str, calls: &[ToolCall], bytes: usize) -> String {
    let answer = json!({ "role": "assistant", "content": cut_at(text, bytes) });
    with_calls(answer, calls, bytes).to_string()
}

fn with_calls(mut message: Value, calls: &[ToolCall], bytes: usize) -> Value {
    let one = |call: &ToolCall| {
        let arguments = arguments(call, bytes);
        let arguments = arguments.as_str().map_or_else(|| arguments.to_string(), str::to_owned);
        let function = json!({ "name": call.name, "arguments": arguments });
        json!({ "id": call.id, "type": "function", "function": function })
    };
    if !calls.is_empty() {
        message["tool_calls"] = calls.iter().map(one).collect();
    }
    message
}

/// Returns a call's arguments unchanged, or the beginning of their JSON if it is too long.
fn arguments(call: &ToolCall, bytes: usize) -> Value {
    let text = call.arguments.to_string();
    if text.len() <= bytes { call.arguments.clone() } else { json!(cut_at(&text, bytes)) }
}

#[cfg(test)]
mod tests {
    use perihelion_llm::MessageRole;

    use super::*;

    fn asked(contents: &[&str]) -> Vec<ChatMessage> {
        let one = |content: &&str| ChatMessage {
            role: MessageRole::Tool,
            content: (*content).to_owned(),
            tool_calls: vec![ToolCall {
                id: "c".into(),
                name: "sql_query".into(),
                arguments: json!({ "sql": content }),
            }],
            tool_call_id: Some("c".to_owned()),
            attached: Vec::new(),
        };
        contents.iter().map(one).collect()
    }

    /// X7
    #[test]
    fn long_conversations_are_cut_text_by_text_and_stay_json() {
        let long = "ü".repeat(40_000);
        let short = "short";
        let messages = asked(&[&long, short, &long]);
        for write in [sent, asked_in_chat] {
            let text = fitted(|bytes| write(&messages, bytes));
            assert!(text.len() <= CONTENT_BYTES, "{}", text.len());
            let read: Value = serde_json::from_str(&text).unwrap();
            assert_eq!(read.as_array().unwrap().len(), 3);
            assert!(text.contains(short) && text.contains("ü…"));
        }
        let many = asked(&["x"; 2000]);
        assert!(fitted(|bytes| sent(&many, bytes)).len() <= CONTENT_BYTES + "…".len());
    }
}
