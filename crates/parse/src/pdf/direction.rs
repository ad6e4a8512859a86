//! Writing from right to left: a page has it in the order of painting, which is not the order of reading.

use unicode_normalization::UnicodeNormalization as _;
use unicode_normalization::char::is_combining_mark;

use super::rows::Row;
use crate::encoding::UNSEEN;

/// Returns a letter as it is typed: presentation forms and ligatures become their letters.
pub(super) fn plain(text: &str) -> String {
    let shown =
        |c: char| matches!(u32::from(c), 0xFB00..=0xFB4F | 0xFB50..=0xFDFF | 0xFE70..=0xFEFE);
    let keeps = |c: &char| !c.is_control() && *c != '\u{FFFD}' && !UNSEEN.contains(c);
    if text.chars().any(shown) {
        text.nfkc().filter(keeps).collect()
    } else {
        text.replace('\u{00A0}', " ").chars().filter(keeps).collect()
    }
}

/// Returns a letter as it is painted: the letters of a ligature are typed in reading order, and painted in the other
/// one.
pub(super) fn painted(text: &str) -> String {
    let text = plain(text);
    if text.chars().any(is_right) { text.chars().rev().collect() } else { text }
}

/// Returns whether a letter consists only of marks (vowels, accents) on a letter of a right-to-left script.
pub(super) fn is_mark(text: &str) -> bool {
    text.chars().all(|c| is_right(c) && is_combining_mark(c)) && !text.is_empty()
}

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
    let left = text.chars().filter(|c| is_left(*c)).count();
    right > 0 && right * 20 > left && left * 20 > right
}

/// Returns whether the letters of a page differ from the visible ones. No word has one letter three times in a row, but
/// a lengthened line has, if its font calls the strokes a letter; other letters of it are wrong then, too.
pub(super) fn is_misnamed(rows: &[Row]) -> bool {
    /// Fewest such places: one may be an outcry.
    const FEWEST: usize = 3;
    let places = |text: &str| {
        let letters: Vec<char> = text.chars().collect();
        let is_thrice = |three: &&[char; 3]| {
            three.iter().all(|c| *c == three[0] && c.is_alphabetic() && is_right(*c))
        };
        letters.array_windows().filter(is_thrice).count()
    };
    rows.iter().flat_map(|row| &row.pieces).map(|piece| places(&piece.text)).sum::<usize>()
        >= FEWEST
}

/// Joins words that are painted from left to right.
pub(super) fn in_reading_order(words: Vec<String>) -> String {
    let from_right = is_right_to_left(&words.concat());
    // A tatweel lengthens a line and is no letter.
    let words = words.iter().map(|word| word.replace('\u{0640}', ""));
    let mut words: Vec<String> = words.flat_map(|word| apart(&word)).collect();
    if from_right {
        words.reverse();
    }
    let mut read: Vec<String> = Vec::new();
    // Where a run of words of the other direction begins: such words keep their order among themselves.
    let mut run = 0;
    for word in words {
        let is_other = if from_right {
            word.chars().any(is_left) && !word.chars().any(is_right)
        } else {
            word.chars().any(is_right)
        };
        let turns = word.chars().any(is_right) || (from_right && !is_other);
        let word = if turns { turned(&word) } else { word };
        if is_other {
            read.insert(run, word);
        } else {
            read.push(word);
            run = read.len();
        }
    }
    read.join(" ")
}

/// Divides a word where letters of both directions touch: the space between them is often painted elsewhere.
fn apart(word: &str) -> Vec<String> {
    let mut parts: Vec<String> = Vec::new();
    let mut last = None;
    for c in word.chars() {
        let touches = last
            .is_some_and(|last| (is_right(last) && is_left(c)) || (is_left(last) && is_right(c)));
        match parts.last_mut() {
            Some(part) if !touches => part.push(c),
            _ => parts.push(c.to_string()),
        }
        last = Some(c);
    }
    parts
}

/// Turns the letters of a word around; numbers and names in it that are written from left to right stay.
fn turned(word: &str) -> String {
    let mut letters: Vec<char> = word.chars().rev().map(mirrored).collect();
    let says = |c: &char| c.is_numeric() || is_left(*c);
    let stays = |c: &char| says(c) || matches!(c, '.' | ',' | '/' | ':' | '%');
    let mut at = 0;
    while at < letters.len() {
        let end = at + letters[at..].iter().take_while(|c| stays(c)).count();
        if letters[at..end].iter().any(says) {
            // Signs at the ends belong to the sentence.
            let signs = |part: &[char]| part.iter().take_while(|c| !says(c)).count();
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

fn is_left(c: char) -> bool {
    c.is_alphabetic() && !is_right(c)
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
        assert_eq!(in_reading_order(painted("נוקRust םלוע")), "עולם Rust קונ");
        assert_eq!(in_reading_order(painted("API-ה םלוע")), "עולם ה-API");
        assert_eq!(in_reading_order(painted("say םלוע םולש to all")), "say שלום עולם to all");
        assert_eq!(plain("\u{FEE1}\u{FB01}"), "مfi");
    }

    #[test]
    fn a_ligature_is_read_in_the_order_in_which_its_letters_are_typed() {
        // Lam and alef are one letter on the page, with a yeh to its left.
        let words = vec![["ي", &painted("\u{FEFB}"), "م"].concat()];
        assert_eq!(in_reading_order(words), "ملاي");
        assert_eq!(painted("ffi"), "ffi");
        assert!(is_mark("\u{064B}") && !is_mark("ض\u{064B}") && !is_mark("\u{0301}"));
    }
}
