//! Writes requests, and reads answers leniently: whatever compatible endpoints really send.

use serde_json::{Map, Value, json};

use super::dialect::{Forms, JsonForm};
use crate::attached;
use crate::{ChatMessage, ChatRequest, ChatResponse, MessageRole, OutputFormat, ToolCall, Usage};
use perihelion_settings::config::{Inputs, ModelSettings};

/// Writes the body of a Chat Completions request.
pub(super) fn body(
    request: &ChatRequest,
    settings: &ModelSettings,
    forms: Forms,
    streamed: bool,
) -> Value {
    let mut messages: Vec<Value> =
        request.messages.iter().map(|words| message(words, &settings.input)).collect();
    let mut body = Map::new();
    body.insert("model".into(), settings.model.clone().into());
    if let Some(format) = &request.format {
        match forms.json {
            JsonForm::Schema => {
                let schema =
                    json!({ "name": format.name, "strict": true, "schema": format.schema });
                let value = json!({ "type": "json_schema", "json_schema": schema });
                body.insert("response_format".into(), value);
            }
            JsonForm::Object => {
                body.insert("response_format".into(), json!({ "type": "json_object" }));
                put_schema_in_prompt(&mut messages, format);
            }
            JsonForm::Prompt => put_schema_in_prompt(&mut messages, format),
        }
    }
    body.insert("messages".into(), messages.into());
    if !request.tools.is_empty() {
        let tools: Vec<Value> = request
            .tools
            .iter()
            .map(|tool| json!({ "type": "function", "function": tool }))
            .collect();
        body.insert("tools".into(), tools.into());
    }
    if let Some(temperature) = settings.temperature.filter(|_| forms.temperature) {
        body.insert("temperature".into(), temperature.into());
    }
    if let Some(max) = settings.max_tokens {
        let name = if forms.completion_tokens { "max_completion_tokens" } else { "max_tokens" };
        body.insert(name.into(), max.into());
    }
    body.insert("stream".into(), streamed.into());
    if streamed && forms.stream_options {
        body.insert("stream_options".into(), json!({ "include_usage": true }));
    }
    body.into()
}

fn message(message: &ChatMessage, takes: &Inputs) -> Value {
    let mut object = Map::new();
    let role = match message.role {
        MessageRole::System => "system",
        MessageRole::User => "user",
        MessageRole::Assistant => "assistant",
        MessageRole::Tool => "tool",
    };
    object.insert("role".into(), role.into());
    let only_calls = message.content.is_empty() && !message.tool_calls.is_empty();
    let content = if only_calls {
        Value::Null
    } else {
        attached::content(&message.content, &message.attached, takes)
    };
    object.insert("content".into(), content);
    if !message.tool_calls.is_empty() {
        let calls: Vec<Value> = message
            .tool_calls
            .iter()
            .map(|call| {
                let arguments = match &call.arguments {
                    Value::String(text) => text.clone(),
                    value => value.to_string(),
                };
                let function = json!({ "name": call.name, "arguments": arguments });
                json!({ "id": call.id, "type": "function", "function": function })
            })
            .collect();
        object.insert("tool_calls".into(), calls.into());
    }
    if let Some(id) = &message.tool_call_id {
        object.insert("tool_call_id".into(), id.clone().into());
    }
    object.into()
}

/// Appends the schema to the first system message, or puts one in front.
fn put_schema_in_prompt(messages: &mut Vec<Value>, format: &OutputFormat) {
    let text = format!(
        "Answer with one JSON object and nothing else. It must be valid against this JSON Schema (`{}`):\n{}",
        format.name, format.schema
    );
    match messages.first_mut() {
        Some(first) if first["role"] == "system" => {
            let before = first["content"].as_str().unwrap_or_default();
            first["content"] = format!("{before}\n\n{text}").into();
        }
        _ => messages.insert(0, json!({ "role": "system", "content": text })),
    }
}

/// Calls of tools in one answer; no sensible one has more.
pub(super) const MAX_CALLS: usize = 256;

/// Says that an answer calls too many tools.
pub(super) fn too_many_calls(calls: usize) -> String {
    format!("it calls {calls} tools or more in one answer, at most: {MAX_CALLS}")
}

/// Reads a whole answer.
///
/// # Errors
/// What is wrong with it, as the end of a sentence; of any length.
pub(super) fn response(value: &Value, model: &str) -> Result<ChatResponse, String> {
    let Some(choices) = value.get("choices").and_then(Value::as_array) else {
        return Err(format!("it has no `choices`: {value}"));
    };
    let Some(choice) = choices.first() else { return Err("its `choices` are empty".to_owned()) };
    let Some(message) = choice.get("message").filter(|message| message.is_object()) else {
        return Err(format!("its choice has no `message`: {choice}"));
    };
    let calls = message.get("tool_calls").and_then(Value::as_array).map_or(0, Vec::len);
    if calls > MAX_CALLS {
        return Err(too_many_calls(calls));
    }
    Ok(ChatResponse {
        content: answer_text(message),
        tool_calls: tool_calls(message),
        model: model_name(value).unwrap_or_else(|| model.to_owned()),
        finish_reason: finish_reason(choice),
        usage: usage(value).unwrap_or_default(),
        reasoning: reasoning(message),
    })
}

