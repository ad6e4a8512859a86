//! Bytes to text, in any encoding: byte order marks first, then UTF-8, then the detected one.

use std::borrow::Cow;

use encoding_rs::Encoding;
use perihelion_mime::{EBCDIC, joined, named_in_page, named_or_guessed, unshifted, wide};

use crate::{Error, Warning};

/// Invisible characters within words: soft hyphen, word joiner, byte order mark. Crate `recall` leaves them out of words,
/// too (`words/split.rs`).
pub(crate) const UNSEEN: [char; 3] = ['\u{00AD}', '\u{2060}', '\u{FEFF}'];

/// Unifies the ends of lines, and removes characters that are not seen.
pub fn canonical(text: &str) -> String {
    let text = text.replace("\r\n", "\n");
    let text = text.replace(['\r', '\u{000C}', '\u{000B}', '\u{0085}'], "\n");
    let keeps = |c: &char| matches!(c, '\n' | '\t') || !(c.is_control() || UNSEEN.contains(c));
    text.chars().filter(keeps).collect()
}

#[derive(Default)]
pub(crate) struct Decoded {
    pub text: String,
    pub warnings: Vec<Warning>,
}

impl Decoded {
    /// Reports how much of the text was broken.
    fn new(text: &str) -> Self {
        let broken = |c: &char| matches!(c, '\u{FFFD}' | '\0');
        let count = text.chars().filter(broken).count();
        Self {
            text: canonical(text),
            warnings: (count > 0).then_some(Warning::DamagedText { count }).into_iter().collect(),
        }
    }
}

pub(crate) fn decode(bytes: &[u8]) -> Result<Decoded, Error> {
    decode_as(bytes, None)
}

pub(crate) fn decode_html(bytes: &[u8]) -> Result<Decoded, Error> {
    decode_as(bytes, named_in_page(bytes).as_deref())
}

fn decode_as(bytes: &[u8], named: Option<&str>) -> Result<Decoded, Error> {
    // Programs fill what they did not write with zeros.
    let end = bytes.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
    if let Some(text) = wide(bytes) {
        return Ok(Decoded::new(&text));
    }
    let bytes = &bytes[..end];
    // What follows the mark may have been written by another program.
    let bytes = joined(bytes.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(bytes));
    let bytes = bytes.as_ref();
    if let Some(text) = unshifted(bytes, named) {
        return Ok(Decoded::new(&text));
    }
    if is_binary(bytes) {
        return Err(Error::Encoding("the bytes are not a text".into()));
    }
    // All letters of ISO-2022-JP are ASCII's.
    let switches = bytes.windows(2).any(|pair| pair == b"\x1B$");
    if let Some(text) = mostly_utf8(bytes).filter(|_| !switches) {
        return Ok(Decoded::new(&text));
    }
    let named = named.and_then(|named| Encoding::for_label(named.as_bytes()));
    let (guess, text) = named_or_guessed(bytes, named);
    if guess == Some(EBCDIC) {
        return Err(Error::Encoding(
            "it is EBCDIC, whose variants differ: convert it to UTF-8".into(),
        ));
    }
    let mut decoded = Decoded::new(&text);
    let guess = guess.map(|guess| Warning::EncodingGuessed { encoding: guess.to_owned() });
    decoded.warnings.splice(0..0, guess);
    Ok(decoded)
}

/// Decodes UTF-8 in which fewer characters are broken than whole: a text in another encoding has hardly a whole one.
fn mostly_utf8(bytes: &[u8]) -> Option<Cow<'_, str>> {
    let mut whole = 0;
    let mut broken = 0;
    for chunk in bytes.utf8_chunks() {
        whole += chunk.valid().chars().filter(|c| !c.is_ascii()).count();
        broken += usize::from(!chunk.invalid().is_empty());
    }
    (broken == 0 || whole >= broken).then(|| String::from_utf8_lossy(bytes))
}

