//! Where words begin and end.

use unicode_normalization::{UnicodeNormalization as _, char::is_combining_mark};

/// A run of letters and digits: its parts, and the whole if that is not its only part.
pub(super) struct Run {
    pub parts: Vec<String>,
    pub whole: Option<String>,
}

/// Splits a text at everything but letters and digits and where `camelCase` has its humps; normalised and lower-cased.
///
/// What has humps is returned as a whole, too. What is written without spaces gives overlapping pairs of letters.
pub fn split(text: &str) -> Vec<String> {
    runs(text).into_iter().flat_map(|run| run.parts.into_iter().chain(run.whole)).collect()
}

pub(super) fn runs(text: &str) -> Vec<Run> {
    // `UNSEEN` of crate `parse`, which is not a dependency.
    let is_shown = |letter: &char| !matches!(letter, '\u{ad}' | '\u{2060}' | '\u{feff}');
    let normal: String =
        if text.is_ascii() { text.to_owned() } else { text.nfkc().filter(is_shown).collect() };
    let runs = normal.split(|letter: char| !is_of_word(letter)).filter(|run| !run.is_empty());
    let run = |run: &str| {
        let humps = humps(run);
        let whole = (humps != [run]).then(|| run.to_lowercase());
        Run {
            parts: humps.into_iter().flat_map(pieces).collect(),
            whole: whole.filter(|whole| !whole.contains(is_unspaced)),
        }
    };
    runs.map(run).collect()
}

/// Tells what words consist of; marks that belong to the letter before them are letters here.
fn is_of_word(letter: char) -> bool {
    letter.is_alphanumeric() || (!letter.is_ascii() && is_combining_mark(letter))
}

/// Splits `parseHTTPHeader` into `parse`, `HTTP` and `Header`, and takes the plural's `s` off `APIs`.
fn humps(run: &str) -> Vec<&str> {
    if run.bytes().all(|byte| !byte.is_ascii_uppercase()) && run.is_ascii() {
        return vec![run];
    }
    let letters: Vec<(usize, char)> = run.char_indices().collect();
    let is_lower = |number: usize| letters.get(number).is_some_and(|(_, one)| one.is_lowercase());
    let mut parts = Vec::new();
    let mut start = 0;
    for (number, window) in letters.windows(2).enumerate() {
        let [(before, first), (at, second)] = *window else { continue };
        let rises = first.is_lowercase() && second.is_uppercase();
        let is_plural =
            letters.get(number + 2).is_some_and(|(_, next)| *next == 's') && !is_lower(number + 3);
        let is_last_capital = first.is_uppercase()
            && second.is_uppercase()
            && is_lower(number + 2)
            && !is_plural
            && before >= start;
        if rises || is_last_capital {
            parts.extend(run.get(start..at).map(singular));
            start = at;
        }
    }
    parts.extend(run.get(start..).map(singular));
    parts
}

fn singular(part: &str) -> &str {
    let is_abbreviation =
        |word: &&str| word.chars().nth(1).is_some() && word.chars().all(char::is_uppercase);
    part.strip_suffix('s').filter(is_abbreviation).unwrap_or(part)
}

/// Tells letters of scripts that put no space between words, or endings to them: Han, Kana, Hangul, Thai, Lao, Khmer, Burmese.
pub(super) fn is_unspaced(letter: char) -> bool {
    matches!(
        letter,
        '\u{0e00}'..='\u{0eff}' | '\u{1000}'..='\u{109f}' | '\u{1780}'..='\u{17ff}' | '\u{3040}'..='\u{30ff}'
            | '\u{3400}'..='\u{9fff}' | '\u{ac00}'..='\u{d7a3}' | '\u{f900}'..='\u{faff}' | '\u{20000}'..='\u{3134f}'
    )
}

/// Lower-cases a part, and cuts what is written without spaces into overlapping pairs of letters.
fn pieces(part: &str) -> Vec<String> {
    let lower = part.to_lowercase();
    if lower.is_ascii() {
        return vec![lower];
    }
    let letters: Vec<char> = lower.chars().collect();
    let scripts = letters.chunk_by(|one, other| is_unspaced(*one) == is_unspaced(*other));
    let cut = |script: &[char]| -> Vec<String> {
        match script {
            [first, _, ..] if is_unspaced(*first) => {
                script.windows(2).map(|pair| pair.iter().collect()).collect()
            }
            word => vec![word.iter().collect()],
        }
    };
    scripts.flat_map(cut).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_sentences_become_the_same_words() {
        assert_eq!(split("parseHTTPHeader"), ["parse", "http", "header", "parsehttpheader"]);
        assert_eq!(
            split("listAPIs of GPUsUsed"),
            ["list", "api", "listapis", "of", "gpu", "used", "gpusused"]
        );
        assert_eq!(split("Os Ös ÄÖs"), ["os", "ös", "äö", "äös"]);
        assert_eq!(split("list_open-issues/v2"), ["list", "open", "issues", "v2"]);
        assert_eq!(split("Größe, ЗаказыКлиента"), ["größe", "заказы", "клиента", "заказыклиента"]);
        assert_eq!(split("未付发票API"), ["未付", "付发", "发票", "api"]);
        assert_eq!(split("주문을 猫"), ["주문", "문을", "猫"]);
        assert_eq!(split("ＦＵＬＬ ｗｉｄｔｈ ﬁne"), ["full", "width", "fine"]);
        assert_eq!(split("gro\u{0308}ße"), ["größe"]);
        assert_eq!(split("हिन्दी में"), ["हिन्दी", "में"]);
        assert_eq!(split("Daten\u{ad}schutz, Wort\u{2060}teil"), ["datenschutz", "wortteil"]);
        assert!(split(" .,;\u{200b}\u{ad}").is_empty());
    }
}