/// Returns the error inside a body: its message and, where it is a number, its code.
pub(super) fn error_in(value: &Value) -> Option<(String, Option<u16>)> {
    let error = value.get("error").filter(|error| !error.is_null())?;
    let message = ["message", "detail", "type"]
        .iter()
        .find_map(|key| error.get(key).and_then(Value::as_str))
        .or_else(|| error.as_str())
        .map_or_else(|| error.to_string(), str::to_owned);
    // The code often says more than the sentence: `insufficient_quota`, `model_not_found`.
    let kind = error
        .get("code")
        .and_then(Value::as_str)
        .filter(|kind| kind.parse::<u16>().is_err() && !message.contains(kind));
    let message = kind.map_or_else(|| message.clone(), |kind| format!("{message} ({kind})"));
    let code = ["code", "status"].iter().find_map(|key| {
        let code = error.get(key)?;
        code.as_u64().or_else(|| code.as_str()?.parse().ok()).and_then(|n| u16::try_from(n).ok())
    });
    Some((message, code))
}

/// Returns the text of a refusal's body, of whatever form.
pub(super) fn refusal_message(body: &str) -> String {
    let Ok(value) = serde_json::from_str::<Value>(body) else { return body.to_owned() };
    error_in(&value).map(|(message, _)| message).unwrap_or_else(|| {
        ["message", "detail"]
            .iter()
            .find_map(|key| value.get(key).and_then(Value::as_str))
            .map_or_else(|| body.to_owned(), str::to_owned)
    })
}

/// Returns the text of a message or a delta: a string, or an array of text parts, or the refusal.
pub(super) fn answer_text(message: &Value) -> String {
    let text = content_text(message);
    if !text.is_empty() {
        return text;
    }
    message.get("refusal").and_then(Value::as_str).unwrap_or_default().to_owned()
}

fn content_text(message: &Value) -> String {
    match message.get("content") {
        Some(Value::String(text)) => text.clone(),
        Some(Value::Array(parts)) => parts
            .iter()
            .filter_map(|part| part.as_str().or_else(|| part.get("text")?.as_str()))
            .collect(),
        // Some endpoints parse a JSON answer before they send it.
        Some(value @ Value::Object(_)) => value.to_string(),
        _ => String::new(),
    }
}

/// Returns the model's reasoning where the endpoint sends it beside the answer.
pub(super) fn reasoning(message: &Value) -> Option<String> {
    ["reasoning_content", "reasoning"]
        .iter()
        .find_map(|key| message.get(key).and_then(Value::as_str))
        .filter(|text| !text.is_empty())
        .map(str::to_owned)
}

pub(super) fn finish_reason(choice: &Value) -> Option<String> {
    choice.get("finish_reason").and_then(Value::as_str).map(str::to_owned)
}

pub(super) fn model_name(value: &Value) -> Option<String> {
    value.get("model").and_then(Value::as_str).filter(|name| !name.is_empty()).map(str::to_owned)
}

/// Returns the token counts under either of their usual names.
pub(super) fn usage(value: &Value) -> Option<Usage> {
    let usage = value.get("usage").filter(|usage| usage.is_object())?;
    let count = |names: [&str; 2]| {
        names
            .iter()
            .find_map(|name| usage.get(name))
            .and_then(|value| value.as_u64().or_else(|| value.as_f64().map(|f| f.max(0.0) as u64)))
            .unwrap_or_default()
    };
    let details = ["prompt_tokens_details", "input_tokens_details"];
    let details = details.iter().find_map(|name| usage.get(name));
    let cached = details.and_then(|details| details.get("cached_tokens")).and_then(Value::as_u64);
    let input_tokens = count(["prompt_tokens", "input_tokens"]);
    Some(Usage {
        input_tokens,
        output_tokens: count(["completion_tokens", "output_tokens"]),
        cached_tokens: cached.unwrap_or_default().min(input_tokens),
    })
}

fn tool_calls(message: &Value) -> Vec<ToolCall> {
    let calls: Vec<&Value> = match message.get("tool_calls").and_then(Value::as_array) {
        Some(calls) => calls.iter().collect(),
        // The form before tools: one bare function call.
        None => message.get("function_call").filter(|call| call.is_object()).into_iter().collect(),
    };
    let read = calls.into_iter().map(|call| {
        let function = call.get("function").unwrap_or(call);
        PartialCall {
            id: call.get("id").and_then(Value::as_str).map(str::to_owned),
            name: function.get("name").and_then(Value::as_str).unwrap_or_default().to_owned(),
            arguments: function.get("arguments").cloned().unwrap_or(Value::Null),
        }
    });
    finish_calls(read)
}

/// A tool call as it stood in an answer or was collected from a stream.
pub(super) struct PartialCall {
    pub id: Option<String>,
    pub name: String,
    pub arguments: Value,
}

/// Gives every call an id of its own and reads its arguments.
pub(super) fn finish_calls(calls: impl Iterator<Item = PartialCall>) -> Vec<ToolCall> {
    let mut done: Vec<ToolCall> = Vec::new();
    for (index, call) in calls.filter(|call| !call.name.is_empty()).enumerate() {
        let id = call
            .id
            .filter(|id| !id.is_empty() && !done.iter().any(|other| other.id == *id))
            .unwrap_or_else(|| format!("call_{index}"));
        done.push(ToolCall { id, name: call.name, arguments: arguments(call.arguments) });
    }
    done
}

/// Reads arguments: an object, or a string that holds one; any other text is kept as it is.
fn arguments(value: Value) -> Value {
    match value {
        Value::Null => json!({}),
        Value::String(text) if text.trim().is_empty() => json!({}),
        Value::String(text) => match serde_json::from_str(&text) {
            Ok(Value::Object(object)) => object.into(),
            Ok(Value::Null) => json!({}),
            _ => Value::String(text),
        },
        other => other,
    }
}

/// Cuts a text to what fits into an error, on one line.
pub(super) fn excerpt(text: &str) -> String {
    const CHARS: usize = 400;
    let mut line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    if let Some((end, _)) = line.char_indices().nth(CHARS) {
        line.truncate(end);
        line.push('…');
    }
    line
}
