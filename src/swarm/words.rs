//! Words of names and sentences, in the form in which they are compared.

/// Characters that related words have in common at least.
pub(super) const STEM: usize = 4;

/// What a related word counts of the word itself.
const RELATED: f64 = 0.5;

/// English words that say nothing of what a text is about, in order.
const EMPTY: &[&str] = &[
    "about", "all", "also", "am", "an", "and", "any", "are", "as", "at", "be", "been", "but", "by",
    "can", "could", "did", "do", "does", "each", "every", "for", "from", "give", "given", "had",
    "has", "have", "he", "her", "his", "how", "if", "in", "into", "is", "it", "its", "just", "let",
    "may", "me", "my", "need", "no", "not", "of", "on", "one", "or", "our", "out", "over",
    "please", "shall", "she", "should", "so", "some", "such", "than", "that", "the", "their",
    "them", "then", "there", "these", "they", "this", "those", "to", "us", "use", "used", "using",
    "want", "was", "we", "were", "what", "when", "where", "which", "who", "whose", "why", "will",
    "with", "would", "you", "your",
];

/// Splits a text at everything but letters and digits and where `camelCase` has its humps; lower-cased and singular,
/// without single letters and words that say nothing. Scripts that write no spaces give overlapping pairs of letters.
pub(super) fn words(text: &str) -> impl Iterator<Item = String> {
    let runs = text.split(|letter: char| !letter.is_alphanumeric());
    let parts = runs.flat_map(humps).flat_map(pieces);
    parts
        .filter(|word| {
            word.chars().nth(1).is_some() && EMPTY.binary_search(&word.as_str()).is_err()
        })
        .map(singular)
}

/// Splits `parseHTTPHeader` into `parse`, `HTTP` and `Header`.
fn humps(run: &str) -> Vec<&str> {
    let letters: Vec<(usize, char)> = run.char_indices().collect();
    let mut parts = Vec::new();
    let mut start = 0;
    for window in letters.windows(2) {
        let [(before, first), (at, second)] = *window else { continue };
        let next = run.get(at..).and_then(|rest| rest.chars().nth(1));
        let rises = first.is_lowercase() && second.is_uppercase();
        let ends_capitals = first.is_uppercase()
            && second.is_uppercase()
            && next.is_some_and(char::is_lowercase)
            && before >= start;
        if rises || ends_capitals {
            parts.extend(run.get(start..at));
            start = at;
        }
    }
    parts.extend(run.get(start..));
    parts
}

/// Tells letters of scripts that put no space between words, or endings to them: Han, Kana, Hangul, Thai.
fn is_unspaced(letter: char) -> bool {
    matches!(
        letter,
        '\u{0e00}'..='\u{0e7f}' | '\u{3040}'..='\u{30ff}' | '\u{3400}'..='\u{9fff}' | '\u{ac00}'..='\u{d7a3}'
            | '\u{f900}'..='\u{faff}' | '\u{20000}'..='\u{3134f}'
    )
}

/// Lower-cases a part, and cuts what is written without spaces into overlapping pairs of letters.
fn pieces(part: &str) -> Vec<String> {
    let letters: Vec<char> = part.to_lowercase().chars().collect();
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

/// Takes the plural off an English word, by the three rules of D. Harman, “How effective is suffixing?” (1991).
fn singular(mut word: String) -> String {
    let ends = |endings: &[&str]| endings.iter().any(|ending| word.ends_with(ending));
    if ends(&["ies"]) && !ends(&["eies", "aies"]) {
        word.truncate(word.len() - 3);
        word.push('y');
    } else if ends(&["s"]) && !ends(&["us", "ss", "aes", "ees", "oes"]) && word.len() > 3 {
        word.pop();
    }
    word
}

/// Returns how much one word counts where another is looked for: all for the same, a part where they begin alike
/// for most of their length (`deploy`, `deployment`), which holds in languages with endings of their own.
pub(super) fn relation(wanted: &str, there: &str) -> f64 {
    if wanted == there {
        return 1.0;
    }
    let common = wanted.chars().zip(there.chars()).take_while(|(one, other)| one == other).count();
    let longer = wanted.chars().count().max(there.chars().count());
    if common >= STEM && common * 5 >= longer * 3 { RELATED } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> Vec<String> {
        words(text).collect()
    }

    #[test]
    fn names_and_sentences_become_the_same_words() {
        assert_eq!(of("parseHTTPHeader"), ["parse", "http", "header"]);
        assert_eq!(of("list_open-issues/v2"), ["list", "open", "issue", "v2"]);
        assert_eq!(of("Lists the queries of S3 buckets."), ["list", "query", "s3", "bucket"]);
        assert_eq!(of("Größe, ЗаказыКлиента"), ["größe", "заказы", "клиента"]);
        assert_eq!(of("a I x_y the status"), ["status"]);
        assert_eq!(of("未付发票API"), ["未付", "付发", "发票", "api"]);
        assert_eq!(of("주문을"), ["주문", "문을"]);
        assert!(EMPTY.is_sorted());
    }

    #[test]
    fn words_are_related_that_begin_alike_for_most_of_their_length() {
        assert_eq!(relation("invoice", "invoice"), 1.0);
        for (one, other) in [("deploy", "deployment"), ("search", "searche"), ("заказ", "заказы")]
        {
            assert_eq!((relation(one, other), relation(other, one)), (RELATED, RELATED), "{one}");
        }
        for (one, other) in [("log", "login"), ("inter", "international"), ("mail", "main")] {
            assert_eq!(relation(one, other), 0.0, "{one}");
        }
    }
}
