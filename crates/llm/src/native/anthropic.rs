//! Anthropic's Messages API.
//!
//! A JSON answer is asked for as the input of a tool that the model has to call, which every model of the API knows.
//! The prefix of a request (tools, system, the conversation so far) is marked for the cache, so the next request of a
//! tool loop, which repeats it, costs a tenth for it.

use serde_json::{Map, Value, json};

use super::{Form, arguments, bound, conversation, counted, items, message, tools};
use crate::attached::Part;

/// Default for the tokens of an answer: the API requires a number, and every current model accepts this one.
const MAX_TOKENS: u32 = 8192;

pub(super) fn body(chat: &Value) -> Value {
    let (mut system, mut messages) = conversation(chat, &FORM);
    let mut tools = tools(chat, "input_schema");
    let mut body = Map::new();
    body.insert("model".into(), chat["model"].clone());
    body.insert("max_tokens".into(), bound(chat).cloned().unwrap_or_else(|| MAX_TOKENS.into()));
    if let Some(temperature) = chat.get("temperature") {
        body.insert("temperature".into(), temperature.clone());
    }
    if let Some((name, schema)) = answer_schema(chat) {
        if tools.is_empty() {
            tools.push(json!({
                "name": name,
                "description": "Takes the answer.",
                "input_schema": schema,
            }));
            body.insert("tool_choice".into(), json!({ "type": "tool", "name": name }));
        } else {
            // Beside other tools none can be demanded.
            system.push(block(&format!(
                "Where you call no tool, answer with one JSON object and nothing else. It must be valid against this \
                 JSON Schema (`{name}`):\n{schema}"
            )))
        }
    }
    mark(tools.last_mut());
    mark(system.last_mut());
    mark(messages.last_mut().and_then(|last| last["content"].as_array_mut()?.last_mut()));
    if !tools.is_empty() {
        body.insert("tools".into(), tools.into());
    }
    if !system.is_empty() {
        body.insert("system".into(), system.into());
    }
    body.insert("messages".into(), messages.into());
    body.insert("stream".into(), chat["stream"].clone());
    body.into()
}

/// Marks the end of a prefix that the next request will likely repeat.
fn mark(block: Option<&mut Value>) {
    if let Some(block) = block {
        block["cache_control"] = json!({ "type": "ephemeral" });
    }
}

fn answer_schema(chat: &Value) -> Option<(&str, &Value)> {
    let format = chat.get("response_format")?.get("json_schema")?;
    Some((format["name"].as_str()?, format.get("schema")?))
}

fn block(text: &str) -> Value {
    json!({ "type": "text", "text": text })
}

const FORM: Form = Form {
    assistant: "assistant",
    key: "content",
    part: |part| {
        let source = |media_type: &str, data: &str| json!({ "type": "base64", "media_type": media_type, "data": data });
        match part {
            Part::Text(text) => block(text),
            Part::Image { media_type, data } => {
                json!({ "type": "image", "source": source(media_type, data) })
            }
            Part::File { name, media_type, data } => {
                json!({ "type": "document", "title": name, "source": source(media_type, data) })
            }
        }
    },
    call: |_, call| {
        let function = &call["function"];
        let input = arguments(function);
        json!({ "type": "tool_use", "id": call["id"], "name": function["name"], "input": input })
    },
    result: |id, _, text| json!({ "type": "tool_result", "tool_use_id": id, "content": text }),
};

pub(crate) struct Reader {
    /// The tool whose input is the answer.
    answer: Option<String>,
    /// The place of that call among a stream's blocks.
    answer_at: Option<u64>,
    /// The last word on the tokens of a stream.
    usage: Map<String, Value>,
}

impl Reader {
    pub(super) fn new(chat: &Value) -> Self {
        let answer = answer_schema(chat).filter(|_| items(&chat["tools"]).is_empty());
        let answer = answer.map(|(name, _)| name.to_owned());
        Self { answer, answer_at: None, usage: Map::new() }
    }

    fn is_answer(&self, block: &Value) -> bool {
        block["type"] == "tool_use"
            && self.answer.as_deref().is_some_and(|name| block["name"] == name)
    }

    pub(super) fn whole(&self, value: Value) -> Value {
        let Some(blocks) = value.get("content").and_then(Value::as_array) else { return value };
        let mut text = String::new();
        let mut reasoning = String::new();
        let mut calls = Vec::new();
        for block in blocks {
            match block["type"].as_str() {
                Some("text") => text.push_str(block["text"].as_str().unwrap_or_default()),
                Some("thinking") => {
                    reasoning.push_str(block["thinking"].as_str().unwrap_or_default());
                }
                Some("tool_use") if self.is_answer(block) => text = block["input"].to_string(),
                Some("tool_use") => calls.push(json!({
                    "id": block["id"],
                    "function": { "name": block["name"], "arguments": block["input"] },
                })),
                _ => {}
            }
        }
        let reason = reason(&value["stop_reason"], self.answer.is_some());
        json!({
            "model": value["model"],
            "choices": [{ "message": message(text, reasoning, calls), "finish_reason": reason }],
            "usage": value["usage"].as_object().map(usage),
        })
    }

