//! Character sets: the declaration of a text, and the detection if it is missing or wrong.

use std::borrow::Cow;
use std::ops::RangeInclusive;

use encoding_rs::{
    Encoding, IBM866, ISO_2022_JP, ISO_8859_5, ISO_8859_15, KOI8_R, KOI8_U, MACINTOSH, REPLACEMENT,
    UTF_8, UTF_16BE, UTF_16LE, WINDOWS_1251, WINDOWS_1252, WINDOWS_1254, X_MAC_CYRILLIC,
};
use mail_parser::decoders::charsets::map::charset_decoder;

use crate::johab;
use crate::seven_bits::{from_utf_7, unshifted};
use crate::wide::wide;

/// Replaces bytes that could not be decoded.
const REPLACED: char = '\u{fffd}';

/// Character sets by names that the encoding standard leaves out.
const ALIASES: [(&str, &str); 7] = [
    ("shift_jis", "cp932 windows-932"),
    ("euc-jp", "ujis eucjp"),
    ("gbk", "euccn euc-cn cp936 windows-936"),
    ("euc-kr", "cp949 uhc euckr"),
    ("big5", "cp950"),
    ("x-mac-cyrillic", "mac-cyrillic maccyrillic"),
    // The same letters; only the box-drawing characters differ.
    ("cp850", "cp437 ibm437 437"),
];

/// Decodes bytes by their declared character set; if it is missing or wrong, by the detected one.
pub fn decoded(bytes: &[u8], declared: Option<&str>) -> String {
    if let Some(text) = wide(bytes).or_else(|| unshifted(bytes, declared)) {
        return text;
    }
    // What follows the mark may have been written by another program.
    let joined = joined(bytes.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(bytes));
    let bytes = joined.as_ref();
    let name = declared.unwrap_or_default().trim().to_ascii_lowercase();
    if matches!(name.as_str(), "johab" | "cp1361" | "ms1361" | "windows-1361") {
        return johab::decode(bytes);
    }
    if name.replace('-', "").ends_with("utf7") && bytes.is_ascii() {
        return from_utf_7(&String::from_utf8_lossy(bytes));
    }
    let known = ALIASES.iter().find(|(_, aliases)| aliases.split(' ').any(|one| one == name));
    let name = known.map_or(name.as_str(), |(name, _)| name);
    // Seven bits with escapes are what they are, whatever they are called.
    let is_japanese = bytes.is_ascii() && bytes.windows(2).any(|pair| pair == b"\x1b$");
    let known = Encoding::for_label_no_replacement(name.as_bytes());
    let known = if is_japanese { Some(ISO_2022_JP) } else { known };
    if let Some(decode) = charset_decoder(name.as_bytes()).filter(|_| known.is_none()) {
        let text = decode(bytes);
        if !text.contains(REPLACED) {
            return text;
        }
    }
    // All bytes are letters of these, and hardly any text in them reads as UTF-8.
    let certain = known.filter(|encoding| !is_western(encoding) && !is_renamed(bytes, encoding));
    for encoding in certain.into_iter().chain([UTF_8]) {
        let (text, _, has_errors) = encoding.decode(bytes);
        if !has_errors || is_mostly_read(&text) {
            return text.into_owned();
        }
    }
    let western = known.filter(|encoding| is_western(encoding) && !name.contains("ascii"));
    named_or_guessed(bytes, western).1
}

/// Decodes bytes by the named character set if they can be in it, otherwise by the detected one, whose name is returned.
pub fn named_or_guessed(
    bytes: &[u8],
    named: Option<&'static Encoding>,
) -> (Option<&'static str>, String) {
    let (guess, text) = guessed(bytes);
    match named.filter(|named| guess != EBCDIC && is_so_encoded(bytes, named, guess)) {
        Some(named) => (None, named.decode_without_bom_handling(bytes).0.into_owned()),
        None => (Some(guess), text),
    }
}

/// Returns whether an encoding is for western languages: all bytes are letters or signs of it.
fn is_western(encoding: &'static Encoding) -> bool {
    [WINDOWS_1252, WINDOWS_1254, ISO_8859_15, MACINTOSH].contains(&encoding)
}

