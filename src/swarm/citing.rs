//! Keeps the citations of an answer honest: a number that no result has points nowhere.

/// Removes `[n]` where `n` is no result's number; code and links stay as they are.
///
/// `results` is how many results there are; they are numbered from 1.
pub(super) fn without_unknown(answer: &str, results: usize) -> String {
    let mut kept = String::with_capacity(answer.len());
    let mut in_code = false;
    let mut rest = answer;
    while let Some(letter) = rest.chars().next() {
        if letter == '`' {
            in_code = !in_code;
        }
        let number = if in_code || is_index(&kept) { None } else { citation(rest) };
        match number {
            Some((number, length)) if number == 0 || number > results => {
                while kept.ends_with(' ') {
                    kept.pop();
                }
                rest = &rest[length..];
            }
            _ => {
                kept.push(letter);
                rest = &rest[letter.len_utf8()..];
            }
        }
    }
    kept
}

/// Tells `rows[7]` from a citation: an index stands right behind a name in code-like text.
fn is_index(before: &str) -> bool {
    let mut letters = before.chars().rev().take_while(|letter| !letter.is_whitespace());
    before.ends_with(|letter: char| letter.is_ascii_alphanumeric() || letter == '_')
        && letters.any(|letter| matches!(letter, '_' | '.' | '('))
}

/// Reads `[n]` at the start of a text; `[n](…)` and `[n]:` are Markdown's own.
fn citation(text: &str) -> Option<(usize, usize)> {
    let (digits, after) = text.strip_prefix('[')?.split_once(']')?;
    let is_number = (1..=4).contains(&digits.len()) && digits.bytes().all(|b| b.is_ascii_digit());
    if !is_number || after.starts_with(['(', ':']) {
        return None;
    }
    Some((digits.parse().ok()?, digits.len() + 2))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// S1.13
    #[test]
    fn a_citation_that_points_nowhere_is_removed_and_all_else_stays() {
        let kept = |answer| without_unknown(answer, 2);
        assert_eq!(kept("It is 42 [1][3], or 43 [2] [9]."), "It is 42 [1], or 43 [2].");
        assert_eq!(kept("None [0]."), "None.");
        for same in
            ["`a[9]` and t.rows[9]", "[9](https://x.example)", "[9]: note", "[x] [] [", "Größe [1]"]
        {
            assert_eq!(kept(same), same);
        }
        assert_eq!(without_unknown("[1]", 0), "");
    }
}