    pub(super) fn chunk(&mut self, event: Value) -> Value {
        let index = event["index"].as_u64();
        let delta = match event["type"].as_str() {
            Some("message_start") => {
                let message = &event["message"];
                self.count(&message["usage"]);
                return json!({ "model": message["model"], "choices": [] });
            }
            Some("content_block_start") => {
                let block = &event["content_block"];
                if self.is_answer(block) {
                    self.answer_at = index;
                }
                match block["type"].as_str() {
                    Some("tool_use") if self.answer_at != index => json!({ "tool_calls": [{
                        "index": index,
                        "id": block["id"],
                        "function": { "name": block["name"], "arguments": "" },
                    }] }),
                    Some("text") => json!({ "content": block["text"] }),
                    _ => Value::Null,
                }
            }
            Some("content_block_delta") => {
                let delta = &event["delta"];
                match delta["type"].as_str() {
                    Some("text_delta") => json!({ "content": delta["text"] }),
                    Some("thinking_delta") => json!({ "reasoning_content": delta["thinking"] }),
                    Some("input_json_delta") if self.answer_at == index => {
                        json!({ "content": delta["partial_json"] })
                    }
                    Some("input_json_delta") => json!({ "tool_calls": [{
                        "index": index,
                        "function": { "arguments": delta["partial_json"] },
                    }] }),
                    _ => Value::Null,
                }
            }
            Some("message_delta") => {
                self.count(&event["usage"]);
                let reason = reason(&event["delta"]["stop_reason"], self.answer.is_some());
                return json!({
                    "choices": [{ "delta": {}, "finish_reason": reason }],
                    "usage": usage(&self.usage),
                });
            }
            Some("error") => return event,
            _ => Value::Null,
        };
        match delta {
            Value::Null => Value::Null,
            delta => json!({ "choices": [{ "delta": delta }] }),
        }
    }

    /// Takes counts in; later ones hold.
    fn count(&mut self, usage: &Value) {
        for (name, count) in usage.as_object().into_iter().flatten() {
            if !count.is_null() {
                self.usage.insert(name.clone(), count.clone());
            }
        }
    }
}

/// Returns the tokens under the usual names; tokens from or to the cache count as sent.
fn usage(usage: &Map<String, Value>) -> Value {
    let count = |name: &str| usage.get(name).and_then(Value::as_u64).unwrap_or_default();
    let cached = count("cache_read_input_tokens");
    let sent = [count("input_tokens"), cached, count("cache_creation_input_tokens")];
    counted(&sent, &[count("output_tokens")], cached)
}

/// Returns why the answer ended, in the words of Chat Completions.
fn reason(stop: &Value, is_answer: bool) -> Option<&str> {
    Some(match stop.as_str()? {
        "end_turn" | "stop_sequence" => "stop",
        "tool_use" if is_answer => "stop",
        "tool_use" => "tool_calls",
        "max_tokens" | "model_context_window_exceeded" => "length",
        "refusal" => "content_filter",
        other => other,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 15.7
    #[test]
    fn conversation_roles_alternate_and_the_prefix_is_marked_for_caching() {
        let tool = |name: &str| {
            json!({ "type": "function", "function": {
            "name": name, "description": "d", "parameters": { "type": "object" } } })
        };
        let body = body(&json!({
            "model": "m", "temperature": 0.5, "stream": true, "tools": [tool("a"), tool("b")],
            "messages": [
                { "role": "system", "content": "Be brief." },
                { "role": "user", "content": "Look." },
                { "role": "assistant", "content": null, "tool_calls": [
                    { "id": "c1", "function": { "name": "a", "arguments": "{\"x\":1}" } },
                    { "id": "c2", "function": { "name": "b", "arguments": "no object" } } ] },
                { "role": "tool", "tool_call_id": "c1", "content": "one" },
                { "role": "tool", "tool_call_id": "c2", "content": "two" },
                { "role": "user", "content": "And?" },
            ],
        }));
        assert_eq!(body["max_tokens"], MAX_TOKENS);
        assert_eq!(body["system"][0]["text"], "Be brief.");
        assert_eq!(body["system"][0]["cache_control"]["type"], "ephemeral");
        assert!(body["tools"][0].get("cache_control").is_none());
        assert_eq!(body["tools"][1]["cache_control"]["type"], "ephemeral");
        let roles: Vec<&Value> =
            items(&body["messages"]).iter().map(|message| &message["role"]).collect();
        assert_eq!(roles, ["user", "assistant", "user"]);
        assert_eq!(body["messages"][1]["content"][0]["input"], json!({ "x": 1 }));
        assert_eq!(body["messages"][1]["content"][1]["input"], json!({ "text": "no object" }));
        let last = items(&body["messages"][2]["content"]);
        assert_eq!((&last[0]["tool_use_id"], &last[1]["content"]), (&json!("c1"), &json!("two")));
        assert_eq!(last[2]["text"], "And?");
        assert_eq!(last[2]["cache_control"]["type"], "ephemeral");
    }

    #[test]
    fn a_json_answer_is_the_input_of_a_tool_that_must_be_called() {
        let chat = json!({
            "model": "m", "max_tokens": 5, "stream": false,
            "messages": [{ "role": "system", "content": "Decide." }],
            "response_format": { "type": "json_schema", "json_schema": {
                "name": "decision", "strict": true, "schema": { "type": "object" } } },
        });
        let body = body(&chat);
        assert_eq!(body["tool_choice"], json!({ "type": "tool", "name": "decision" }));
        assert_eq!(body["tools"][0]["input_schema"], json!({ "type": "object" }));
        assert_eq!(body["messages"][0]["role"], "user");
        let read = Reader::new(&chat).whole(json!({
            "model": "m-1", "stop_reason": "tool_use",
            "content": [{ "type": "text", "text": "Well." },
                { "type": "tool_use", "id": "t", "name": "decision", "input": { "go": true } }],
            "usage": { "input_tokens": 3, "cache_read_input_tokens": 10,
                "cache_creation_input_tokens": 2, "output_tokens": 4 },
        }));
        assert_eq!(read["choices"][0]["message"]["content"], "{\"go\":true}");
        assert_eq!(read["choices"][0]["finish_reason"], "stop");
        assert_eq!(read["usage"]["prompt_tokens"], 15);
    }
}
