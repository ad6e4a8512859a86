//! References within a document.

use percent_encoding::percent_decode_str;
use serde_json::Value;

/// Longest chain of references that is followed; a longer one goes in a circle.
const CHAIN: usize = 32;

/// Follows references to their end; broken, external and circular ones stay unchanged.
pub fn resolved<'a>(document: &'a Value, value: &'a Value) -> &'a Value {
    let mut at = value;
    for _ in 0..CHAIN {
        let Some(reference) = at.get("$ref").and_then(Value::as_str) else { return at };
        let Some(next) = target(document, reference) else { return at };
        at = next;
    }
    value
}

fn target<'a>(document: &'a Value, reference: &str) -> Option<&'a Value> {
    let pointer = reference.strip_prefix('#')?;
    if let Some(found) = document.pointer(pointer) {
        return Some(found);
    }
    let decoded = percent_decode_str(pointer).decode_utf8().ok()?;
    document.pointer(&decoded)
}

/// Returns the last word of a reference, which is the schema's name.
pub fn name(reference: &str) -> &str {
    reference.rsplit('/').next().unwrap_or(reference)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn references_are_followed_decoded_and_never_in_circles() {
        let document = json!({
            "a": {"$ref": "#/b"}, "b": {"$ref": "#/paths/~1x~1%7Bid%7D"}, "paths": {"/x/{id}": {"type": "string"}},
            "c": {"$ref": "#/d"}, "d": {"$ref": "#/c"}, "e": {"$ref": "other.yaml#/x"}
        });
        assert_eq!(resolved(&document, &document["a"]), &json!({"type": "string"}));
        assert_eq!(resolved(&document, &document["c"]), &document["c"]);
        assert_eq!(resolved(&document, &document["e"]), &document["e"]);
    }
}
