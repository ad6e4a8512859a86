//! What words of one root have in common.

use std::sync::LazyLock;

use rust_stemmers::Stemmer;

use super::{Language, split::is_unspaced};

/// Letters that related words have in common at least.
const SHARED: usize = 4;

/// Shorter words are names and abbreviations, which have no endings.
const SHORTEST: usize = 3;

/// Returns the stem of a word; names with digits and pairs of letters stay as they are.
pub(super) fn stem(word: &str, language: Language) -> String {
    let is_plain = word.len() >= SHORTEST
        && !word.chars().any(|letter| letter.is_numeric() || is_unspaced(letter));
    match STEMMERS.iter().find(|(known, _)| is_plain && *known == language) {
        Some((_, stemmer)) => stemmer.stem(word).into_owned(),
        None => word.to_owned(),
    }
}

static STEMMERS: LazyLock<Vec<(Language, Stemmer)>> = LazyLock::new(|| {
    let all = Language::all().iter();
    all.map(|language| (*language, Stemmer::create(language.algorithm()))).collect()
});

/// Returns whether a term is near a searched word that no text contains: most of their first letters are equal, or
/// the word is one letter of a script whose terms are pairs.
pub fn related(wanted: &str, term: &str) -> bool {
    let mut letters = wanted.chars();
    if let (Some(only), None) = (letters.next(), letters.next())
        && is_unspaced(only)
    {
        return term.starts_with(only);
    }
    let common = wanted.chars().zip(term.chars()).take_while(|(one, other)| one == other).count();
    let longer = wanted.chars().count().max(term.chars().count());
    common >= SHARED && common * 5 >= longer * 3
}

/// Returns what every term begins with that [`related`] can accept; none when there can be no such term.
pub(crate) fn beginning(wanted: &str) -> Option<String> {
    let first = wanted.chars().next()?;
    let length = if is_unspaced(first) { 1 } else { SHARED };
    let start: String = wanted.chars().take(length).collect();
    (start.chars().count() == length).then_some(start)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn terms_with_a_long_common_prefix_are_related() {
        for (one, other) in [("deploy", "deployer"), ("search", "searche"), ("заказ", "заказы")]
        {
            assert!(related(one, other) && related(other, one), "{one}");
            assert!(other.starts_with(&beginning(one).unwrap()));
        }
        for (one, other) in [("log", "login"), ("inter", "international"), ("mail", "main")] {
            assert!(!related(one, other), "{one}");
        }
        assert!(related("猫", "猫咪") && !related("猫咪", "猫鱼"));
        assert_eq!(beginning("log"), None);
    }

    #[test]
    fn names_with_digits_stay_as_they_are() {
        assert_eq!(stem("utf8s", Language::English), "utf8s");
        assert_eq!(stem("is", Language::German), "is");
        assert_eq!(stem("发票", Language::English), "发票");
    }
}