/// Texts hold hardly any zero bytes and other control characters.
fn is_binary(bytes: &[u8]) -> bool {
    let sample = &bytes[..bytes.len().min(8192)];
    let control = |byte: &&u8| matches!(**byte, 0..=8 | 14..=26 | 28..=31);
    sample.iter().filter(control).count().saturating_sub(1) * 50 > sample.len()
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
        // A mark of UTF-8 before a text that is none.
        for by in [encoding_rs::WINDOWS_1252, encoding_rs::MACINTOSH] {
            assert_eq!(text(&marked(&[0xEF, 0xBB, 0xBF], &by.encode(words).0)), words);
        }
    }

    #[test]
    fn lines_end_by_every_sign_for_it_and_words_stay_whole() {
        assert_eq!(text("one\u{85}two\r\nthree\u{b}four".as_bytes()), "one\ntwo\nthree\nfour");
        assert_eq!(text("Daten\u{ad}schutz\u{feff} und".as_bytes()), "Datenschutz und");
    }

    #[test]
    fn a_legacy_encoding_is_guessed_and_reported_as_a_guess() {
        let words = "Die Prüfung der Geräte ist für Müller größtenteils abgeschlossen.";
        let (bytes, _, _) = encoding_rs::WINDOWS_1252.encode(words);
        let decoded = decode(&bytes).unwrap();
        assert_eq!(decoded.text, words);
        assert!(matches!(decoded.warnings[..], [Warning::EncodingGuessed { .. }]));
        let words = "これは日本語の文書です。検索できなければなりません。";
        let (bytes, _, _) = encoding_rs::SHIFT_JIS.encode(words);
        assert_eq!(text(&bytes), words);
        let western = "Die Prüfung für Müller kostet 5 €: naïve Größe, übrig – „Café“.";
        for by in [encoding_rs::WINDOWS_1252, encoding_rs::MACINTOSH] {
            assert_eq!(text(&by.encode(western).0), western, "{}", by.name());
        }
        let plain = "Die Prüfung für Müller kostet 5 €: naïve Größe.";
        assert_eq!(text(&encoding_rs::ISO_8859_15.encode(plain).0), plain);
        let russian = "Проверка оборудования завершена, комиссия приняла все замечания.";
        for by in [
            encoding_rs::WINDOWS_1251,
            encoding_rs::KOI8_R,
            encoding_rs::IBM866,
            encoding_rs::ISO_8859_5,
            encoding_rs::X_MAC_CYRILLIC,
        ] {
            assert_eq!(text(&by.encode(russian).0), russian, "{}", by.name());
        }
        // DOS: code pages 850 and 437.
        let dos = b"Die Pr\x81fung f\x81r M\x81ller: na\x8bve Gr\x94\xe1e, Caf\x82.";
        assert_eq!(text(dos), "Die Prüfung für Müller: naïve Größe, Café.");
        // Capital letters and quotation marks are ordinary.
        let loud = "GRÖSSE ÜBER ALLES, d’accord: «Été» 20 µm, ½ m², Año nº 5, São, l’Œuvre.";
        assert_eq!(text(&encoding_rs::WINDOWS_1252.encode(loud).0), loud);
    }

    /// Places where each kind of damage is put into a text, and what is read of it.
    #[test]
    fn damaged_utf_8_is_read_up_to_the_damage_and_a_warning_counts_it() {
        let words = "Größe: 12 °C für Müller, übermäßig groß. ".repeat(9);
        let clean = words.as_bytes();
        let with = |at: usize, bytes: &[u8]| [&clean[..at], bytes, &clean[at..]].concat();
        // A byte of Latin-1, one that is never in UTF-8, half of a character, a zero, and a tail of zeros.
        for (damage, counted) in
            [(&b"\xE4"[..], 1), (b"\xFF", 1), (b"\xC3", 1), (b"\0", 1), (b"\xFE \xFE", 2)]
        {
            for at in [0, words.find('1').unwrap(), words.len()] {
                let decoded = decode(&with(at, damage)).unwrap();
                let read: String = decoded.text.chars().filter(|c| *c != '\u{FFFD}').collect();
                assert_eq!(read.replace("  ", " ").trim(), words.trim(), "{damage:?} at {at}");
                // Zeros at the end are no text at all.
                if !(damage == b"\0" && at == words.len()) {
                    assert_eq!(decoded.warnings, [Warning::DamagedText { count: counted }]);
                }
            }
        }
        let padded = [clean, &[0; 300]].concat();
        assert_eq!(text(&padded), words);
        // A short text, too, and one that is cut off within a character.
        assert_eq!(text(b"a\0b"), "ab");
        assert_eq!(text(&"für Müß".as_bytes()[..9]), "für Mü\u{FFFD}");
    }

    #[test]
    fn a_page_that_names_a_wrong_encoding_is_read_correctly() {
        let western = "Die Prüfung der Geräte ist für Müller größtenteils abgeschlossen.";
        let russian = "Проверка оборудования в основном завершена, результаты приложены.";
        let japanese = "これは日本語の文書です。検索できなければなりません。";
        for (words, own) in [
            (western, encoding_rs::WINDOWS_1252),
            (western, encoding_rs::UTF_8),
            (russian, encoding_rs::WINDOWS_1251),
            (russian, encoding_rs::UTF_8),
            (japanese, encoding_rs::SHIFT_JIS),
            (japanese, encoding_rs::EUC_JP),
        ] {
            for named in
                ["utf-16", "utf-16be", "utf-8", "hz-gb-2312", "iso-8859-1", "no-such", "utf-7"]
            {
                if named == "iso-8859-1" && words == western {
                    continue;
                }
                let page = format!("<html><head><meta charset=\"{named}\"></head><p>{words}</p>");
                let (bytes, _, _) = own.encode(&page);
                let decoded = decode_html(&bytes).unwrap();
                assert!(
                    decoded.text.contains(words),
                    "{named} for {}: {}",
                    own.name(),
                    decoded.text
                );
            }
        }
        let declared = "<?xml version='1.0' encoding='windows-1251'?><html><p>да</p></html>";
        let (bytes, _, _) = encoding_rs::WINDOWS_1251.encode(declared);
        assert!(decode_html(&bytes).unwrap().text.contains("да"));
    }

    #[test]
    fn encodings_of_seven_bits_that_shift_are_read_in_texts_and_pages() {
        // By Python's codecs.
        let korean = b"\x1b$)C\x0e>H3gGO<<?d\x0f, \x0eH8@G4B <<\x0f \x0e=C?!\x0f.";
        let chinese = b"~{Dz:C#,Gk2iJU8=<~!#~} OK";
        for (bytes, name, words) in [
            (&korean[..], "iso-2022-kr", "\u{c548}\u{b155}\u{d558}\u{c138}\u{c694}, "),
            (
                chinese,
                "hz-gb-2312",
                "\u{60a8}\u{597d}\u{ff0c}\u{8bf7}\u{67e5}\u{6536}\u{9644}\u{4ef6}\u{3002} OK",
            ),
        ] {
            assert!(text(bytes).starts_with(words), "{name}: {}", text(bytes));
            for named in [name, "utf-8", "us-ascii", "no-such"] {
                let head = format!("<html><head><meta charset=\"{named}\"></head><p>");
                let page = [head.as_bytes(), bytes, b"</p></html>"].concat();
                let decoded = decode_html(&page).unwrap().text;
                assert!(decoded.contains(words), "{named} for {name}: {decoded}");
            }
        }
    }

    #[test]
    fn cesu_8_and_johab_are_read_and_ebcdic_is_refused_by_name() {
        let cesu = b"Gr\xc3\xbc\xc3\x9fe \xed\xa0\xbd\xed\xb8\x80 an \xed\xa0\xb4\xed\xb4\x9e alle";
        assert_eq!(text(b"Text \xed\xa0\xbd Ende f\xc3\xbcr alle"), "Text \u{FFFD} Ende für alle");
        let decoded = decode(cesu).unwrap();
        assert_eq!((decoded.text.as_str(), decoded.warnings.len()), ("Grüße 😀 an 𝄞 alle", 0));
        // By Python's codec.
        let johab = b"\xb5\xa1\x93i \xd2A\xb7\x81\xb5A\xac\xe1 \xb5\x81\xace\xb7i \xb8\xf7\xd0a\x89\xa1 \x94a\xb7q \xba\x81\xb5A \x94a\xaf\xa1 \xa1\xa1\xb7\xa1\x8b\xa1\x9d\xa1 \xd0\x96\xafs\x93\xa1\x94a. \xe1\x9a\xed\xb3 \x94\x81\x8bq\xb7e 1,200\xb6\xa5\xb7\xa1\x94a.";
        let words = "오늘 회의에서 예산을 정하고 다음 주에 다시 모이기로 했습니다. 契約 대금은 1,200원이다.";
        let decoded = decode(johab).unwrap();
        assert_eq!(decoded.text, words);
        assert!(
            matches!(&decoded.warnings[..], [Warning::EncodingGuessed { encoding }] if encoding == "JOHAB")
        );
        let page = [b"<meta charset=johab><p>".as_slice(), johab].concat();
        assert!(decode_html(&page).unwrap().text.contains(words));
        let korean = encoding_rs::EUC_KR.encode(words).0;
        assert_eq!(text(&korean), words);
        for ebcdic in [&b"\xe3\x88\x85%\x83\x96\x95\xa3\x99\x81\x83\xa3%\x85\x95\x84\xa2%\x96\x95%\xf3\xf1%\xd4\x81\x99\x83\x88%\xf2\xf0\xf2\xf4"[..], &b"\xc1\xc3\xc3\xd6\xe4\xd5\xe3@\xf4\xf7\xf1\xf1@\xc2\xc1\xd3\xc1\xd5\xc3\xc5@\xf1\xf2\xf0\xf0K\xf5\xf0@\xc4\xc1\xe3\xc5@\xf2\xf0\xf2\xf4\xf0\xf3\xf3\xf1@@@"[..], &b"\xe3\x88\x85@\x83\x96\x95\xa3\x99\x81\x83\xa3@\x85\x95\x84\xa2@\x96\x95@\xf3\xf1@\xd4\x81\x99\x83\x88@\xf2\xf0\xf2\xf4^@\xa3\x88\x85@\x97\x99\x89\x83\x85@\x89\xa2@\xf1k\xf2\xf0\xf0@\x84\x96\x93\x93\x81\x99\xa2@\x81@\x94\x96\x95\xa3\x88K"[..], &b"\xc1\xc3\xc3\xd6\xe4\xd5\xe3@\xf4\xf7\xf1\xf1@@\xc2\xc1\xd3\xc1\xd5\xc3\xc5@\xf1k\xf2\xf0\xf0K\xf5\xf0%"[..], &b"\xc4\x89\x85@\xd7\x99\xd0\x86\xa4\x95\x87@\x84\x85\x99@\xc7\x85\x99\xc0\xa3\x85@\x89\xa2\xa3@\x86\xd0\x99@\xd4\xd0\x93\x93\x85\x99@\x81\x82\x87\x85\xa2\x83\x88\x93\x96\xa2\xa2\x85\x95K"[..]] {
            let error = decode(ebcdic).err().unwrap().to_string();
            assert!(error.contains("EBCDIC"), "{error}");
        }
    }

    #[test]
    fn bytes_that_are_no_text_are_refused() {
        let noise: Vec<u8> = (0..4000u32).map(|n| (n * 7919 % 256) as u8).collect();
        assert!(matches!(decode(&noise), Err(Error::Encoding(_))));
    }
}
