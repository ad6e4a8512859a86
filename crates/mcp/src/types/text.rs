//! Makes words of others one short line.

/// Replaces every run of white space and control characters by one space.
pub(crate) fn one_line(text: &str) -> String {
    text.split(|letter: char| letter.is_whitespace() || letter.is_control())
        .filter(|word| !word.is_empty())
        .collect::<Vec<_>>()
        .join(" ")
}

/// Characters of one complaint.
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
