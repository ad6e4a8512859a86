//! Repairs messages that a server wrote almost as the protocol demands, over any transport.
//!
//! The library passes over an answer that it cannot read, and its call waits until the timeout. Here an answer that
//! names the id of a call ends that call: repaired if its meaning is clear, and otherwise as an error with the server's
//! words. Messages that are not answers pass unchanged.

use std::borrow::Cow;

use perihelion_http::paired;
use rmcp::model::ServerJsonRpcMessage;
use serde::de::IgnoredAny;
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use crate::types::text;

/// The library's maximum depth of nested values.
const DEPTH: usize = 127;
/// Of the codes that servers can define, one that has no meaning for the request.
const UNREADABLE: i32 = -32099;
/// Characters of an unreadable answer that are shown.
const SHOWN_CHARS: usize = 300;
/// Words that are invalid in JSON and that several languages write anyway.
const NO_NUMBERS: [&str; 3] = ["-Infinity", "Infinity", "NaN"];

/// The parts of a message by which the library recognises it, the largest of them unread.
#[derive(Deserialize)]
struct Head<'a> {
    jsonrpc: Option<Value>,
    id: Option<Value>,
    #[serde(borrow, default, deserialize_with = "present")]
    method: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    result: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    error: Option<&'a RawValue>,
}

/// Takes null for a value, as the library does.
fn present<'de, D: Deserializer<'de>>(from: D) -> Result<Option<&'de RawValue>, D::Error> {
    Deserialize::deserialize(from).map(Some)
}

impl Head<'_> {
    fn is_proper_result(&self) -> bool {
        let is_object = |part: &RawValue| part.get().starts_with('{');
        self.jsonrpc.as_ref().is_some_and(|version| version == "2.0")
            && self.id.as_ref().is_some_and(Value::is_i64)
            && self.method.is_none()
            && self.error.is_none()
            && self.result.is_some_and(is_object)
    }
}

