//! Messages in the clients' format.

use axum::http::StatusCode;
use serde_json::{Value, json};
use uuid::Uuid;

use crate::agent_server::Refusal;
use perihelion_star::{Message, REMOVE};

/// Bytes of a message's ID at most; a longer one is replaced.
const LONGEST_ID: usize = 200;

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
    if kind(&message.role) == "ai" {
        shown["tool_calls"] = json!([]);
        shown["invalid_tool_calls"] = json!([]);
        shown["usage_metadata"] = Value::Null;
    }
    shown
}

/// Shows a piece of a message that is being written.
pub(super) fn chunk(id: &str, node: &str, text: &str) -> Value {
    let mut chunk = partial(id, node, text);
    chunk["type"] = json!("AIMessageChunk");
    chunk["tool_call_chunks"] = json!([]);
    chunk["chunk_position"] = Value::Null;
    chunk
}

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

/// Reads the messages that a client wrote: a list, or one alone.
pub(super) fn read_list(given: &Value) -> Result<Vec<Message>, Refusal> {
    match given {
        Value::Array(list) => list.iter().map(read).collect(),
        one => Ok(vec![read(one)?]),
    }
}

/// Reads a message in one of the forms that clients write: a text, a pair of role and content, an object, or an object
/// as LangChain serialises it. One without an ID gets one.
pub(super) fn read(given: &Value) -> Result<Message, Refusal> {
    let plain = plain(given);
    let refused = |why: String| Refusal(StatusCode::BAD_REQUEST, why);
    let text = |key: &str| plain.get(key).and_then(Value::as_str).map(str::to_owned);
    let lacking =
        || refused(format!("Message dict must contain 'role' and 'content' keys, got {given}"));
    let kind = text("type").or_else(|| text("role")).ok_or_else(lacking)?;
    let role = match kind.as_str() {
        "human" | "user" | "HumanMessage" | "HumanMessageChunk" => "user",
        "ai" | "assistant" | "AIMessage" | "AIMessageChunk" => "assistant",
        "system" | "developer" | "SystemMessage" | "SystemMessageChunk" => "system",
        "tool" | "function" | "ToolMessage" | "ToolMessageChunk" => "tool",
        REMOVE | "RemoveMessage" => REMOVE,
        other => {
            return Err(refused(format!(
                "Unexpected message type: '{other}'. Use one of 'human', 'user', 'ai', 'assistant', 'function', 'tool', \
                 'system', or 'developer'."
            )));
        }
    };
    let content = match plain.get("content") {
        Some(content) => content_text(content),
        None if role == REMOVE => String::new(),
        None => return Err(lacking()),
    };
    let id = text("id").filter(|id| (1..=LONGEST_ID).contains(&id.len()));
    Ok(Message {
        id: id.unwrap_or_else(|| Uuid::new_v4().to_string()),
        role: role.to_owned(),
        name: text("name"),
        content,
        ..Message::default()
    })
}

/// Returns a message as an object with its fields, whatever form it comes in.
pub(super) fn plain(given: &Value) -> Value {
    let class = || given["id"].as_array()?.last()?.as_str();
    match given {
        Value::String(text) => json!({ "type": "human", "content": text }),
        Value::Array(pair) if pair.len() == 2 => json!({ "type": pair[0], "content": pair[1] }),
        Value::Object(fields) if fields.get("lc").is_some() && given["type"] == "constructor" => {
            with_kind(&given["kwargs"], json!(class().filter(|class| class.contains("Message"))))
        }
        Value::Object(fields) if fields.get("data").is_some_and(Value::is_object) => {
            with_kind(&given["data"], given["type"].clone())
        }
        other => other.clone(),
    }
}

fn with_kind(fields: &Value, kind: Value) -> Value {
    let mut fields = fields.as_object().cloned().unwrap_or_default();
    fields.insert("type".into(), kind);
    Value::Object(fields)
}

pub(crate) fn content_text(given: &Value) -> String {
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
        REMOVE => "remove",
        _ => "ai",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_read_in_every_form_that_clients_write() {
        let serialised = json!({
            "lc": 1, "type": "constructor", "id": ["langchain_core", "messages", "HumanMessage"],
            "kwargs": { "content": "Who left?", "id": "m-1" },
        });
        for given in [
            json!("Who left?"),
            json!(["human", "Who left?"]),
            json!({ "role": "user", "content": [{ "type": "text", "text": "Who left?" }] }),
            serialised.clone(),
            json!({ "type": "human", "data": { "content": "Who left?", "id": "m-1" } }),
        ] {
            let read = read(&given).unwrap();
            assert_eq!((read.role.as_str(), read.content.as_str()), ("user", "Who left?"));
            assert!(!read.id.is_empty());
        }
        assert_eq!(read(&serialised).unwrap().id, "m-1");
        let removes = read(&json!({ "type": "remove", "id": "m-1" })).unwrap();
        assert_eq!((removes.role.as_str(), removes.id.as_str()), (REMOVE, "m-1"));
        let other = json!({
            "lc": 1, "type": "constructor", "id": ["os", "system"], "kwargs": { "content": "x" },
        });
        for given in
            [json!({ "type": "zzz", "content": "x" }), json!({ "foo": 1 }), json!(7), other]
        {
            assert_eq!(read(&given).unwrap_err().0, StatusCode::BAD_REQUEST, "{given}");
        }
    }
}
