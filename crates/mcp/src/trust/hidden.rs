//! Characters that carry text past the eyes of a person: controls, turns of direction, Unicode tags, fillers.

use serde_json::Value;

use crate::types::text;

/// Finds such a character in the strings and keys of a value.
pub(crate) fn find(value: &Value) -> Option<char> {
    match value {
        Value::String(text) => find_in(text),
        Value::Array(items) => items.iter().find_map(find),
        Value::Object(map) => {
            map.iter().find_map(|(key, item)| find_in(key).or_else(|| find(item)))
        }
        _ => None,
    }
}

pub(crate) fn find_in(text: &str) -> Option<char> {
    marked(text).find_map(|(letter, is_hidden)| is_hidden.then_some(letter))
}

/// Writes such characters out, as in `\u{202e}`.
pub fn shown(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for (letter, is_hidden) in marked(text) {
        if is_hidden { shown.extend(letter.escape_unicode()) } else { shown.push(letter) }
    }
    shown
}

/// Writes such characters out in the strings and keys of a value.
pub(crate) fn shown_json(value: Value) -> Value {
    text::map_texts(value, &shown)
}

/// Returns a value as JSON with such characters escaped, if it has any.
pub fn written_out(value: &Value) -> Option<String> {
    find(value)?;
    Some(shown(&value.to_string()))
}

/// Returns for each character whether it is hidden in its context.
fn marked(text: &str) -> impl Iterator<Item = (char, bool)> {
    let before = std::iter::once(None).chain(text.chars().map(Some));
    let after = text.chars().skip(1).map(Some).chain(std::iter::once(None));
    let letters = text.chars().zip(before.zip(after));
    letters.map(|(letter, (before, after))| {
        (letter, is_invisible(letter) && !has_part(letter, before, after))
    })
}

/// Returns whether a character is invisible: controls except line breaks and tabs, and those that Unicode calls
/// default-ignorable.
pub fn is_invisible(letter: char) -> bool {
    match letter {
        '\n' | '\r' | '\t' => false,
        '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{3164}' | '\u{feff}' | '\u{ffa0}' => true,
        '\u{115f}'..='\u{1160}' | '\u{17b4}'..='\u{17b5}' | '\u{180b}'..='\u{180f}' => true,
        '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' => true,
        '\u{fe00}'..='\u{fe0f}' | '\u{fff0}'..='\u{fffb}' => true,
        '\u{1bca0}'..='\u{1bca3}' | '\u{1d173}'..='\u{1d17a}' => true,
        '\u{e0000}'..='\u{e0fff}' => true,
        other => other.is_control(),
    }
}

/// Returns whether an invisible character affects how its neighbors look: in emoji, and in scripts whose letters join
/// or run from right to left. Next to plain letters it has no effect.
fn has_part(letter: char, before: Option<char>, after: Option<char>) -> bool {
    let is_seen = |one: char| !one.is_ascii() && !is_invisible(one);
    let before_is_seen = before.is_some_and(is_seen);
    let after_is_seen = after.is_some_and(is_seen);
    match letter {
        // The number before it is a key then.
        '\u{fe0f}' if after == Some('\u{20e3}') => before.is_some_and(|one| !is_invisible(one)),
        '\u{fe0e}' | '\u{fe0f}' => before_is_seen,
        '\u{200d}' => (before_is_seen || before == Some('\u{fe0f}')) && after_is_seen,
        '\u{200c}' => before_is_seen && after_is_seen,
        '\u{200e}' | '\u{200f}' => before_is_seen || after_is_seen,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn hidden_characters_are_found_at_any_position_and_written_out() {
        let plain =
            "plain\n\ttext, العربية, نمی\u{200c}دهد, 👩‍💻, ⚙️, 1\u{fe0f}\u{20e3}, 🏳️‍🌈, (שלום\u{200f})";
        assert_eq!(find(&json!({"a": [plain]})), None);
        for hidden in [
            "x\u{e0041}",
            "x\u{e0141}",
            "x\u{200b}y",
            "x\u{2060}",
            "\u{3164}",
            "\u{feff}x",
            "x\u{ad}y",
            "x\u{fe0f}",
            "x\u{200d}y",
            "⚙\u{fe0f}\u{fe0f}",
            "é\u{200c}\u{200c}é",
            "x\u{200e}y",
            "\u{2028}",
        ] {
            assert!(find_in(hidden).is_some(), "{hidden:?}");
            assert!(find_in(&shown(hidden)).is_none(), "{hidden:?}");
        }
        assert_eq!(find(&json!({"a": [{"b": "x\u{e0041}"}]})), Some('\u{e0041}'));
        assert_eq!(find(&json!({"k\u{202e}": 1})), Some('\u{202e}'));
        assert_eq!(shown("a\u{1b}[2J\u{2066}b"), "a\\u{1b}[2J\\u{2066}b");
    }
}
