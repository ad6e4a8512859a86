//! Repairs JSON in which halves of characters are escaped alone, as text that was cut during an emoji has them. A reader
//! of JSON refuses the whole text for one of them.

use std::borrow::Cow;

/// A half of a character that is escaped alone.
pub struct Lone<'a> {
    pub escape: &'a str,
    /// Of the two halves, it is the first.
    pub is_first: bool,
    /// The repaired text before it.
    pub before: &'a str,
    pub after: &'a str,
}

/// Replaces the halves that are escaped alone by what `replacement` returns.
pub fn paired(json: &str, mut replacement: impl FnMut(Lone<'_>) -> String) -> Cow<'_, str> {
    let unit = |at: usize| {
        let escape = json.get(at..at + 6).filter(|escape| escape.starts_with("\\u"))?;
        u16::from_str_radix(&escape[2..], 16).ok()
    };
    let mut fixed = String::new();
    let mut copied = 0;
    let mut at = 0;
    while let Some(next) = json[at..].find('\\').map(|next| at + next) {
        let is_second = |at| matches!(unit(at), Some(0xdc00..=0xdfff));
        at = match unit(next) {
            Some(0xd800..=0xdbff) if is_second(next + 6) => next + 12,
            Some(0xd800..=0xdfff) => {
                fixed.push_str(&json[copied..next]);
                copied = next + 6;
                fixed.push_str(&replacement(Lone {
                    escape: &json[next..copied],
                    is_first: !is_second(next),
                    before: &fixed,
                    after: &json[copied..],
                }));
                copied
            }
            _ => next + 1 + json[next + 1..].chars().next().map_or(0, char::len_utf8),
        };
    }
    if copied == 0 {
        return json.into();
    }
    fixed.push_str(&json[copied..]);
    fixed.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_halves_of_characters_that_stand_alone_are_replaced() {
        let text = "\"\\ud83d\\ude00 \\\\ud800 \\ud83d! \\ude00\"";
        let mut found = Vec::new();
        let fixed = paired(text, |lone| {
            found.push((lone.is_first, lone.before.len(), lone.after.len()));
            format!("({})", &lone.escape[2..])
        });
        assert_eq!(fixed, "\"\\ud83d\\ude00 \\\\ud800 (d83d)! (de00)\"");
        assert_eq!(found, [(true, 22, 9), (false, 30, 1)]);
        assert!(matches!(paired("\"\\ud83d\\ude00\"", |_| String::new()), Cow::Borrowed(_)));
    }
}
