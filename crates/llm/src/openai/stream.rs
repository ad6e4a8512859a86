//! Collects a streamed answer from its chunks, and parses them.

use serde_json::Value;

use super::wire::{self, PartialCall};
use crate::{ChatResponse, Usage};

/// What has arrived of an answer so far, beside its text.
#[derive(Default)]
pub(super) struct StreamedAnswer {
    reasoning: String,
    calls: Vec<(u64, PartialCall)>,
    model: Option<String>,
    finish_reason: Option<String>,
    usage: Option<Usage>,
}

impl StreamedAnswer {
    /// Takes a chunk in; returns its piece of text, empty where it carries none.
    pub(super) fn take(&mut self, chunk: &Value) -> String {
        if let Some(usage) = wire::usage(chunk) {
            self.usage = Some(usage);
        }
        self.model = self.model.take().or_else(|| wire::model_name(chunk));
        let Some(choice) = chunk.get("choices").and_then(|choices| choices.get(0)) else {
            return String::new();
        };
        if let Some(reason) = wire::finish_reason(choice) {
            self.finish_reason = Some(reason);
        }
        // Some endpoints send the last chunk, or the only one, as a whole message.
        let Some(delta) = choice.get("delta").or_else(|| choice.get("message")) else {
            return String::new();
        };
        if let Some(piece) = wire::reasoning(delta) {
            self.reasoning.push_str(&piece);
        }
        for call in delta.get("tool_calls").and_then(Value::as_array).into_iter().flatten() {
            self.take_call(call);
        }
        wire::answer_text(delta)
    }

    fn take_call(&mut self, call: &Value) {
        let id = call.get("id").and_then(Value::as_str).filter(|id| !id.is_empty());
        let function = call.get("function").unwrap_or(call);
        let name = function.get("name").and_then(Value::as_str).unwrap_or_default();
        let last = self.calls.last().map_or(0, |(index, _)| *index);
        // Without an index, a name begins a new call and anything else continues the last.
        let index = call.get("index").and_then(Value::as_u64).unwrap_or_else(|| {
            if name.is_empty() || self.calls.is_empty() { last } else { last + 1 }
        });
        // The pieces of a call come one after the other.
        let known = self.calls.iter().rposition(|(at, _)| *at == index);
        // Some endpoints give every call the same index.
        let is_another = |at: &usize| {
            let earlier = self.calls[*at].1.id.as_deref();
            !name.is_empty() && id.is_some() && earlier.is_some() && earlier != id
        };
        let known = known.filter(|at| !is_another(at));
        if known.is_none() && self.calls.len() > wire::MAX_CALLS {
            // Whatever else comes, the answer is refused.
            return;
        }
        let at = known.unwrap_or_else(|| {
            let fresh = PartialCall { id: None, name: String::new(), arguments: Value::Null };
            self.calls.push((index, fresh));
            self.calls.len() - 1
        });
        let streamed = &mut self.calls[at].1;
        if let Some(id) = id {
            streamed.id = Some(id.to_owned());
        }
        streamed.name.push_str(name);
        match (function.get("arguments"), &mut streamed.arguments) {
            (Some(Value::String(piece)), Value::String(text)) => text.push_str(piece),
            (Some(Value::Null) | None, _) => {}
            (Some(value), slot) => *slot = value.clone(),
        }
    }

    /// Returns how many calls there are.
    pub(super) fn calls(&self) -> usize {
        self.calls.len()
    }

    /// Tells whether the endpoint sends the model's reasoning beside the answer.
    pub(super) fn has_reasoning(&self) -> bool {
        !self.reasoning.is_empty()
    }

    /// Tells whether the endpoint said that the answer has ended.
    pub(super) fn has_ended(&self) -> bool {
        self.finish_reason.is_some()
    }

    /// Returns the whole answer without its text; `model` names it where no chunk did.
    pub(super) fn finish(self, model: &str) -> ChatResponse {
        ChatResponse {
            content: String::new(),
            tool_calls: wire::finish_calls(self.calls.into_iter().map(|(_, call)| call)),
            model: self.model.unwrap_or_else(|| model.to_owned()),
            finish_reason: self.finish_reason,
            usage: self.usage.unwrap_or_default(),
            reasoning: Some(self.reasoning).filter(|text| !text.is_empty()),
        }
    }
}

/// Hands out an answer while it arrives.
pub(super) struct Shown<'a> {
    pub sink: &'a mut (dyn FnMut(&str) + Send),
    /// Bytes that were handed out.
    pub bytes: &'a mut usize,
}

