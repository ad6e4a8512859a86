//! Writing from right to left: a page holds it as it is painted, which is not the order of reading.

use unicode_normalization::UnicodeNormalization as _;

use super::rows::Row;

/// Returns a letter as it is typed: presentation forms and ligatures become their letters.
pub(super) fn plain(text: &str) -> String {
    let shown =
        |c: char| matches!(u32::from(c), 0xFB00..=0xFB4F | 0xFB50..=0xFDFF | 0xFE70..=0xFEFE);
    let keeps =
        |c: &char| !c.is_control() && *c != '\u{FFFD}' && *c != '\u{00AD}' && *c != '\u{FEFF}';
    match text.chars().any(shown) {
        true => text.nfkc().filter(keeps).collect(),
        false => text.replace('\u{00A0}', " ").chars().filter(keeps).collect(),
    }
}

/// Returns whether most letters of a text are written from right to left.
pub(super) fn is_right_to_left(text: &str) -> bool {
    let letters = text.chars().filter(|c| c.is_alphabetic());
    let (right, all) =
        letters.fold((0, 0), |(right, all), c| (right + usize::from(is_right(c)), all + 1));
    right * 2 > all
}

/// Returns whether a page mixes directions so that its order is a guess.
pub(super) fn is_doubtful(rows: &[Row]) -> bool {
    let text: String = rows.iter().map(Row::text).collect();
    let right = text.chars().filter(|c| is_right(*c)).count();
    let left = text.chars().filter(|c| c.is_alphabetic() && !is_right(*c)).count();
    right > 0 && right * 20 > left && left * 20 > right
}

/// Joins words that stand from left to right on the page.
pub(super) fn in_reading_order(words: Vec<String>) -> String {
    if !is_right_to_left(&words.concat()) {
        return words.join(" ");
    }
    let mut read: Vec<String> = Vec::new();
    // Where a run of words from left to right begins: such words keep their order among themselves.
    let mut run = 0;
    for word in words.into_iter().rev() {
        if word.chars().any(|c| c.is_alphabetic() && !is_right(c)) {
            read.insert(run, word);
        } else {
            read.push(turned(&word));
            run = read.len();
        }
    }
    read.join(" ")
}

/// Turns the letters of a word around; numbers in it are written from left to right everywhere.
fn turned(word: &str) -> String {
    let mut letters: Vec<char> = word.chars().rev().map(mirrored).collect();
    let is_number = |c: &char| c.is_numeric() || matches!(c, '.' | ',' | '/' | ':' | '%');
    let mut at = 0;
    while at < letters.len() {
        let end = at + letters[at..].iter().take_while(|c| is_number(c)).count();
        if letters[at..end].iter().any(|c| c.is_numeric()) {
            // Signs at the ends belong to the sentence.
            let signs = |part: &[char]| part.iter().take_while(|c| !c.is_numeric()).count();
            let first = at + signs(&letters[at..end]);
            let reversed: Vec<char> = letters[first..end].iter().rev().copied().collect();
            let last = end - signs(&reversed);
            letters[first..last].reverse();
        }
        at = end.max(at + 1);
    }
    letters.into_iter().collect()
}

fn mirrored(c: char) -> char {
    match c {
        '(' => ')',
        ')' => '(',
        '[' => ']',
        ']' => '[',
        '«' => '»',
        '»' => '«',
        c => c,
    }
}

fn is_right(c: char) -> bool {
    matches!(u32::from(c), 0x0590..=0x065F | 0x066A..=0x06EF | 0x06FA..=0x08FF | 0xFB1D..=0xFDFF | 0xFE70..=0xFEFF)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn painted_words_are_turned_around_and_numbers_are_not() {
        let painted = |text: &str| text.split(' ').map(str::to_owned).collect::<Vec<_>>();
        assert_eq!(in_reading_order(painted("םלוע םולש")), "שלום עולם");
        assert_eq!(in_reading_order(painted(".1948 תנש")), "שנת 1948.");
        assert_eq!(in_reading_order(painted("Rust םלוע םולש")), "שלום עולם Rust");
        assert_eq!(in_reading_order(painted("plain words")), "plain words");
        assert_eq!(plain("\u{FEE1}\u{FB01}"), "مfi");
    }
}
