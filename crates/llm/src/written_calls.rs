//! Reads tool calls that a model wrote into its text, in the forms that chat templates teach.
//!
//! A call runs only if the request offers tools, and never if the request itself contains it: then the model quotes
//! material, which may contain foreign calls.

use serde_json::{Map, Value, json};

use crate::cleaning::{Cleaned, WrittenCall};
use crate::{ChatRequest, MessageRole, escape, pythonic, schema::takes};

/// A call by name, its arguments as they were written.
pub(super) type Call = (String, Value);

/// Removes the calls from an answer; calls that cannot run are named in its text.
pub(super) fn take(request: &ChatRequest, cleaned: &mut Cleaned) -> Vec<Call> {
    let mut calls = Vec::new();
    let mut notes = Vec::new();
    for written in std::mem::take(&mut cleaned.calls) {
        // A name alone is in many texts.
        let is_material = is_quoted(request, &written.body)
            && (!is_tool(request, written.body.trim()) || is_quoted(request, "<tool_call>"));
        let read = if is_material { Vec::new() } else { read(request, &written) };
        if read.is_empty() || request.tools.is_empty() {
            let names: Vec<String> = read.into_iter().map(|(name, _)| name).collect();
            let names =
                if names.is_empty() { String::new() } else { format!(": {}", names.join(", ")) };
            notes.push(format!("[a tool call in the text was not made{names}]"));
        } else {
            calls.extend(read);
        }
    }
    if calls.is_empty() && !is_quoted(request, &cleaned.content) {
        calls = bare(request, &cleaned.content);
        if !calls.is_empty() {
            cleaned.content.clear();
        }
    }
    if !cleaned.content.is_empty() {
        notes.insert(0, std::mem::take(&mut cleaned.content));
        cleaned.content = notes.join("\n");
    }
    calls
}

fn is_tool(request: &ChatRequest, name: &str) -> bool {
    request.tools.iter().any(|tool| tool.name == name)
}

fn is_quoted(request: &ChatRequest, text: &str) -> bool {
    let text = text.trim();
    let escaped = escape(text);
    let is_material = |role| matches!(role, MessageRole::User | MessageRole::Tool);
    let mut material = request.messages.iter().filter(|message| is_material(message.role));
    !text.is_empty()
        && material.any(|one| one.content.contains(text) || one.content.contains(&escaped))
}

/// Reads a whole answer that is only a call of one of the request's tools.
fn bare(request: &ChatRequest, content: &str) -> Vec<Call> {
    let text = content.trim();
    let fenced = text.strip_prefix("```").and_then(|rest| rest.strip_suffix("```"));
    let text = fenced.map_or(text, |text| text.strip_prefix("json").unwrap_or(text)).trim();
    let has_arguments = text.contains("\"arguments\"") || text.contains("\"parameters\"");
    let is_json = has_arguments && text.starts_with(['{', '[']);
    let calls = if is_json { objects(text) } else { pythonic::calls(text) };
    let is_known = |(name, _): &Call| is_tool(request, name);
    if calls.iter().all(is_known) { calls } else { Vec::new() }
}

fn read(request: &ChatRequest, written: &WrittenCall) -> Vec<Call> {
    let body = written.body.trim();
    if let Some(name) = &written.name {
        return vec![(name.clone(), Value::String(body.to_owned()))];
    }
    if body.contains("[ARGS]") {
        return listed(body);
    }
    if let Some(rest) = body.strip_prefix("<function=") {
        let Some((name, rest)) = rest.split_once('>') else { return Vec::new() };
        let rest = rest.trim().trim_end_matches("</function>").trim();
        // Llama writes the arguments as JSON, Qwen's coders one by one.
        let arguments = if rest.starts_with('{') {
            Value::String(rest.to_owned())
        } else {
            fields(request, name, rest, ["<parameter=", ">", "</parameter>"])
        };
        return vec![(name.trim().to_owned(), arguments)];
    }
    if let Some((name, rest)) =
        body.strip_prefix("<invoke name=\"").and_then(|rest| rest.split_once("\">"))
    {
        let marks = ["<parameter name=\"", "\">", "</parameter>"];
        return vec![(name.to_owned(), fields(request, name, rest, marks))];
    }
    // Kimi and DeepSeek: the name, a mark, and the arguments.
    for mark in ["<|tool_call_argument_begin|>", "<｜tool▁sep｜>"] {
        let Some((name, rest)) = body.split_once(mark) else { continue };
        let (name, arguments) = match rest.trim_start().split_once('\n') {
            Some((own, arguments)) if name.trim() == "function" => (own, arguments),
            _ => (name, rest),
        };
        let name = name.trim().trim_start_matches("functions.");
        let is_number = |number: &str| number.bytes().all(|byte| byte.is_ascii_digit());
        let numbered = name.rsplit_once(':').filter(|(_, number)| is_number(number));
        let name = numbered.map_or(name, |(name, _)| name);
        let arguments = arguments.trim().trim_start_matches("```json").trim_matches('`').trim();
        return vec![(name.to_owned(), Value::String(arguments.to_owned()))];
    }
    // GLM: the name, and each argument between marks.
    if let Some((name, rest)) = body.split_once("<arg_key>") {
        let name = name.trim();
        let marks = ["<arg_key>", "</arg_key>", "</arg_value>"];
        return vec![(name.to_owned(), fields(request, name, &format!("<arg_key>{rest}"), marks))];
    }
    let calls = objects(body);
    let calls = if calls.is_empty() { pythonic::calls(body) } else { calls };
    // GLM: the name alone, of a tool without arguments.
    if calls.is_empty() && is_tool(request, body) {
        return vec![(body.to_owned(), json!({}))];
    }
    calls
}

