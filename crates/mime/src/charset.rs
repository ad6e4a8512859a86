//! Character sets: what a text says of itself, and what it looks like where that is missing or wrong.

use encoding_rs::{Encoding, ISO_2022_JP, UTF_8, WINDOWS_1252};
use mail_parser::decoders::charsets::map::charset_decoder;

use crate::seven_bits::unshifted;

/// Stands for what could not be decoded.
const REPLACED: char = '\u{fffd}';

/// Character sets by names that the encoding standard leaves out.
const ALIASES: [(&str, &str); 12] = [
    ("cp932", "shift_jis"),
    ("windows-932", "shift_jis"),
    ("ujis", "euc-jp"),
    ("eucjp", "euc-jp"),
    ("euccn", "gbk"),
    ("euc-cn", "gbk"),
    ("cp936", "gbk"),
    ("windows-936", "gbk"),
    ("cp949", "euc-kr"),
    ("uhc", "euc-kr"),
    ("euckr", "euc-kr"),
    ("cp950", "big5"),
];

/// Decodes bytes by their declared character set; where that is missing or wrong, by the one that they look like.
pub fn decoded(bytes: &[u8], declared: Option<&str>) -> String {
    if let Some(text) = unshifted(bytes, declared) {
        return text;
    }
    let name = declared.unwrap_or_default().trim().to_ascii_lowercase();
    let alias = ALIASES.iter().find(|(alias, _)| *alias == name);
    let name = alias.map_or(name.as_str(), |(_, name)| name);
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
    // All bytes are letters of this one, and hardly any text in it reads as UTF-8.
    let certain = known.filter(|encoding| *encoding != WINDOWS_1252);
    for encoding in certain.into_iter().chain([UTF_8]) {
        let (text, _, has_errors) = encoding.decode(bytes);
        if !has_errors || is_mostly_read(&text) {
            return text.into_owned();
        }
    }
    if known == Some(WINDOWS_1252) && !name.contains("ascii") {
        return WINDOWS_1252.decode(bytes).0.into_owned();
    }
    let mut detector = chardetng::EncodingDetector::new(chardetng::Iso2022JpDetection::Allow);
    detector.feed(bytes, true);
    detector.guess(None, chardetng::Utf8Detection::Allow).decode(bytes).0.into_owned()
}

/// Decodes a page, whose name for its own character set is wrong more often than UTF-8 is right by accident.
pub fn decoded_page(bytes: &[u8], declared: Option<&str>) -> String {
    let named = declared.map(str::to_owned).or_else(|| named_in_page(bytes));
    match std::str::from_utf8(bytes) {
        Ok(text) if !bytes.is_ascii() => text.trim_start_matches('\u{feff}').to_owned(),
        _ => decoded(bytes, named.as_deref()),
    }
}

/// Returns the character set that a page names itself; what XML declares comes before what the page says.
pub fn named_in_page(bytes: &[u8]) -> Option<String> {
    let head = String::from_utf8_lossy(bytes.get(..2048).unwrap_or(bytes)).to_ascii_lowercase();
    let declared = head.trim_start().strip_prefix("<?xml").and_then(|rest| rest.split_once("?>"));
    let declared = declared.and_then(|(own, _)| own.split_once("encoding="));
    let (_, name) = declared.or_else(|| head.split_once("charset="))?;
    let name = name.trim_start_matches(['"', '\'', ' ']);
    let end = name.find(|c: char| !c.is_ascii_alphanumeric() && !"-_:".contains(c));
    name.get(..end.unwrap_or(name.len())).map(str::to_owned)
}

/// Tells whether a bad byte costs its character only, because the others are read.
fn is_mostly_read(text: &str) -> bool {
    let lost = text.matches(REPLACED).count();
    text.chars().filter(|c| !c.is_ascii()).count() >= lost * 5
}
