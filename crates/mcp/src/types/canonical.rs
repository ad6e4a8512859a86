//! One text for one JSON value, whatever order its keys came in, and the hash of that text.

use serde_json::Value;
use sha2::{Digest as _, Sha256};

/// Returns the SHA-256 of a value's canonical JSON, as 64 hexadecimal digits.
///
/// The form is that of RFC 8785 (keys sorted by UTF-16 code units, no white space), but for numbers,
/// which stay as they were read.
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
    fn the_order_of_keys_changes_nothing_and_everything_else_does() {
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