/// Reads Mistral's calls: `NAME[ARGS]{…}` or `NAME[CALL_ID]ID[ARGS]{…}`, each further one after `[TOOL_CALLS]`.
fn listed(body: &str) -> Vec<Call> {
    let mut calls = Vec::new();
    let mut rest = body;
    while let Some((name, after)) = rest.split_once("[ARGS]") {
        let name = name.trim().trim_start_matches("[TOOL_CALLS]");
        let name = name.split("[CALL_ID]").next().unwrap_or_default().trim();
        let mut values = serde_json::Deserializer::from_str(after).into_iter::<Value>();
        let arguments = match values.next() {
            Some(Ok(arguments)) => {
                rest = &after[values.byte_offset()..];
                arguments
            }
            _ => {
                rest = "";
                Value::String(after.trim().to_owned())
            }
        };
        calls.push((name.to_owned(), arguments));
    }
    calls
}

/// Reads arguments that are written one by one: a mark before the name, one after it, one after the value.
fn fields(request: &ChatRequest, tool: &str, text: &str, marks: [&str; 3]) -> Value {
    let [before, after, end] = marks;
    let schema = request.tools.iter().find(|one| one.name == tool).map(|one| &one.parameters);
    let mut arguments = Map::new();
    for field in text.split(before).skip(1) {
        let Some((name, value)) = field.split_once(after) else { continue };
        let value = value.split(end).next().unwrap_or_default();
        let value = value.trim().trim_start_matches("<arg_value>").trim();
        let takes = |kind: &str| schema.is_some_and(|it| takes(property(it, name.trim()), kind));
        let parsed: Option<Value> = serde_json::from_str(value).ok();
        let parsed = parsed.filter(|it| takes(kind(it)) || !takes("string"));
        let argument = parsed.unwrap_or_else(|| Value::String(value.to_owned()));
        arguments.insert(name.trim().to_owned(), argument);
    }
    arguments.into()
}

fn property<'a>(schema: &'a Value, name: &str) -> &'a Value {
    let property = &schema["properties"][name];
    let reference = property["$ref"].as_str().and_then(|place| place.strip_prefix('#'));
    reference.and_then(|place| schema.pointer(place)).unwrap_or(property)
}

/// Returns the type of a value in words of JSON Schema.
fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(number) if number.is_f64() => "number",
        Value::Number(_) => "integer",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

/// Reads calls that are JSON objects, in sequence or in a list; `None` if there is other text.
fn objects(text: &str) -> Vec<Call> {
    let values: Result<Vec<Value>, _> =
        serde_json::Deserializer::from_str(text).into_iter::<Value>().collect();
    let values = values.unwrap_or_default().into_iter().flat_map(|value| match value {
        Value::Array(items) => items,
        other => vec![other],
    });
    values.map(|value| object(&value)).collect::<Option<Vec<_>>>().unwrap_or_default()
}

fn object(value: &Value) -> Option<Call> {
    let function = value.get("function");
    let inner = function.filter(|inner| inner.is_object()).unwrap_or(value);
    let name = inner.get("name").or_else(|| inner.get("tool_name")).or(function)?.as_str()?;
    let arguments = ["arguments", "parameters"].iter().find_map(|key| inner.get(key));
    let arguments = arguments.or_else(|| value.get("parameters")).cloned();
    Some((name.to_owned(), arguments.unwrap_or_else(|| json!({}))))
}
