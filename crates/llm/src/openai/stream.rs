//! Collects a streamed answer from its chunks, and parses them.

use std::borrow::Cow;

use perihelion_http::paired;
use serde_json::{Map, Value};

use super::pieces::Pieces;
use super::wire::{self, PartialCall};
use crate::{ChatResponse, Usage};

/// A call by its index, with the last piece of its arguments.
type StreamedCall = (u64, PartialCall, String);

/// The received parts of an answer, without its text.
#[derive(Default)]
pub(super) struct StreamedAnswer {
    text: Pieces,
    reasoning: Pieces,
    calls: Vec<StreamedCall>,
    model: Option<String>,
    finish_reason: Option<String>,
    usage: Option<Usage>,
    /// Whether a choice had the index 0: some endpoints number the chunks of a single answer instead.
    has_first: bool,
}

impl StreamedAnswer {
    /// Accepts a chunk; returns its piece of text, which can be empty.
    pub(super) fn take(&mut self, chunk: &Value) -> String {
        if let Some(usage) = wire::usage(chunk) {
            self.usage = Some(usage);
        }
        self.model = self.model.take().or_else(|| wire::model_name(chunk));
        // Only the first answer was requested.
        let is_first = |choice: &&Value| choice["index"].as_u64().is_none_or(|index| index == 0);
        let choices = chunk["choices"].as_array().map_or(&[][..], Vec::as_slice);
        let first = choices.iter().find(is_first);
        self.has_first |= first.is_some();
        let only = choices.first().filter(|_| !self.has_first);
        let Some(choice) = first.or(only) else { return String::new() };
        if let Some(reason) = wire::finish_reason(choice) {
            self.finish_reason = Some(reason);
        }
        // Some endpoints send the last chunk, or the only one, as a whole message, or the text alone.
        let delta = choice.get("delta").or_else(|| choice.get("message")).unwrap_or(choice);
        let is_whole = choice.get("delta").is_none();
        if let Some(piece) = wire::reasoning(delta) {
            self.reasoning.take(piece, is_whole);
        }
        for call in delta.get("tool_calls").and_then(Value::as_array).into_iter().flatten() {
            self.take_call(call);
        }
        self.text.take(wire::answer_text(delta), is_whole)
    }

    /// Returns the remaining text when the stream ended.
    pub(super) fn rest(&mut self) -> String {
        self.reasoning.rest();
        self.text.rest()
    }

