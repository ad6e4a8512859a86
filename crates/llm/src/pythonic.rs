//! Reads tool calls that are written as a list of Python calls: `[read(path="7"), list()]`.

use serde_json::Map;

use crate::written_calls::Call;

/// Returns the calls of a list; none if the text is anything else.
pub(super) fn calls(text: &str) -> Vec<Call> {
    let list = text.trim().strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
    let calls = list.and_then(|list| parts(list).into_iter().map(call).collect());
    calls.unwrap_or_default()
}

fn call(text: &str) -> Option<Call> {
    let (name, rest) = text.strip_suffix(')')?.split_once('(')?;
    let is_name = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.');
    if name.is_empty() || !name.chars().all(is_name) {
        return None;
    }
    let mut arguments = Map::new();
    for part in parts(rest) {
        let (key, value) = part.split_once('=')?;
        let value = value.trim();
        let argument = serde_json::from_str(&json(value)).unwrap_or_else(|_| value.into());
        arguments.insert(key.trim().to_owned(), argument);
    }
    Some((name.to_owned(), arguments.into()))
}

/// Splits at the commas outside of brackets and quotation marks.
fn parts(text: &str) -> Vec<&str> {
    let mut parts = Vec::new();
    let mut begin = 0;
    let mut depth = 0_usize;
    let mut quote = None;
    let mut letters = text.char_indices();
    while let Some((at, letter)) = letters.next() {
        match letter {
            '\\' if quote.is_some() => drop(letters.next()),
            '"' | '\'' => match quote {
                None => quote = Some(letter),
                Some(mark) if mark == letter => quote = None,
                Some(_) => {}
            },
            _ if quote.is_some() => {}
            '(' | '[' | '{' => depth += 1,
            ')' | ']' | '}' => depth = depth.saturating_sub(1),
            ',' if depth == 0 => {
                parts.push(&text[begin..at]);
                begin = at + 1;
            }
            _ => {}
        }
    }
    parts.push(&text[begin..]);
    parts.into_iter().map(str::trim).filter(|part| !part.is_empty()).collect()
}

/// Writes a Python value as JSON.
fn json(value: &str) -> String {
    let mut json = String::with_capacity(value.len());
    let mut quote = None;
    let mut letters = value.chars();
    while let Some(letter) = letters.next() {
        match (quote, letter) {
            (None, '"' | '\'') => {
                quote = Some(letter);
                json.push('"');
            }
            // True, False and None.
            (None, 'T' | 'F') => json.push(letter.to_ascii_lowercase()),
            (None, 'N') => {
                json.push_str("null");
                letters.nth(2);
            }
            (Some(mark), _) if mark == letter => {
                quote = None;
                json.push('"');
            }
            (Some(_), '\\') => match letters.next() {
                Some('\'') => json.push('\''),
                escaped => {
                    json.push('\\');
                    json.extend(escaped);
                }
            },
            (Some(_), '"') => json.push_str("\\\""),
            (Some(_), '\n') => json.push_str("\\n"),
            _ => json.push(letter),
        }
    }
    json
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_list_of_python_calls_is_read_with_its_literals() {
        let text = r#"[read(path="a, (b)", tags=['x"y', 'it\'s'], deep={'on': True, "off": None}), list(), a.b(n=-1.5, all=False)]"#;
        let expected = [
            (
                "read",
                json!({"path": "a, (b)", "tags": ["x\"y", "it's"], "deep": {"on": true, "off": null}}),
            ),
            ("list", json!({})),
            ("a.b", json!({"n": -1.5, "all": false})),
        ];
        assert_eq!(calls(text), expected.map(|(name, arguments)| (name.to_owned(), arguments)));
        for other in
            ["", "[1, 2]", "[a]", "read(path=1)", "[read(1)]", "[see below (page=1)]", "[x](y)"]
        {
            assert_eq!(calls(other), [], "{other}");
        }
    }
}
