//! Writes requests, and reads answers leniently, in the variants of compatible endpoints.

use std::collections::HashSet;

use async_openai::types::chat::{
    ChatCompletionMessageToolCall, ChatCompletionMessageToolCalls, ChatCompletionTool,
    ChatCompletionTools, FunctionCall, FunctionObject,
};
use serde_json::{Map, Value, json};

use super::dialect::{Forms, JsonForm};
use crate::types::{BROKEN, FILTERED, LENGTH};
use crate::{
    ChatMessage, ChatRequest, ChatResponse, OutputFormat, ToolCall, ToolSpec, Usage, attached,
    bounds, prompts,
    schema::{self, sendable},
};
use perihelion_settings::config::{Inputs, ModelSettings, Protocol};

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
                let schema = sendable(&bounded(request, format, settings));
                let schema = if forms.bounds { schema } else { schema::unbounded(schema) };
                let schema = json!({ "name": format.name, "strict": true, "schema": schema });
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
        let tools: Vec<Value> =
            request.tools.iter().map(|spec| tool(spec, forms.plain_tools)).collect();
        body.insert("tools".into(), tools.into());
    }
    let temperature = match settings.temperature {
        // A model that is certain of a bad answer has to wander, and one that wanders to settle.
        Some(..0.5) if request.manner.is_varied => Some(0.8),
        _ if request.manner.is_varied => Some(0.2),
        usual => usual,
    };
    if let Some(temperature) = temperature.filter(|_| forms.temperature) {
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

/// Returns the schema of an answer as it is enforced: short enough for the output limit of these settings.
pub(super) fn bounded(
    request: &ChatRequest,
    format: &OutputFormat,
    settings: &ModelSettings,
) -> Value {
    let Some(tokens) = settings.max_tokens.filter(|_| request.manner.is_bounded) else {
        return format.schema.clone();
    };
    // Small models ramble on in digits, each a token; good ones write words.
    let chars_per_token = if request.manner.is_watched {
        1
    } else if settings.protocol == Protocol::Compact {
        2
    } else {
        3
    };
    bounds::fitted(&format.schema, tokens, chars_per_token)
}

fn tool(tool: &ToolSpec, is_plain: bool) -> Value {
    let parameters = sendable(&tool.parameters);
    let function = FunctionObject {
        name: tool.name.clone(),
        description: Some(tool.description.clone()),
        parameters: Some(if is_plain { schema::plain(&parameters) } else { parameters }),
        strict: None,
    };
    json!(ChatCompletionTools::Function(ChatCompletionTool { function }))
}

fn call(call: &ToolCall) -> Value {
    let arguments = match &call.arguments {
        Value::String(text) => text.clone(),
        value => value.to_string(),
    };
    let function = FunctionCall { name: call.name.clone(), arguments };
    let call = ChatCompletionMessageToolCall { id: call.id.clone(), function };
    json!(ChatCompletionMessageToolCalls::Function(call))
}

fn message(message: &ChatMessage, takes: &Inputs) -> Value {
    let only_calls = message.content.is_empty() && !message.tool_calls.is_empty();
    let content = if only_calls {
        Value::Null
    } else {
        attached::content(&message.content, &message.attached, takes)
    };
    let mut object = json!({ "role": message.role, "content": content });
    if !message.tool_calls.is_empty() {
        object["tool_calls"] = message.tool_calls.iter().map(call).collect();
    }
    if let Some(id) = &message.tool_call_id {
        object["tool_call_id"] = id.clone().into();
    }
    object
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

pub(super) fn too_many_calls(calls: usize) -> String {
    format!("it calls {calls} tools or more in one answer, at most: {MAX_CALLS}")
}

/// Why an answer was unreadable; of any length, as the end of a sentence.
pub(super) enum Unusable {
    /// The same request may be answered properly.
    Hiccup(String),
    /// Such an answer would come again.
    Refused(String),
}

pub(super) fn response(value: &Value, model: &str) -> Result<ChatResponse, Unusable> {
    let Some(choices) = value.get("choices").filter(|choices| !choices.is_null()) else {
        return Err(Unusable::Refused(format!("it has no `choices`: {value}")));
    };
    let Some(choice) = choices.get(0) else {
        return Err(Unusable::Hiccup("its `choices` are empty".to_owned()));
    };
    let Some(message) = choice.get("message").filter(|message| message.is_object()) else {
        return Err(Unusable::Hiccup(format!("its choice has no `message`: {choice}")));
    };
    let calls = message.get("tool_calls").and_then(Value::as_array).map_or(0, Vec::len);
    if calls > MAX_CALLS {
        return Err(Unusable::Refused(too_many_calls(calls)));
    }
    Ok(ChatResponse {
        content: answer_text(message),
        tool_calls: tool_calls(message),
        model: model_name(value).unwrap_or_else(|| model.to_owned()),
        provider: None,
        finish_reason: finish_reason(choice),
        usage: usage(value).unwrap_or_default(),
        reasoning: reasoning(message),
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
    match message.get("content").or_else(|| message.get("text")) {
        Some(Value::String(text)) => text.clone(),
        Some(Value::Array(parts)) => parts
            .iter()
            .filter(|part| !is_reasoning(part))
            .filter_map(|part| part.as_str().or_else(|| part.get("text")?.as_str()))
            .collect(),
        // Some endpoints parse a JSON answer before they send it.
        Some(value @ Value::Object(_)) => value.to_string(),
        _ => String::new(),
    }
}

fn is_reasoning(part: &Value) -> bool {
    matches!(part["type"].as_str(), Some("reasoning" | "thinking"))
}

/// Returns the model's reasoning if the endpoint sends it separately.
pub(super) fn reasoning(message: &Value) -> Option<String> {
    let beside = ["reasoning_content", "reasoning", "thinking"];
    let beside = beside.iter().find_map(|key| message.get(key).and_then(Value::as_str));
    let parts = message.get("content").and_then(Value::as_array).into_iter().flatten();
    let within: String = parts
        .filter(|part| is_reasoning(part))
        .filter_map(|part| part["text"].as_str().or_else(|| part["thinking"].as_str()))
        .collect();
    Some(beside.map_or(within, str::to_owned)).filter(|text| !text.is_empty())
}

/// Returns why the answer ended; servers' words for a limit, a filter or a failure become one name each.
pub(super) fn finish_reason(choice: &Value) -> Option<String> {
    let reason = choice.get("finish_reason")?.as_str().filter(|reason| !reason.is_empty())?;
    Some(match reason.to_lowercase().as_str() {
        "length" | "max_tokens" | "max_output_tokens" | "model_length" | "incomplete" => {
            LENGTH.to_owned()
        }
        "content_filter"
        | "content_filtered"
        | "safety"
        | "sensitive"
        | "refusal"
        | "recitation"
        | "guardrail_intervened" => FILTERED.to_owned(),
        "error"
        | "abort"
        | "aborted"
        | "cancelled"
        | "canceled"
        | "failed"
        | "timeout"
        | "network_error"
        | "server_error"
        | "insufficient_system_resource" => BROKEN.to_owned(),
        _ => reason.to_owned(),
    })
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
        estimated: false,
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

pub(super) struct PartialCall {
    pub id: Option<String>,
    pub name: String,
    pub arguments: Value,
}

/// Reads the arguments of calls; those without an ID have an empty one.
pub(super) fn finish_calls(calls: impl Iterator<Item = PartialCall>) -> Vec<ToolCall> {
    let finished = calls.filter(|call| !call.name.is_empty()).map(|call| ToolCall {
        id: call.id.unwrap_or_default(),
        name: call.name,
        arguments: arguments(call.arguments),
    });
    finished.collect()
}

pub(super) fn written(calls: Vec<(String, Value)>) -> Vec<ToolCall> {
    let partial = |(name, arguments)| PartialCall { id: None, name, arguments };
    finish_calls(calls.into_iter().map(partial))
}

/// Gives every call an id that no other call of the conversation has, and the characters that its prompt escaped.
pub(super) fn settle(calls: &mut [ToolCall], request: &ChatRequest) {
    if calls.is_empty() {
        return;
    }
    let escapes = prompts::escapes(request);
    let earlier = request.messages.iter().flat_map(|message| &message.tool_calls);
    let mut taken: HashSet<String> = earlier.map(|call| call.id.clone()).collect();
    let sent: HashSet<String> = calls.iter().map(|call| call.id.clone()).collect();
    let mut number = taken.len();
    for (index, call) in calls.iter_mut().enumerate() {
        number = number.max(index);
        prompts::unescape(&mut call.arguments, &escapes);
        if call.id.is_empty() || taken.contains(&call.id) {
            let is_free = |id: &String| !taken.contains(id) && !sent.contains(id);
            let ids = (number..).map(|number| format!("call_{number}"));
            call.id = ids.into_iter().find(is_free).unwrap_or_default();
        }
        taken.insert(call.id.clone());
    }
}

/// Reads arguments: an object, or a string with one; any other text stays unchanged.
pub(super) fn arguments(value: Value) -> Value {
    match value {
        Value::Null => json!({}),
        Value::String(text) if text.trim().is_empty() => json!({}),
        Value::String(text) => match serde_json::from_str(&text) {
            Ok(Value::Object(object)) => object.into(),
            Ok(Value::Null) => json!({}),
            // Some endpoints encode them twice.
            Ok(Value::String(inner)) if inner.starts_with('{') => arguments(inner.into()),
            _ => Value::String(text),
        },
        other => other,
    }
}
