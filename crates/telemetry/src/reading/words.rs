//! How one text became another, in the notation of `git diff --word-diff`.

use similar::{ChangeTag, TextDiff};

/// Bytes of each text that are compared; the work grows with the product of what differs.
const COMPARED: usize = 8 * 1024;

/// Words kept on each side of a change.
const CONTEXT: usize = 3;

/// Returns what changed, as `kept [-removed-] {+added+} kept …`; none when nothing did.
pub(super) fn changed(before: &str, after: &str) -> Option<String> {
    if before == after {
        return None;
    }
    let before = head(before);
    let after = head(after);
    let diff = TextDiff::from_words(before, after);
    let mut runs: Vec<(ChangeTag, String)> = Vec::new();
    for change in diff.iter_all_changes() {
        let tag = change.tag();
        let word = change.value();
        match runs.last_mut() {
            Some((known, text)) if *known == tag => text.push_str(word),
            _ => runs.push((tag, word.to_owned())),
        }
    }
    let newest = runs.len().saturating_sub(1);
    let mut parts = Vec::new();
    for (at, (tag, text)) in runs.iter().enumerate() {
        let words: Vec<&str> = text.split_whitespace().collect();
        if words.is_empty() {
            continue;
        }
        parts.push(match tag {
            ChangeTag::Delete => format!("[-{}-]", words.join(" ")),
            ChangeTag::Insert => format!("{{+{}+}}", words.join(" ")),
            ChangeTag::Equal => kept(&words, at == 0, at == newest),
        });
    }
    if parts.iter().any(|part| part.starts_with(['[', '{'])) {
        Some(parts.join(" "))
    } else {
        Some("beyond the first 8 KiB, or in spaces only".to_owned())
    }
}

fn kept(words: &[&str], first: bool, last: bool) -> String {
    let head = if first { 0 } else { CONTEXT };
    let tail = if last { 0 } else { CONTEXT };
    if words.len() <= head + tail + 1 {
        return words.join(" ");
    }
    let before = &words[..head];
    let after = &words[words.len() - tail..];
    [before, &["…"], after].concat().join(" ")
}

fn head(text: &str) -> &str {
    let end = (0..=COMPARED.min(text.len())).rev().find(|at| text.is_char_boundary(*at));
    &text[..end.unwrap_or(0)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_stands_between_a_few_words_of_what_stayed() {
        assert_eq!(changed("same", "same"), None);
        assert_eq!(
            changed("zero one two three four five six", "zero one two three four 5 six").unwrap(),
            "… two three four [-five-] {+5+} six"
        );
        assert_eq!(changed("", "new").unwrap(), "{+new+}");
        assert_eq!(changed("a b", "a  b").unwrap(), "beyond the first 8 KiB, or in spaces only");
    }
}
