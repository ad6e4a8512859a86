//! Bytes to text, whatever the encoding: byte order marks first, then UTF-8, then what the bytes look like.

use crate::{Error, Warning};

/// A decoded text.
pub(crate) struct Decoded {
    pub text: String,
    pub warning: Option<Warning>,
}

pub(crate) fn decode(bytes: &[u8]) -> Result<Decoded, Error> {
    decode_as(bytes, None)
}

/// Decodes a page, which may name its encoding itself.
pub(crate) fn decode_html(bytes: &[u8]) -> Result<Decoded, Error> {
    decode_as(bytes, named_in_html(bytes))
}

fn decode_as(
    bytes: &[u8],
    named: Option<&'static encoding_rs::Encoding>,
) -> Result<Decoded, Error> {
    let known = |text: String| Ok(Decoded { text: clean(&text), warning: None });
    // Before UTF-16: its little-endian mark is the beginning of UTF-32's.
    if let Some(rest) = bytes.strip_prefix(&[0xFF, 0xFE, 0, 0]) {
        return known(utf32(rest, u32::from_le_bytes)?);
    }
    if let Some(rest) = bytes.strip_prefix(&[0, 0, 0xFE, 0xFF]) {
        return known(utf32(rest, u32::from_be_bytes)?);
    }
    if let Some((encoding, mark)) = encoding_rs::Encoding::for_bom(bytes) {
        return known(encoding.decode_without_bom_handling(&bytes[mark..]).0.into_owned());
    }
    if let Some(text) = unmarked_wide(bytes)? {
        return known(text);
    }
    if let Ok(text) = std::str::from_utf8(bytes) {
        if is_binary(bytes) {
            return Err(Error::Encoding("the bytes are not a text".into()));
        }
        return known(text.to_owned());
    }
    if is_binary(bytes) {
        return Err(Error::Encoding("the bytes are not a text".into()));
    }
    if let Some(encoding) = named {
        return known(encoding.decode(bytes).0.into_owned());
    }
    let mut detector = chardetng::EncodingDetector::new(chardetng::Iso2022JpDetection::Allow);
    detector.feed(bytes, true);
    let encoding = detector.guess(None, chardetng::Utf8Detection::Allow);
    let text = encoding.decode(bytes).0;
    let warning = Some(Warning::EncodingGuessed { encoding: encoding.name().to_owned() });
    Ok(Decoded { text: clean(&text), warning })
}

/// Decodes UTF-16 and UTF-32 without a mark: most of such a text's upper bytes are zero.
fn unmarked_wide(bytes: &[u8]) -> Result<Option<String>, Error> {
    let sample = &bytes[..bytes.len().min(4096) / 4 * 4];
    if sample.len() < 8 {
        return Ok(None);
    }
    let zeros = |residue: usize| {
        sample.iter().skip(residue).step_by(4).filter(|byte| **byte == 0).count() * 4
    };
    let [a, b, c, d] = [0, 1, 2, 3].map(|residue| zeros(residue) * 10 > sample.len() * 7);
    Ok(if !a && c && d {
        Some(utf32(bytes, u32::from_le_bytes)?)
    } else if a && b && !d {
        Some(utf32(bytes, u32::from_be_bytes)?)
    } else if !a && b && !c && d {
        Some(encoding_rs::UTF_16LE.decode(bytes).0.into_owned())
    } else if a && !b && c && !d {
        Some(encoding_rs::UTF_16BE.decode(bytes).0.into_owned())
    } else {
        None
    })
}

fn utf32(bytes: &[u8], read: fn([u8; 4]) -> u32) -> Result<String, Error> {
    let (units, rest) = bytes.as_chunks::<4>();
    if !rest.is_empty() {
        return Err(Error::Encoding("UTF-32 whose last character is cut off".into()));
    }
    Ok(units.iter().map(|unit| char::from_u32(read(*unit)).unwrap_or('\u{FFFD}')).collect())
}

/// Texts hold no zero bytes and hardly any other control characters.
fn is_binary(bytes: &[u8]) -> bool {
    let sample = &bytes[..bytes.len().min(8192)];
    let control = |byte: &&u8| matches!(**byte, 0..=8 | 14..=26 | 28..=31);
    sample.contains(&0) || sample.iter().filter(control).count() * 50 > sample.len()
}

/// Makes line ends one, and leaves out what no reader sees.
fn clean(text: &str) -> String {
    let text = text.strip_prefix('\u{FEFF}').unwrap_or(text).replace("\r\n", "\n");
    let keeps = |c: &char| !c.is_control() || matches!(c, '\n' | '\t');
    text.replace(['\r', '\u{000C}', '\u{000B}'], "\n").chars().filter(keeps).collect()
}

fn named_in_html(bytes: &[u8]) -> Option<&'static encoding_rs::Encoding> {
    let head = String::from_utf8_lossy(&bytes[..bytes.len().min(2048)]).to_ascii_lowercase();
    let (_, after) = head.split_once("charset=")?;
    let label: String = after
        .trim_start_matches(['"', '\'', ' '])
        .chars()
        .take_while(|c| c.is_ascii_alphanumeric() || "-_:".contains(*c))
        .collect();
    encoding_rs::Encoding::for_label(label.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(bytes: &[u8]) -> String {
        decode(bytes).unwrap().text
    }

    #[test]
    fn every_unicode_encoding_is_read_with_and_without_a_mark() {
        let words = "Größe: 12 °C\nnächste Zeile, plain words follow here.";
        let le16: Vec<u8> = words.encode_utf16().flat_map(u16::to_le_bytes).collect();
        let be16: Vec<u8> = words.encode_utf16().flat_map(u16::to_be_bytes).collect();
        let le32: Vec<u8> = words.chars().flat_map(|c| u32::from(c).to_le_bytes()).collect();
        let be32: Vec<u8> = words.chars().flat_map(|c| u32::from(c).to_be_bytes()).collect();
        for bytes in [words.as_bytes(), &le16, &be16, &le32, &be32] {
            assert_eq!(text(bytes), words);
        }
        let marked = |mark: &[u8], rest: &[u8]| [mark, rest].concat();
        assert_eq!(text(&marked(&[0xEF, 0xBB, 0xBF], words.as_bytes())), words);
        assert_eq!(text(&marked(&[0xFF, 0xFE], &le16)), words);
        assert_eq!(text(&marked(&[0xFE, 0xFF], &be16)), words);
        assert_eq!(text(&marked(&[0xFF, 0xFE, 0, 0], &le32)), words);
        assert_eq!(text(&marked(&[0, 0, 0xFE, 0xFF], &be32)), words);
    }

    #[test]
    fn a_legacy_encoding_is_guessed_and_said_to_be() {
        let words = "Die Prüfung der Geräte ist für Müller größtenteils abgeschlossen.";
        let (bytes, _, _) = encoding_rs::WINDOWS_1252.encode(words);
        let decoded = decode(&bytes).unwrap();
        assert_eq!(decoded.text, words);
        assert!(matches!(decoded.warning, Some(Warning::EncodingGuessed { .. })));
        let words = "これは日本語の文書です。検索できなければなりません。";
        let (bytes, _, _) = encoding_rs::SHIFT_JIS.encode(words);
        assert_eq!(text(&bytes), words);
    }

    #[test]
    fn bytes_that_are_no_text_are_refused() {
        let noise: Vec<u8> = (0..4000u32).map(|n| (n * 7919 % 256) as u8).collect();
        assert!(matches!(decode(&noise), Err(Error::Encoding(_))));
    }
}