/// Returns whether a text is declared as UTF-16 and was converted to UTF-8 without its declaration.
fn is_renamed(bytes: &[u8], named: &'static Encoding) -> bool {
    let is_text = |text: &str| text.chars().all(|c| !c.is_control() || c.is_whitespace());
    [UTF_16LE, UTF_16BE].contains(&named) && std::str::from_utf8(bytes).is_ok_and(is_text)
}

/// Returns whether bytes can be in the encoding that a text names; many name that of the program that they were made with.
fn is_so_encoded(bytes: &[u8], named: &'static Encoding, guess: &str) -> bool {
    let is_readable = |encoding: &'static Encoding| {
        encoding.decode_without_bom_handling_and_without_replacement(bytes).is_some()
    };
    if [UTF_16LE, UTF_16BE, REPLACEMENT].contains(&named) || !is_readable(named) {
        return false;
    }
    // Words of a western language have one such letter here and there; those of another script have nothing else.
    let foreign: Vec<usize> = bytes
        .chunk_by(|a, b| a.is_ascii() == b.is_ascii())
        .filter(|run| !run[0].is_ascii())
        // A row of one sign, such as a line of dashes, is no word.
        .map(|run| run.chunk_by(|a, b| a == b).count())
        .collect();
    let is_foreign = foreign.iter().sum::<usize>() > foreign.len() * 3;
    let guess = Encoding::for_label(guess.as_bytes()).unwrap_or(WINDOWS_1252);
    !(is_western(named) && is_foreign && !is_western(guess) && is_readable(guess))
}

/// Joins the halves of characters beyond the first 65,536, which CESU-8 writes as two characters.
pub fn joined(bytes: &[u8]) -> Cow<'_, [u8]> {
    let half = |at: usize, second: RangeInclusive<u8>| match bytes.get(at..at + 3) {
        Some([0xED, high, low @ 0x80..=0xBF]) if second.contains(high) => {
            Some(u32::from(high & 0x0F) << 6 | u32::from(low & 0x3F))
        }
        _ => None,
    };
    let pair = |at| Some(half(at, 0xA0..=0xAF)? << 10 | half(at + 3, 0xB0..=0xBF)?);
    let is_half = |at: &usize| half(*at, 0xA0..=0xBF).is_some();
    let Some(first) = (0..bytes.len()).find(is_half) else { return bytes.into() };
    let mut written = bytes[..first].to_vec();
    let mut at = first;
    while let Some(byte) = bytes.get(at) {
        let (length, c) = match pair(at) {
            Some(pair) => (6, char::from_u32(pair + 0x1_0000)),
            None if half(at, 0xA0..=0xBF).is_some() => (3, Some(REPLACED)),
            None => (1, None),
        };
        match c {
            Some(c) => written.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes()),
            None => written.push(*byte),
        }
        at += length;
    }
    // Other character sets have such bytes, too.
    if std::str::from_utf8(&written).is_ok() { written.into() } else { bytes.into() }
}

/// The name of a character set that is recognized and not read: its many variants differ in their signs.
pub const EBCDIC: &str = "EBCDIC";

/// Returns whether bytes are letters, digits, signs and spaces of EBCDIC, of which no other character set has as many.
fn is_ebcdic(bytes: &[u8]) -> bool {
    let is_letter = |byte: u8| {
        let low = byte & 0x0F;
        matches!(byte >> 4, 0x8 | 0x9 | 0xC | 0xD) && (1..=9).contains(&low)
            || matches!(byte >> 4, 0xA | 0xE) && (2..=9).contains(&low)
            || matches!(byte, 0xF0..=0xF9)
    };
    let is_sign = |byte: u8| matches!(byte, 0x4B..=0x4F | 0x5A..=0x61 | 0x6B..=0x6F | 0x7A..=0x7F);
    let is_space = |byte: u8| matches!(byte, 0x05 | 0x0D | 0x15 | 0x25 | 0x40);
    let count = |is: &dyn Fn(u8) -> bool| bytes.iter().filter(|byte| is(**byte)).count();
    let letters = count(&is_letter);
    let spaces = count(&is_space);
    let all = letters + spaces + count(&is_sign);
    letters * 2 > bytes.len() && all * 10 > bytes.len() * 9 && spaces * 30 > bytes.len()
}

