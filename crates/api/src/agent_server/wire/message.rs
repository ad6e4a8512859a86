//! Messages in the clients' format.

use serde_json::{Value, json};

use perihelion_star::Message;

/// Shows a message of the conversation.
pub(crate) fn shown(message: &Message) -> Value {
    let mut shown = json!({
        "content": message.content,
        "additional_kwargs": {},
        "response_metadata": {},
        "type": kind(&message.role),
        "name": message.name,
        "id": message.id,
    });
    if !message.attached.is_empty() {
        shown["additional_kwargs"]["attachments"] = json!(message.attached);
    }
    if message.role != "user" {
        shown["tool_calls"] = json!([]);
        shown["invalid_tool_calls"] = json!([]);
        shown["usage_metadata"] = Value::Null;
    }
    shown
}

/// Shows a piece of a message that is being written.
pub(super) fn chunk(id: &str, node: &str, text: &str) -> Value {
    json!({
        "content": text,
        "additional_kwargs": {},
        "response_metadata": {},
        "type": "AIMessageChunk",
        "name": node,
        "id": id,
        "tool_calls": [],
        "invalid_tool_calls": [],
        "usage_metadata": null,
        "tool_call_chunks": [],
        "chunk_position": null,
    })
}

/// Shows a message as far as it is written.
pub(super) fn partial(id: &str, node: &str, text: &str) -> Value {
    json!({
        "content": text,
        "additional_kwargs": {},
        "response_metadata": {},
        "type": "ai",
        "name": node,
        "id": id,
        "tool_calls": [],
        "invalid_tool_calls": [],
        "usage_metadata": null,
    })
}

/// Reads a message that a client wrote; `None` when it has no role that a conversation has.
pub(super) fn read(given: &Value, id: String) -> Option<Message> {
    let role = given.get("type").or_else(|| given.get("role")).and_then(Value::as_str)?;
    let role = match role {
        "human" | "user" | "HumanMessage" => "user",
        "ai" | "assistant" | "AIMessage" | "AIMessageChunk" => "assistant",
        _ => return None,
    };
    let text = |key: &str| given.get(key).and_then(Value::as_str).map(str::to_owned);
    Some(Message {
        citations_removed: 0,
        id: text("id").unwrap_or(id),
        role: role.to_owned(),
        name: text("name"),
        content: content(given.get("content")?),
        tainted_by: Default::default(),
        attached: Vec::new(),
    })
}

/// Reads content that is a text, or a list with texts in it.
pub(crate) fn content(given: &Value) -> String {
    match given {
        Value::String(text) => text.clone(),
        Value::Array(parts) => {
            let texts = parts.iter().filter_map(|part| match part {
                Value::String(text) => Some(text.as_str()),
                other => other.get("text").and_then(Value::as_str),
            });
            texts.collect::<Vec<_>>().join("\n")
        }
        _ => String::new(),
    }
}

fn kind(role: &str) -> &'static str {
    match role {
        "user" => "human",
        "system" => "system",
        "tool" => "tool",
        _ => "ai",
    }
}