    fn take_call(&mut self, call: &Value) {
        let id = call.get("id").and_then(Value::as_str).filter(|id| !id.is_empty());
        let function = call.get("function").unwrap_or(call);
        let name = function.get("name").and_then(Value::as_str).unwrap_or_default();
        let last = self.calls.last().map_or(0, |(index, ..)| *index);
        let is_last =
            self.calls.last().is_none_or(|(_, of, _)| id.is_some() && of.id.as_deref() == id);
        // Without an index, a name begins a new call and anything else continues the last.
        let index = call.get("index").and_then(Value::as_u64);
        let index = index.unwrap_or(if name.is_empty() || is_last { last } else { last + 1 });
        // The pieces of a call come one after the other.
        let known = self.calls.iter().rposition(|(at, ..)| *at == index);
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
            self.calls.push((index, fresh, String::new()));
            self.calls.len() - 1
        });
        let (_, streamed, last) = &mut self.calls[at];
        if let Some(id) = id {
            streamed.id = Some(id.to_owned());
        }
        // Some endpoints repeat it with every piece.
        if name.starts_with(&streamed.name) {
            streamed.name.clear();
        }
        streamed.name.push_str(name);
        match (function.get("arguments"), &mut streamed.arguments) {
            (Some(Value::String(piece)), Value::String(text)) => {
                text.push_str(piece);
                last.clone_from(piece);
            }
            (Some(Value::Null) | None, _) => {}
            (Some(value), slot) => *slot = value.clone(),
        }
    }

    pub(super) fn calls(&self) -> usize {
        self.calls.len()
    }

    pub(super) fn has_reasoning(&self) -> bool {
        !self.reasoning.whole.is_empty()
    }

    pub(super) fn has_ended(&self) -> bool {
        self.finish_reason.is_some()
    }

    /// Returns the whole answer without its text; `model` names it if no chunk did.
    pub(super) fn finish(self, model: &str) -> ChatResponse {
        let is_object = |text: &str| serde_json::from_str::<Map<String, Value>>(text).is_ok();
        let calls = self.calls.into_iter().map(|(_, mut call, last)| {
            // Where each piece repeats those before it, the last is the whole.
            if call.arguments.as_str().is_some_and(|text| !is_object(text)) && is_object(&last) {
                call.arguments = last.into();
            }
            call
        });
        ChatResponse {
            content: String::new(),
            tool_calls: wire::finish_calls(calls),
            model: self.model.unwrap_or_else(|| model.to_owned()),
            provider: None,
            finish_reason: self.finish_reason,
            usage: self.usage.unwrap_or_default(),
            reasoning: Some(self.reasoning.whole).filter(|text| !text.is_empty()),
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

    /// Returns the rest of an answer: its last piece, and the text added to it.
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

    /// Joins surrogate halves at the borders of pieces and replaces lone ones; `None` without any.
    fn repaired(&mut self, json: &str, is_piece: bool) -> Option<String> {
        let half = &mut self.half;
        let repaired = paired(json, |lone| {
            if lone.is_first && is_piece && lone.after.starts_with('"') {
                *half = Some(lone.escape.to_owned());
                return String::new();
            }
            let first = if lone.is_first { None } else { half.take() };
            let first = first.filter(|_| lone.before.ends_with('"'));
            first.map_or_else(|| "\u{fffd}".to_owned(), |first| first + lone.escape)
        });
        match repaired {
            Cow::Borrowed(_) => None,
            Cow::Owned(repaired) => Some(repaired),
        }
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
        let text = streamed.rest();
        ChatResponse { content: text, ..streamed.finish("m") }
    }

    /// Returns what a stream of these texts is read as; the last can come as a whole message.
    fn read(texts: &[&str], last: Option<&str>) -> String {
        let mut streamed = StreamedAnswer::default();
        let mut read = String::new();
        let pieces = texts.iter().map(|text| json!({ "delta": { "content": text } }));
        let last = last.map(|text| json!({ "message": { "content": text } }));
        for choice in pieces.chain(last) {
            read += &streamed.take(&json!({ "choices": [choice] }));
        }
        read + &streamed.rest()
    }

    #[test]
    fn a_text_is_read_once_whether_its_pieces_repeat_what_came_before_or_not() {
        for (texts, last, expected) in [
            (&["Pay", " 1,0", "00"][..], None, "Pay 1,000"),
            (&["P", "Pay 1", "Pay 1,000 to", "Pay 1,000 to Bob"], None, "Pay 1,000 to Bob"),
            (
                &["", "Zahle 100", "Zahle 100", "Zahle 100 an Ä", "Zahle 100 an Ärzte"],
                None,
                "Zahle 100 an Ärzte",
            ),
            (&["Yes", "Yes."], None, "Yes."),
            (&["ha", "ha", "ha!"], None, "hahaha!"),
            (&["{", "{\"next\":", "{\"next\": \"END\"}"], None, "{\"next\": \"END\"}"),
            (&["1", "10", "0"], None, "1100"),
            (&["----------", "----------"], None, "--------------------"),
            (&["Pay 1,000", " to Bob"], Some("Pay 1,000 to Bob"), "Pay 1,000 to Bob"),
            (
                &["Pay 1,000", "Pay 1,000 to", "Pay 1,000 to Bob"],
                Some("Pay 1,000 to Bob"),
                "Pay 1,000 to Bob",
            ),
            (&["the whole text", "the whole text"], None, "the whole text"),
            (
                &["Begun whole", "Begun whole, then", " in pieces"],
                None,
                "Begun whole, then in pieces",
            ),
            (&["one"], None, "one"),
            (&[], Some("alone"), "alone"),
        ] {
            assert_eq!(read(texts, last), expected, "{texts:?}");
        }
    }

    #[test]
    fn only_the_first_of_several_answers_is_read() {
        // An endpoint numbers the chunks of its only answer, and another has several answers.
        let numbered = [(1, "Pay "), (2, "one "), (3, "hundred"), (4, ".")];
        let several = [(0, "Pay "), (1, "Ask "), (1, "2"), (0, "1")];
        for (pieces, expected) in [(numbered, "Pay one hundred."), (several, "Pay 1")] {
            let mut streamed = StreamedAnswer::default();
            let mut read = String::new();
            for (index, text) in pieces {
                let choice = json!({ "index": index, "delta": { "content": text } });
                read += &streamed.take(&json!({ "choices": [choice] }));
            }
            assert_eq!(read + &streamed.rest(), expected);
        }
    }

    #[test]
    fn calls_and_reasoning_whose_pieces_repeat_what_came_before_are_read_once() {
        let call = |arguments: &str| {
            let function = json!({ "name": "read", "arguments": arguments });
            json!({ "reasoning": format!("I read {arguments}"), "tool_calls": [{ "id": "a", "function": function }] })
        };
        let pieces = ["{", "{\"a\": ", "{\"a\": {\"a\"", "{\"a\": {\"a\": 1}}"];
        let response = assembled(&pieces.map(call));
        assert_eq!(response.reasoning.unwrap(), "I read {\"a\": {\"a\": 1}}");
        let [call] = response.tool_calls.as_slice() else { panic!("{:?}", response.tool_calls) };
        assert_eq!((call.name.as_str(), &call.arguments), ("read", &json!({ "a": { "a": 1 } })));
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