impl Shown<'_> {
    pub(super) fn piece(&mut self, piece: &str) {
        if !piece.is_empty() {
            *self.bytes += piece.len();
            (self.sink)(piece);
        }
    }

    /// Hands out what is left of an answer: its last piece, and what was added to the text that arrived.
    pub(super) fn rest(&mut self, answer: &ChatResponse, text: &str, last: &str) {
        if *self.bytes == 0 {
            return self.piece(&answer.content);
        }
        self.piece(last);
        self.piece(answer.content.strip_prefix(text).unwrap_or_default());
    }
}

/// Parses JSON in which halves of characters are escaped alone, as text that was cut during an emoji has them.
#[derive(Default)]
pub(super) struct Parser {
    /// The first half of a character that ended a piece of a streamed answer; the next piece begins with the second.
    half: Option<String>,
}

impl Parser {
    pub(super) fn parse(&mut self, json: &str, is_piece: bool) -> serde_json::Result<Value> {
        serde_json::from_str(json).or_else(|error| {
            self.repaired(json, is_piece).map_or(Err(error), |it| serde_json::from_str(&it))
        })
    }

    /// Joins halves where the pieces meet and replaces other lone ones; none if there are none.
    fn repaired(&mut self, json: &str, is_piece: bool) -> Option<String> {
        let unit = |at: usize| {
            let escape = json.get(at..at + 6).filter(|escape| escape.starts_with("\\u"))?;
            u16::from_str_radix(&escape[2..], 16).ok()
        };
        let mut repaired = String::with_capacity(json.len());
        let mut is_changed = false;
        let mut at = 0;
        while let Some(next) = json[at..].find('\\').map(|next| at + next) {
            repaired.push_str(&json[at..next]);
            let is_second = |at| matches!(unit(at), Some(0xdc00..=0xdfff));
            let length = match unit(next) {
                Some(0xd800..=0xdbff) if is_second(next + 6) => 12,
                Some(0xd800..=0xdfff) => 6,
                _ => 1 + json[next + 1..].chars().next().map_or(0, char::len_utf8),
            };
            let escape = &json[next..next + length];
            match unit(next) {
                Some(0xd800..=0xdbff) if length == 6 => {
                    is_changed = true;
                    if is_piece && json[next + 6..].starts_with('"') {
                        self.half = Some(escape.to_owned());
                    } else {
                        repaired.push('\u{fffd}');
                    }
                }
                Some(0xdc00..=0xdfff) => {
                    is_changed = true;
                    match self.half.take().filter(|_| repaired.ends_with('"')) {
                        Some(first) => repaired.extend([first.as_str(), escape]),
                        None => repaired.push('\u{fffd}'),
                    }
                }
                _ => repaired.push_str(escape),
            }
            at = next + length;
        }
        repaired.push_str(&json[at..]);
        is_changed.then_some(repaired)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn assembled(deltas: &[Value]) -> ChatResponse {
        let mut streamed = StreamedAnswer::default();
        for delta in deltas {
            streamed.take(&json!({ "choices": [{ "delta": delta }] }));
        }
        streamed.finish("m")
    }

    #[test]
    fn tool_calls_are_joined_from_their_pieces() {
        let response = assembled(&[
            json!({ "tool_calls": [{ "index": 0, "id": "a", "function": { "name": "read", "arguments": "" } }] }),
            json!({ "tool_calls": [{ "index": 0, "function": { "arguments": "{\"path\"" } }] }),
            json!({ "tool_calls": [{ "index": 1, "id": "b", "function": { "name": "list", "arguments": "{}" } }] }),
            json!({ "tool_calls": [{ "index": 0, "function": { "arguments": ":\"x\"}" } }] }),
        ]);
        assert_eq!(response.tool_calls[0].arguments, json!({ "path": "x" }));
        assert_eq!(response.tool_calls[1].name, "list");
    }

    #[test]
    fn tool_calls_without_index_or_id_are_distinguished() {
        let response = assembled(&[
            json!({ "tool_calls": [{ "function": { "name": "read", "arguments": { "path": "x" } } }] }),
            json!({ "tool_calls": [{ "function": { "name": "read", "arguments": "{\"path\":" } }] }),
            json!({ "tool_calls": [{ "function": { "arguments": "\"y\"}" } }] }),
        ]);
        let calls: Vec<_> =
            response.tool_calls.iter().map(|c| (c.name.as_str(), c.arguments.clone())).collect();
        assert_eq!(calls, [("read", json!({ "path": "x" })), ("read", json!({ "path": "y" }))]);
    }
}
