//! Messages in the clients' format, and the turns that conversations of them ask for.

use std::collections::BTreeMap;

use axum::http::StatusCode;
use serde_json::{Map, Value, json};
use uuid::Uuid;

use crate::agent_server::Refusal;
use crate::http::typed;
use crate::parts;
use perihelion_star::{Message, REMOVE, Request};

const MESSAGES: &str = "messages";

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

/// The fields of an input with messages that are read; further fields of a client's state are ignored.
const KNOWN: [&str; 10] = [
    "context",
    "prefer_agents",
    "disable_agents",
    "max_turns",
    "include_data",
    "trace",
    "system_prompt",
    "approvals",
    "attachments",
    "user",
];

/// Reads an input: a conversation whose last human messages are the question, or the request in our own form.
pub(super) fn turn(
    fields: &Map<String, Value>,
    context: Option<&Value>,
) -> Result<Request, Refusal> {
    let mut own = fields.clone();
    let messages = own.remove(MESSAGES);
    if !own.contains_key("question") {
        own.retain(|name, _| KNOWN.contains(&name.as_str()));
    }
    let turn: Request = typed("input", Value::Object(own))
        .map_err(|error| Refusal::invalid(format!("input: {error}")))?;
    if !turn.question.trim().is_empty() {
        return Ok(with_context(turn, context));
    }
    let list = match messages {
        Some(Value::Array(list)) => list,
        Some(one @ (Value::Object(_) | Value::String(_))) => vec![one],
        _ => return Err(Refusal::invalid("input must have messages or a question")),
    };
    Ok(with_context(with_messages(turn, &list)?, context))
}

/// Turns a conversation into a turn: the human messages at its end are the question, and earlier ones and those with IDs
/// of their own are merged into the thread.
fn with_messages(mut turn: Request, list: &[Value]) -> Result<Request, Refusal> {
    let plain: Vec<Value> = list.iter().map(plain).collect();
    let read = plain.iter().map(read).collect::<Result<Vec<Message>, Refusal>>()?;
    let is_named = |plain: &Value| plain.get("id").is_some_and(Value::is_string);
    let is_question = |(at, (one, plain)): &(usize, (&Message, &Value))| {
        one.role == "user" && (*at == 0 || !is_named(plain))
    };
    let is_removal = |one: &Message| one.role == REMOVE;
    let turns = read.iter().zip(&plain).rev().filter(|(one, _)| !is_removal(one));
    let asked: Vec<(&Message, &Value)> =
        turns.enumerate().take_while(is_question).map(|(_, one)| one).collect();
    let contents = || asked.iter().rev().filter_map(|(_, plain)| plain.get("content"));
    let texts = contents().map(content_text);
    let texts: Vec<String> = texts.filter(|text| !text.trim().is_empty()).collect();
    let attached = parts::attachments_of(contents())?;
    let question = parts::question(texts.join("\n\n"), attached);
    let (question, attached) =
        question.ok_or_else(|| Refusal::invalid("the messages must end with a human message"))?;
    turn.question = question;
    turn.attachments.extend(attached);
    let named = asked.first().filter(|(_, plain)| is_named(plain));
    turn.message_id = named.map(|(one, _)| one.id.clone());
    let ids: Vec<&str> = asked.iter().map(|(one, _)| one.id.as_str()).collect();
    turn.messages =
        read.iter().filter(|one| is_removal(one) || !ids.contains(&&*one.id)).cloned().collect();
    Ok(turn)
}

/// Adds the run's context, below the input's own.
pub(super) fn with_context(mut turn: Request, context: Option<&Value>) -> Request {
    let given: BTreeMap<String, String> = context
        .and_then(Value::as_object)
        .into_iter()
        .flatten()
        .filter_map(|(key, value)| match value {
            Value::String(text) => Some((key.clone(), text.clone())),
            Value::Number(_) | Value::Bool(_) => Some((key.clone(), value.to_string())),
            _ => None,
        })
        .collect();
    for (key, value) in given {
        turn.context.entry(key).or_insert(value);
    }
    turn
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refused_input_names_its_field() {
        let given = json!({ "question": 1 });
        let refused = turn(given.as_object().unwrap(), None).unwrap_err();
        assert_eq!(refused.1, "input: question: invalid type: integer `1`, expected a string");
    }

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
