//! Characters that carry text past the eyes of a person: controls, turns of direction, Unicode tags.

use serde_json::Value;

/// Finds such a character in the strings and keys of a value.
pub(super) fn find(value: &Value) -> Option<char> {
    match value {
        Value::String(text) => text.chars().find(|letter| is_hidden(*letter)),
        Value::Array(items) => items.iter().find_map(find),
        Value::Object(map) => map.iter().find_map(|(key, item)| {
            key.chars().find(|letter| is_hidden(*letter)).or_else(|| find(item))
        }),
        _ => None,
    }
}

/// Writes such characters out, as in `\u{202e}`.
pub(super) fn shown(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for letter in text.chars() {
        match is_hidden(letter) {
            true => shown.extend(letter.escape_unicode()),
            false => shown.push(letter),
        }
    }
    shown
}

fn is_hidden(letter: char) -> bool {
    match letter {
        '\n' | '\r' | '\t' => false,
        '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{e0000}'..='\u{e007f}' => true,
        other => other.is_control(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn hidden_characters_are_found_wherever_they_stand_and_written_out() {
        assert_eq!(find(&json!({"a": ["plain\n\ttext, العربية, 👩‍💻"]})), None);
        assert_eq!(find(&json!({"a": [{"b": "x\u{e0041}"}]})), Some('\u{e0041}'));
        assert_eq!(find(&json!({"k\u{202e}": 1})), Some('\u{202e}'));
        assert_eq!(shown("a\u{1b}[2J\u{2066}b"), "a\\u{1b}[2J\\u{2066}b");
    }
}
