//! How many tokens a text is, by estimate: no model's vocabulary is needed, and none is right for all.

/// Letters of a word that one token holds, on average of common vocabularies.
const LETTERS: usize = 5;

/// Estimates the tokens of a text, rather too many than too few.
pub fn tokens(text: &str) -> usize {
    let mut count = 0;
    let mut word = 0;
    for c in text.chars() {
        if c.is_ascii_alphanumeric() || (c.is_alphabetic() && u32::from(c) < 0x0590) {
            word += 1;
            continue;
        }
        count += usize::div_ceil(word, LETTERS);
        word = 0;
        // Scripts without spaces, and signs.
        count += usize::from(!c.is_whitespace());
    }
    count + usize::div_ceil(word, LETTERS)
}

#[cfg(test)]
mod tests {
    use super::tokens;

    #[test]
    fn estimates_are_near_what_vocabularies_count() {
        assert_eq!(tokens(""), 0);
        assert_eq!(tokens("The quick brown fox."), 5);
        assert_eq!(tokens("internationalisation"), 4);
        assert_eq!(tokens("日本語"), 3);
    }
}
