//! One short line for foreign text, and one canonical text for a JSON value, with any order of keys.

use std::fmt::{self, Write as _};

use serde_json::Value;
use sha2::{Digest as _, Sha256};

/// Replaces every run of white space and control characters by one space.
pub(crate) fn one_line(text: &str) -> String {
    text.split(|letter: char| letter.is_whitespace() || letter.is_control())
        .filter(|word| !word.is_empty())
        .collect::<Vec<_>>()
        .join(" ")
}

const COMPLAINT_CHARS: usize = 300;

/// Cuts a complaint to a length that a model or a person reads.
pub(crate) fn shorten(text: &str) -> String {
    cut(text, COMPLAINT_CHARS)
}

/// Cuts a text to a number of characters, with an ellipsis where something was left out.
pub(crate) fn cut(text: &str, characters: usize) -> String {
    match text.char_indices().nth(characters) {
        None => text.to_owned(),
        Some(_) => text.chars().take(characters.saturating_sub(1)).chain(['…']).collect(),
    }
}

/// Returns how many bytes a value takes as JSON; they are counted, not kept.
pub(crate) fn json_bytes(value: &Value) -> usize {
    struct Count(usize);
    impl fmt::Write for Count {
        fn write_str(&mut self, text: &str) -> fmt::Result {
            self.0 += text.len();
            Ok(())
        }
    }
    let mut count = Count(0);
    let _ = write!(count, "{value}");
    count.0
}

/// Changes the strings and keys of a value.
pub(crate) fn map_texts(value: Value, change: &impl Fn(&str) -> String) -> Value {
    match value {
        Value::String(text) => change(&text).into(),
        Value::Array(items) => items.into_iter().map(|item| map_texts(item, change)).collect(),
        Value::Object(map) => {
            map.into_iter().map(|(key, item)| (change(&key), map_texts(item, change))).collect()
        }
        other => other,
    }
}

/// Returns the SHA-256 of a value's canonical JSON, as 64 hexadecimal digits.
///
/// The form is that of RFC 8785 (keys sorted by UTF-16 code units, no white space), except numbers, which stay
/// unchanged.
pub fn digest(value: &Value) -> String {
    let hash = Sha256::digest(sorted(value).to_string().as_bytes());
    hash.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Returns the value with the keys of every object sorted.
pub(crate) fn sorted(value: &Value) -> Value {
    match value {
        Value::Array(items) => Value::Array(items.iter().map(sorted).collect()),
        Value::Object(map) => {
            let mut entries: Vec<_> = map.iter().collect();
            entries.sort_by(|(a, _), (b, _)| a.encode_utf16().cmp(b.encode_utf16()));
            Value::Object(
                entries.into_iter().map(|(key, item)| (key.clone(), sorted(item))).collect(),
            )
        }
        other => other.clone(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_the_order_of_keys_leaves_the_text_equal() {
        let one: Value =
            serde_json::from_str(r#"{"b": [1, {"y": null, "x": "é"}], "a": 1}"#).unwrap();
        let same: Value = serde_json::from_str(r#"{"a":1,"b":[1,{"x":"é","y":null}]}"#).unwrap();
        assert_eq!(digest(&one), digest(&same));
        assert_eq!(sorted(&one).to_string(), r#"{"a":1,"b":[1,{"x":"é","y":null}]}"#);
        let others = [
            json!({"a": 1, "b": [{"x": "é", "y": null}, 1]}),
            json!({"a": "1", "b": [1, {"x": "é", "y": null}]}),
            json!({"a": 1, "b": [1, {"x": "é"}]}),
        ];
        assert!(others.iter().all(|other| digest(other) != digest(&one)));
        // sha256 of `{}`, so that the hashes can be checked with other tools.
        assert_eq!(
            digest(&json!({})),
            "44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a"
        );
    }
}
