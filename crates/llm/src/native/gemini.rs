//! Gemini's `generateContent` and `streamGenerateContent`.
//!
//! Deliberately absent: the model's thought signatures, which the state would have to store. If one is checked, the
//! documented word for a missing one replaces it.

use serde_json::{Map, Value, json};

use super::{Form, arguments, bound, conversation, counted, items, message, tools};
use crate::attached::Part;

const NO_SIGNATURE: &str = "skip_thought_signature_validator";

pub(super) fn body(chat: &Value) -> Value {
    let (mut system, contents) = conversation(chat, &FORM);
    let tools = tools(chat, "parametersJsonSchema");
    let mut generation = Map::new();
    if let Some(temperature) = chat.get("temperature") {
        generation.insert("temperature".into(), temperature.clone());
    }
    if let Some(bound) = bound(chat) {
        generation.insert("maxOutputTokens".into(), bound.clone());
    }
    if let Some(format) = chat.get("response_format") {
        let schema = &format["json_schema"]["schema"];
        if tools.is_empty() {
            generation.insert("responseMimeType".into(), "application/json".into());
            if !schema.is_null() {
                generation.insert("responseJsonSchema".into(), schema.clone());
            }
        } else if !schema.is_null() {
            // Beside tools no form of the answer can be demanded.
            system.push(json!({ "text": format!(
                "Where you call no tool, answer with one JSON object and nothing else. It must be valid against this \
                 JSON Schema:\n{schema}"
            ) }));
        }
    }
    let mut body = Map::new();
    if !system.is_empty() {
        body.insert("systemInstruction".into(), json!({ "parts": system }));
    }
    body.insert("contents".into(), contents.into());
    if !tools.is_empty() {
        body.insert("tools".into(), json!([{ "functionDeclarations": tools }]));
    }
    if !generation.is_empty() {
        body.insert("generationConfig".into(), generation.into());
    }
    body.into()
}

const FORM: Form = Form {
    assistant: "model",
    key: "parts",
    part: |part| match part {
        Part::Text(text) => json!({ "text": text }),
        Part::Image { media_type, data } | Part::File { media_type, data, .. } => {
            json!({ "inlineData": { "mimeType": media_type, "data": data } })
        }
    },
    call: |nth, call| {
        let function = &call["function"];
        let called = json!({ "name": function["name"], "args": arguments(function) });
        // The first call of an answer carries the signature of all.
        match nth {
            0 => json!({ "functionCall": called, "thoughtSignature": NO_SIGNATURE }),
            _ => json!({ "functionCall": called }),
        }
    },
    result: |_, tool, text| json!({ "functionResponse": { "name": tool, "response": { "result": text } } }),
};

/// Reads an answer or a piece of a streamed one, which have the same form; `place` is `message` or `delta`.
pub(super) fn answer(value: Value, place: &str) -> Value {
    let usage = value.get("usageMetadata").map(usage);
    let Some(candidate) = value.get("candidates").and_then(|candidates| candidates.get(0)) else {
        if let Some(reason) = value["promptFeedback"]["blockReason"].as_str() {
            let message = format!("the prompt was blocked: {reason}");
            return json!({ "error": { "message": message, "code": 400 } });
        }
        return match usage {
            Some(usage) => json!({ "choices": [], "usage": usage }),
            None => value,
        };
    };
    let mut text = String::new();
    let mut reasoning = String::new();
    let mut calls = Vec::new();
    for part in items(&candidate["content"]["parts"]) {
        let words = part["text"].as_str().unwrap_or_default();
        if part["thought"] == true {
            reasoning.push_str(words)
        } else {
            text.push_str(words)
        }
        if let Some(call) = part.get("functionCall") {
            let arguments = call.get("args").cloned().unwrap_or_else(|| json!({}));
            let function = json!({ "name": call["name"], "arguments": arguments });
            calls.push(json!({ "id": call["id"], "function": function }));
        }
    }
    let reason = candidate["finishReason"].as_str().map(|reason| match reason {
        "STOP" if calls.is_empty() => "stop",
        "STOP" => "tool_calls",
        "MAX_TOKENS" => "length",
        "MALFORMED_FUNCTION_CALL"
        | "UNEXPECTED_TOOL_CALL"
        | "TOO_MANY_TOOL_CALLS"
        | "FINISH_REASON_UNSPECIFIED"
        | "OTHER" => "error",
        _ => "content_filter",
    });
    json!({
        "model": value["modelVersion"],
        "choices": [{ place: message(text, reasoning, calls), "finish_reason": reason }],
        "usage": usage,
    })
}

fn usage(usage: &Value) -> Value {
    let count = |name: &str| usage[name].as_u64().unwrap_or_default();
    let received = [count("candidatesTokenCount"), count("thoughtsTokenCount")];
    counted(&[count("promptTokenCount")], &received, count("cachedContentTokenCount"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 15.7
    #[test]
    fn results_name_their_tools_and_the_schema_is_demanded() {
        let body = body(&json!({
            "model": "m", "max_tokens": 9,
            "messages": [
                { "role": "system", "content": "Be brief." },
                { "role": "user", "content": "Look." },
                { "role": "assistant", "content": "I do.", "tool_calls": [
                    { "id": "c1", "function": { "name": "a", "arguments": "{}" } } ] },
                { "role": "tool", "tool_call_id": "c1", "content": "one" },
            ],
            "response_format": { "type": "json_schema", "json_schema": {
                "name": "d", "schema": { "type": "object" } } },
        }));
        assert_eq!(body["systemInstruction"]["parts"][0]["text"], "Be brief.");
        assert_eq!(body["contents"][1]["role"], "model");
        assert_eq!(body["contents"][1]["parts"][1]["thoughtSignature"], NO_SIGNATURE);
        let response = &body["contents"][2]["parts"][0]["functionResponse"];
        assert_eq!(response, &json!({ "name": "a", "response": { "result": "one" } }));
        let generation = &body["generationConfig"];
        assert_eq!(generation["responseJsonSchema"], json!({ "type": "object" }));
        assert_eq!(generation["maxOutputTokens"], 9);
    }

    #[test]
    fn thoughts_stay_out_of_the_text_and_a_blocked_prompt_is_an_error() {
        let read = answer(
            json!({ "modelVersion": "m-1", "candidates": [{ "finishReason": "STOP", "content": { "parts": [
                { "text": "hm", "thought": true }, { "text": "Yes." },
                { "functionCall": { "name": "a", "args": { "x": 1 } } } ] } }],
                "usageMetadata": { "promptTokenCount": 4, "candidatesTokenCount": 2, "thoughtsTokenCount": 3 } }),
            "message",
        );
        let message = &read["choices"][0]["message"];
        assert_eq!(
            (&message["content"], &message["reasoning_content"]),
            (&json!("Yes."), &json!("hm"))
        );
        assert_eq!(message["tool_calls"][0]["function"]["arguments"], json!({ "x": 1 }));
        assert_eq!(read["usage"]["completion_tokens"], 5);
        let blocked = answer(json!({ "promptFeedback": { "blockReason": "SAFETY" } }), "message");
        assert_eq!(blocked["error"]["message"], "the prompt was blocked: SAFETY");
    }
}