/// Returns the messages that replace a server's text; `None` if it passes unchanged.
pub(super) fn repaired(text: &[u8]) -> Option<Vec<String>> {
    let unreadable = |why: &str| {
        let words = String::from_utf8_lossy(text);
        // Python's notation of values has other quotation marks.
        let id = id_of(&words).or_else(|| id_of(&words.replace('\'', "\"")))?;
        Some(vec![failure(id, why, &words).to_string()])
    };
    let readable = match std::str::from_utf8(text) {
        Err(error) => {
            return unreadable(&format!("it is not UTF-8 at byte {}", error.valid_up_to()));
        }
        Ok(_) if depth(text) > DEPTH => {
            return unreadable(&format!("it nests values deeper than {DEPTH} levels"));
        }
        Ok(readable) => readable.trim_start_matches('\u{feff}'),
    };
    let paired = paired(readable, |_| "\\ufffd".to_owned());
    let is_one_line = !readable.trim_end().contains('\n');
    let is_proper = is_one_line
        && serde_json::from_str(&paired).is_ok_and(|head: Head<'_>| head.is_proper_result());
    if is_proper {
        return match paired {
            Cow::Borrowed(_) => None,
            Cow::Owned(paired) => Some(vec![paired]),
        };
    }
    // Some servers write several messages without a line's end between them.
    let values = |json: &str| -> Result<Vec<Value>, serde_json::Error> {
        serde_json::Deserializer::from_str(json).into_iter().collect()
    };
    let read = values(&paired).or_else(|error| {
        let numbers = without_no_numbers(&paired).ok_or(error)?;
        values(&numbers)
    });
    let parts = match read {
        Ok(parts) => parts,
        Err(error) => return unreadable(&error.to_string()),
    };
    let messages = parts.into_iter().flat_map(|part| match part {
        Value::Array(messages) => messages,
        message => vec![message],
    });
    let messages: Vec<Value> = messages.filter_map(message).collect();
    let is_as_it_was = || serde_json::from_str::<ServerJsonRpcMessage>(readable).is_ok();
    let is_same = messages.is_empty() || is_one_line && is_as_it_was();
    (!is_same).then(|| messages.iter().map(Value::to_string).collect())
}

/// Returns whether a text is a message, well-formed or not.
pub(super) fn is_message(text: &[u8]) -> bool {
    let head: Option<Head<'_>> = serde_json::from_slice(text.trim_ascii()).ok();
    head.is_some_and(|head| {
        let is_answer = head.id.is_some() && (head.result.is_some() || head.error.is_some());
        head.jsonrpc.is_some() || head.method.is_some() || is_answer
    })
}

/// Returns whether a text is the beginning of JSON.
pub(super) fn is_begun(text: &[u8]) -> bool {
    let is_open =
        text.trim_ascii_start().starts_with(b"{") || text.trim_ascii_start().starts_with(b"[");
    is_open && serde_json::from_slice::<IgnoredAny>(text).is_err_and(|error| error.is_eof())
}

/// Returns a message in the form of the protocol; `None` for another text.
fn message(message: Value) -> Option<Value> {
    let Value::Object(mut fields) = message else { return None };
    fields.retain(|key, value| {
        !(value.is_null() && matches!(key.as_str(), "error" | "result" | "method"))
    });
    if fields.contains_key("method") {
        fields.insert("jsonrpc".into(), "2.0".into());
        return Some(fields.into());
    }
    let id = fields.get("id").and_then(usual_id)?;
    if fields.contains_key("result") {
        fields.retain(|key, value| key != "error" || is_substantial(value));
    }
    let answer = match (fields.remove("result"), fields.remove("error")) {
        (_, Some(error)) => json!({ "jsonrpc": "2.0", "id": id, "error": usual_error(error) }),
        (Some(result), None) => json!({ "jsonrpc": "2.0", "id": id, "result": result }),
        (None, None) => {
            let words = Value::from(fields).to_string();
            failure(id, "it has no result and no error", &words)
        }
    };
    let is_read = |answer: &Value| serde_json::from_value::<ServerJsonRpcMessage>(answer.clone());
    match is_read(&answer) {
        Ok(_) => Some(answer),
        Err(error) => {
            let id = answer["id"].clone();
            Some(failure(id, &error.to_string(), &answer.to_string()))
        }
    }
}

/// Returns an id of this program, which are whole numbers, however it is written.
fn usual_id(id: &Value) -> Option<Value> {
    match id {
        Value::String(text) => Some(text.parse::<i64>().map_or_else(|_| id.clone(), Value::from)),
        Value::Number(number) => {
            let whole = number.as_f64().filter(|number| number.fract() == 0.0);
            number.as_i64().or_else(|| whole.map(|number| number as i64)).map(Value::from)
        }
        _ => None,
    }
}

/// Returns whether an error says anything, since some servers send an empty one or a code of 0 beside each result.
fn is_substantial(error: &Value) -> bool {
    match error {
        Value::Null => false,
        Value::Bool(flag) => *flag,
        Value::Number(number) => number.as_f64() != Some(0.0),
        Value::String(text) => !text.trim().is_empty(),
        Value::Array(parts) => parts.iter().any(is_substantial),
        Value::Object(fields) => fields.values().any(is_substantial),
    }
}

/// Returns an error with a number as its code and a text as its message.
fn usual_error(error: Value) -> Value {
    let Value::Object(mut fields) = error else {
        let words = error.as_str().map_or_else(|| error.to_string(), str::to_owned);
        return json!({ "code": UNREADABLE, "message": words });
    };
    let words = match fields.remove("message") {
        Some(Value::String(words)) => words,
        Some(other) if !other.is_null() => other.to_string(),
        _ => Value::from(fields.clone()).to_string(),
    };
    let code = fields.remove("code").unwrap_or_default();
    let number = code.as_f64().or_else(|| code.as_str()?.trim().parse().ok());
    let number =
        number.filter(|number| number.fract() == 0.0 && i32::try_from(*number as i64).is_ok());
    let mut usual = Map::new();
    usual.insert("code".into(), number.map_or(UNREADABLE, |number| number as i32).into());
    let words = match code.as_str() {
        Some(name) if number.is_none() => format!("{name}: {words}"),
        _ => words,
    };
    usual.insert("message".into(), words.into());
    usual.extend(fields.remove("data").map(|data| ("data".to_owned(), data)));
    usual.into()
}

fn failure(id: Value, why: &str, words: &str) -> Value {
    let words = text::cut(&text::one_line(words), SHOWN_CHARS);
    let message = format!("its answer cannot be read: {why}: {words}");
    json!({ "jsonrpc": "2.0", "id": id, "error": { "code": UNREADABLE, "message": message } })
}

/// Finds the ID of an answer that is not valid JSON; `None` for a request, or another text.
fn id_of(text: &str) -> Option<Value> {
    let mut id = None;
    let mut is_answer = false;
    for (at, name) in keys_at_top(text) {
        match name {
            "method" => return None,
            "result" | "error" | "jsonrpc" => is_answer = true,
            "id" if id.is_none() => {
                let value = text[at..].trim_start().strip_prefix(':')?.trim_start();
                let mut values = serde_json::Deserializer::from_str(value).into_iter::<Value>();
                id = usual_id(&values.next()?.ok()?);
            }
            _ => {}
        }
    }
    id.filter(|_| is_answer)
}

/// Finds the strings of the outermost object and their ends, across nested values.
fn keys_at_top(text: &str) -> Vec<(usize, &str)> {
    let mut keys = Vec::new();
    let mut scan = Scan::default();
    let mut begin = 0;
    for (at, byte) in text.bytes().enumerate() {
        let was_in_string = scan.in_string;
        scan.take(byte);
        if scan.in_string && !was_in_string {
            begin = at + 1;
        } else if was_in_string && !scan.in_string && scan.depth == 1 {
            keys.extend(text.get(begin..at).map(|key| (at + 1, key)));
        }
    }
    keys
}

/// Replaces invalid numbers by null, as other JSON writers do; `None` without any.
fn without_no_numbers(json: &str) -> Option<String> {
    let mut fixed = String::with_capacity(json.len());
    let mut scan = Scan::default();
    let mut is_changed = false;
    let mut at = 0;
    while let Some(byte) = json.as_bytes().get(at) {
        let word = NO_NUMBERS.iter().find(|word| !scan.in_string && json[at..].starts_with(*word));
        if let Some(word) = word {
            is_changed = true;
            fixed.push_str("null");
            at += word.len();
            continue;
        }
        scan.take(*byte);
        let length = json[at..].chars().next().map_or(1, char::len_utf8);
        fixed.push_str(&json[at..at + length]);
        at += length;
    }
    is_changed.then_some(fixed)
}

fn depth(json: &[u8]) -> usize {
    let mut scan = Scan::default();
    let depths = json.iter().map(|byte| {
        scan.take(*byte);
        scan.depth
    });
    depths.max().unwrap_or_default()
}

/// The position of a JSON reader that knows only brackets and strings.
#[derive(Default)]
pub(super) struct Scan {
    pub depth: usize,
    pub in_string: bool,
    is_escaped: bool,
}

impl Scan {
    pub fn take(&mut self, byte: u8) {
        if self.is_escaped {
            self.is_escaped = false;
            return;
        }
        match byte {
            b'\\' if self.in_string => self.is_escaped = true,
            b'"' => self.in_string = !self.in_string,
            b'{' | b'[' if !self.in_string => self.depth += 1,
            b'}' | b']' if !self.in_string => self.depth = self.depth.saturating_sub(1),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each answer to call 7 ends it, with its own text.
    #[test]
    fn an_answer_that_names_a_call_ends_it_in_any_spelling() {
        let result = r#"{"content":[{"type":"text","text":"words"}]}"#;
        for text in [
            r#"{"jsonrpc":"2.0","id":7,"result":{"content":[{"type":"text","text":"words"}],"structuredContent":{"x":NaN}}}"#.to_owned(),
            r#"{"jsonrpc":"2.0","id":7,"result":{"content":[{"text":"words NaN"}],"x":[-Infinity,Infinity]}}"#.to_owned(),
            format!(r#"{{"jsonrpc":"2.0","id":7,"error":null,"result":{result}}}"#),
            format!(r#"{{"jsonrpc":"2.0","id":7,"result":{result},"error":""}}"#),
            format!(r#"{{"jsonrpc":"2.0","id":7,"result":{result},"error":false}}"#),
            format!(r#"{{"jsonrpc":"2.0","id":7,"result":{result},"error":{{}}}}"#),
            format!(r#"{{"jsonrpc":"2.0","id":7,"result":{result},"error":{{"code":0,"message":""}}}}"#),
            r#"{"jsonrpc":"2.0","id":7,"result":{},"error":"words"}"#.to_owned(),
            format!(r#"{{"id":7,"result":{result}}}"#),
            format!(r#"{{"jsonrpc":"1.0","id":"7","result":{result}}}"#),
            format!(r#"{{"jsonrpc":2.0,"id":7.0,"result":{result}}}"#),
            format!(r#"[{{"jsonrpc":"2.0","id":7,"result":{result}}}]"#),
            "{\n  \"jsonrpc\": \"2.0\",\n  \"id\": 7,\n  \"result\": {\"words\": 1}\n}".to_owned(),
            r#"{"jsonrpc":"2.0","id":7,"error":{"code":"ENOENT","message":"words"}}"#.to_owned(),
            r#"{"jsonrpc":"2.0","id":7,"error":{"code":"-32602","message":"words"}}"#.to_owned(),
            r#"{"jsonrpc":"2.0","id":7,"error":{"code":1.5e300,"message":["words"]}}"#.to_owned(),
            r#"{"jsonrpc":"2.0","id":7,"error":"words"}"#.to_owned(),
            r#"{"jsonrpc":"2.0","id":7,"error":{"detail":"words"},"result":null}"#.to_owned(),
            r#"{"jsonrpc":"2.0","id":7,"words":true}"#.to_owned(),
            r#"{"jsonrpc":"2.0","id":7,"result":{"id":3,"words":undefined}}"#.to_owned(),
            r#"{"result":{"words":"\ud83d"},"id":7,"jsonrpc":"2.0"}"#.to_owned(),
            "{'jsonrpc': '2.0', 'id': 7, 'result': {'words': None}}".to_owned(),
        ] {
            let messages = repaired(text.as_bytes()).unwrap_or_else(|| vec![text.clone()]);
            let [message] = messages.as_slice() else { panic!("{text}: {messages:?}") };
            assert!(message.contains("words") && !message.contains('\n'), "{text}: {message}");
            match serde_json::from_str(message) {
                Ok(ServerJsonRpcMessage::Response(answer)) => {
                    assert_eq!(answer.id, rmcp::model::RequestId::Number(7), "{text}");
                }
                Ok(ServerJsonRpcMessage::Error(answer)) => {
                    assert_eq!(answer.id, Some(rmcp::model::RequestId::Number(7)), "{text}");
                    assert!(answer.error.message.contains("words"), "{text}");
                }
                other => panic!("{text}: {other:?}"),
            }
        }
    }

    #[test]
    fn a_batch_is_several_messages_and_unrelated_messages_are_skipped() {
        let batch = r#"[{"id":1,"result":{}},{"method":"notifications/progress","params":{}},7]"#;
        assert_eq!(repaired(batch.as_bytes()).unwrap().len(), 2);
        let joined = r#"{"method":"notifications/progress","params":{}} {"jsonrpc":"2.0","id":1,"result":{}}{"id":2,"result":{}}"#;
        assert_eq!(repaired(joined.as_bytes()).unwrap().len(), 3);
        for other in [
            "Listening on port 0",
            "{ not json",
            "{\"level\":\"info\",\"id\":",
            "{\"level\":\"info\"}",
            "{\"id\":4,\"method\":\"ping\",\"params\":NaN",
            "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"text\":\"\\\"[[{\"}}",
            "7",
            "",
        ] {
            assert_eq!(repaired(other.as_bytes()), None, "{other}");
        }
        let request = b"{\"id\":1,\"method\":\"ping\",\"params\":\"\xff\"}";
        assert_eq!(repaired(request), None);
    }

    #[test]
    fn bytes_depth_and_halves_of_characters_are_named_or_replaced() {
        let deep = format!("{{\"id\":\"a\",\"result\":{}{}}}", "[".repeat(200), "]".repeat(200));
        let garbled = b"{\"jsonrpc\":\"2.0\",\"id\":3,\"result\":{\"text\":\"\xff\"}}";
        for (text, why) in [(deep.as_bytes(), "deeper"), (&garbled[..], "UTF-8 at byte 42")] {
            let messages = repaired(text).unwrap();
            assert!(messages[0].contains(why), "{messages:?}");
        }
        let lone = br#"{"jsonrpc":"2.0","id":3,"result":{"text":"\ud83d! \ude00"}}"#;
        assert!(repaired(lone).unwrap()[0].contains(r"\ufffd! \ufffd"));
    }
}
