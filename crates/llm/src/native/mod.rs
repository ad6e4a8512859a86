//! Speaks to endpoints whose wire is not Chat Completions, by translating both ways.
//!
//! Enter at [`body`] and [`Reader`]: a request is written as Chat Completions first, and an endpoint's answer is read
//! as that, so both sides of the adapter are unchanged. Sources: Anthropic's Messages API (version 2023-06-01),
//! Gemini's `generateContent` (v1beta). Deliberately absent: anything that is sent or waited for.

mod anthropic;
mod gemini;

use std::collections::HashMap;

use serde_json::{Value, json};

use crate::attached::{self, Part};
use perihelion_settings::config::Api;

/// Returns the body of a request in an endpoint's own form, from that of Chat Completions.
pub(super) fn body(api: Api, chat: Value) -> Value {
    match api {
        Api::ChatCompletions => chat,
        Api::Anthropic => anthropic::body(&chat),
        Api::Gemini => gemini::body(&chat),
    }
}

pub(super) enum Reader {
    ChatCompletions,
    Anthropic(anthropic::Reader),
    Gemini,
}

impl Reader {
    /// Makes the reader of the answer to a request, which is in the form of Chat Completions.
    pub(super) fn new(api: Api, chat: &Value) -> Self {
        match api {
            Api::ChatCompletions => Self::ChatCompletions,
            Api::Anthropic => Self::Anthropic(anthropic::Reader::new(chat)),
            Api::Gemini => Self::Gemini,
        }
    }

    pub(super) fn whole(&self, value: Value) -> Value {
        match self {
            Self::ChatCompletions => value,
            Self::Anthropic(reader) => reader.whole(value),
            Self::Gemini => gemini::answer(value, "message"),
        }
    }

    pub(super) fn chunk(&mut self, value: Value) -> Value {
        match self {
            Self::ChatCompletions => value,
            Self::Anthropic(reader) => reader.chunk(value),
            Self::Gemini => gemini::answer(value, "delta"),
        }
    }
}

/// Returns the arguments of a call in a request, which are text there, as the object for other protocols.
fn arguments(function: &Value) -> Value {
    let text = function["arguments"].as_str().unwrap_or_default();
    match serde_json::from_str(text) {
        Ok(object @ Value::Object(_)) => object,
        _ if text.trim().is_empty() => json!({}),
        // What the model wrote was no object; it is shown what it wrote.
        _ => json!({ "text": text }),
    }
}

/// Returns the maximum tokens of the answer, under any of its names.
fn bound(chat: &Value) -> Option<&Value> {
    ["max_completion_tokens", "max_tokens"].iter().find_map(|key| chat.get(key))
}

fn items(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

/// Returns the tools of a request, with the schemas of their parameters under the key of an API.
fn tools(chat: &Value, key: &str) -> Vec<Value> {
    let tool = |tool: &Value| {
        let function = &tool["function"];
        let description = &function["description"];
        json!({ "name": function["name"], "description": description, key: function["parameters"] })
    };
    items(&chat["tools"]).iter().map(tool).collect()
}

/// How an API writes the parts of a conversation.
struct Form {
    /// The role of a model.
    assistant: &'static str,
    /// The field of a message with its parts.
    key: &'static str,
    part: fn(Part<'_>) -> Value,
    /// Writes a call by its place among those of an answer.
    call: fn(usize, &Value) -> Value,
    /// Writes a result: the ID of its call, its tool, its text.
    result: fn(&str, &str, &str) -> Value,
}

/// Returns the system part, and the conversation, in which users and models take turns: a user speaks first.
fn conversation(chat: &Value, form: &Form) -> (Vec<Value>, Vec<Value>) {
    let mut system = Vec::new();
    let mut messages = Vec::new();
    // In Chat Completions, a result names its call and not its tool.
    let mut tools: HashMap<&str, &str> = HashMap::new();
    for message in items(&chat["messages"]) {
        let has_text =
            |part: &Part<'_>| !matches!(part, Part::Text(text) if text.trim().is_empty());
        let parts = attached::parts(&message["content"]).into_iter();
        let content = parts.filter(has_text).map(form.part);
        match message["role"].as_str() {
            Some("system") if messages.is_empty() => system.extend(content),
            Some("assistant") => {
                let calls = items(&message["tool_calls"]);
                for call in calls {
                    let name = call["function"]["name"].as_str().unwrap_or_default();
                    tools.insert(call["id"].as_str().unwrap_or_default(), name);
                }
                let calls = calls.iter().enumerate().map(|(nth, call)| (form.call)(nth, call));
                append(&mut messages, form.assistant, form.key, content.chain(calls).collect());
            }
            Some("tool") => {
                let id = message["tool_call_id"].as_str().unwrap_or_default();
                let text = message["content"].as_str().unwrap_or_default();
                let result = (form.result)(id, tools.get(id).copied().unwrap_or(id), text);
                append(&mut messages, "user", form.key, vec![result]);
            }
            _ => append(&mut messages, "user", form.key, content.collect()),
        }
    }
    if messages.is_empty() {
        append(&mut messages, "user", form.key, system.pop().into_iter().collect());
    }
    (system, messages)
}

/// Writes what a model answered as a message of Chat Completions.
fn message(text: String, reasoning: String, calls: Vec<Value>) -> Value {
    let mut message = json!({ "content": text, "reasoning_content": reasoning });
    if !calls.is_empty() {
        message["tool_calls"] = calls.into();
    }
    message
}

/// Writes the tokens of a call under the names of Chat Completions.
fn counted(sent: &[u64], received: &[u64], cached: u64) -> Value {
    let sum = |counts: &[u64]| counts.iter().copied().fold(0, u64::saturating_add);
    json!({
        "prompt_tokens": sum(sent),
        "completion_tokens": sum(received),
        "prompt_tokens_details": { "cached_tokens": cached },
    })
}

/// Appends parts to the last message if it has the same role, otherwise as a new message.
fn append(messages: &mut Vec<Value>, role: &str, key: &str, parts: Vec<Value>) {
    if parts.is_empty() {
        return;
    }
    if let Some(last) = messages.last_mut().filter(|last| last["role"] == role)
        && let Some(there) = last[key].as_array_mut()
    {
        there.extend(parts);
        return;
    }
    messages.push(json!({ "role": role, key: parts }));
}
