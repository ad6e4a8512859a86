//! JOHAB, Korean letters composed of the indexes of their parts, which the encoding standard leaves out.
//!
//! Source: KS X 1001, annex 3. Deliberately absent: parts of letters alone.

use encoding_rs::EUC_KR;

/// Syllables that make up about a third of any Korean text.
const COMMON: &str =
    "이다는을의에가고하지로기은도를사한리자어대인시나해있서수으들과정그보것일여아제만부니라습";

/// Decodes bytes as JOHAB; what is no letter becomes U+FFFD.
pub fn decode(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len());
    let mut rest = bytes;
    while let [first, after @ ..] = rest {
        rest = after;
        if first.is_ascii() {
            text.push(char::from(*first));
            continue;
        }
        let letter = after
            .first()
            .and_then(|second| syllable(*first, *second).or_else(|| of_standard(*first, *second)));
        rest = if letter.is_some() { &after[1..] } else { after };
        text.push(letter.unwrap_or('\u{FFFD}'));
    }
    text
}

/// Counts the syllables that are frequent in Korean.
pub fn common(text: &str) -> usize {
    text.chars().filter(|c| COMMON.contains(*c)).count()
}

fn syllable(first: u8, second: u8) -> Option<char> {
    let pair = u32::from(first) << 8 | u32::from(second);
    let initial = (pair >> 10 & 31).checked_sub(2).filter(|initial| *initial < 19)?;
    let vowel = match pair >> 5 & 31 {
        at @ 3..=7 => at - 3,
        at @ 10..=15 => at - 5,
        at @ 18..=23 => at - 7,
        at @ 26..=29 => at - 9,
        _ => return None,
    };
    let last = match pair & 31 {
        at @ 1..=17 => at - 1,
        at @ 19..=29 => at - 2,
        _ => return None,
    };
    char::from_u32(0xAC00 + (initial * 21 + vowel) * 28 + last)
}

/// Reads a symbol or a Chinese character; both are in the order of KS X 1001.
fn of_standard(first: u8, second: u8) -> Option<char> {
    let first = u32::from(first);
    let second = u32::from(second);
    let row = match first {
        0xD9..=0xDE => 2 * (first - 0xD9),
        0xE0..=0xF9 => 2 * first - 0x197,
        _ => return None,
    };
    let (next, column) = match second {
        0x31..=0x7E => (0, second - 0x31),
        0x91..=0xA0 => (0, second - 0x43),
        0xA1..=0xFE => (1, second - 0xA1),
        _ => return None,
    };
    let pair = [row + next + 0xA1, column + 0xA1].map(|byte| byte as u8);
    let text = EUC_KR.decode_without_bom_handling_and_without_replacement(&pair)?;
    text.chars().next()
}