/// Decodes bytes by their most likely character set, and returns its name with the text.
fn guessed(bytes: &[u8]) -> (&'static str, String) {
    if is_ebcdic(bytes) {
        return (EBCDIC, format!("[a text in {EBCDIC}, which cannot be read]"));
    }
    let mut detector = chardetng::EncodingDetector::new(chardetng::Iso2022JpDetection::Allow);
    detector.feed(bytes, true);
    let guess = detector.guess(None, chardetng::Utf8Detection::Allow);
    let by = |encoding: &'static Encoding| {
        (encoding.name(), encoding.decode_without_bom_handling(bytes).0.into_owned())
    };
    let korean = johab::decode(bytes);
    let frequent = johab::common(&korean);
    if frequent > 2
        && frequent * 6 > korean.chars().filter(|c| !c.is_ascii()).count()
        && frequent > johab::common(&by(guess).1) * 2
    {
        return ("JOHAB", korean);
    }
    // The detector knows no other character set for western languages, and not that of the Mac for Cyrillic letters.
    let mut likely = vec![by(guess)];
    if guess == WINDOWS_1252 {
        likely.extend([by(ISO_8859_15), by(MACINTOSH)]);
        likely.extend(charset_decoder(b"cp850").map(|decode| ("IBM850", decode(bytes))));
    } else if [WINDOWS_1251, KOI8_R, KOI8_U, IBM866, ISO_8859_5].contains(&guess) {
        likely.push(by(X_MAC_CYRILLIC));
    }
    let best = likely.into_iter().min_by_key(|(_, text)| odd_signs(text));
    best.unwrap_or_else(|| by(guess))
}

/// Counts characters that hardly occur in real text: signs and capital letters within words, control characters, the currency sign.
fn odd_signs(text: &str) -> usize {
    let letters: Vec<char> = text.chars().collect();
    let is_odd = |three: &&[char]| {
        let [before, c, after] = three else { return false };
        let is_letter = c.is_alphabetic() && !"ªº".contains(*c);
        let is_sign = !is_letter && before.is_alphabetic() && after.is_alphabetic();
        let is_inside = before.is_alphabetic() && after.is_lowercase();
        let is_capital = c.is_uppercase() && (is_inside || before.is_lowercase());
        !c.is_ascii() && (is_sign || is_capital) && !"’\u{ad}·".contains(*c)
    };
    let unseen = |c: &&char| matches!(c, '\u{80}'..='\u{9f}' | '\u{a4}' | '\u{fffd}');
    letters.windows(3).filter(is_odd).count() + letters.iter().filter(unseen).count()
}

/// Decodes a page, whose name for its own character set is wrong more often than UTF-8 is right by accident.
pub fn decoded_page(bytes: &[u8], declared: Option<&str>) -> String {
    let named = declared.map(str::to_owned).or_else(|| named_in_page(bytes));
    match std::str::from_utf8(bytes) {
        Ok(text) if !bytes.is_ascii() => text.trim_start_matches('\u{feff}').to_owned(),
        _ => decoded(bytes, named.as_deref()),
    }
}

/// Returns the declared character set of a page; an XML declaration precedes the page's own.
pub fn named_in_page(bytes: &[u8]) -> Option<String> {
    let head = String::from_utf8_lossy(bytes.get(..2048).unwrap_or(bytes)).to_ascii_lowercase();
    let declared = head.trim_start().strip_prefix("<?xml").and_then(|rest| rest.split_once("?>"));
    let declared = declared.and_then(|(own, _)| own.split_once("encoding="));
    let (_, name) = declared.or_else(|| head.split_once("charset="))?;
    let name = name.trim_start_matches(['"', '\'', ' ']);
    let end = name.find(|c: char| !c.is_ascii_alphanumeric() && !"-_:".contains(c));
    name.get(..end.unwrap_or(name.len())).map(str::to_owned)
}

/// Returns whether a bad byte costs only its character, because the rest is readable.
fn is_mostly_read(text: &str) -> bool {
    let lost = text.matches(REPLACED).count();
    text.chars().filter(|c| !c.is_ascii()).count() >= lost * 5
}
