//! Speaks to endpoints whose wire is not Chat Completions, by translating both ways.
//!
//! Enter at [`body`] and [`Reader`]: a request is written as Chat Completions first, and an endpoint's answer is read
//! as that, so both sides of the adapter are unchanged. Sources: Anthropic's Messages API (version 2023-06-01),
//! Gemini's `generateContent` (v1beta). Deliberately absent: anything that is sent or waited for.

mod anthropic;
mod gemini;

use serde_json::{Value, json};

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
