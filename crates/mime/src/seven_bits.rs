//! Character sets of seven bits that shift into letters of two bytes, which the encoding standard leaves out: ISO-2022-KR, ISO-2022-CN, HZ, UTF-7.
//!
//! Each but the last is written as the eight-bit encoding of the same letters, which then is decoded.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD_NO_PAD;
use encoding_rs::{EUC_KR, Encoding, GBK};

/// The beginning and the end of two-byte letters in HZ.
const HZ: [&[u8]; 2] = [b"~{", b"~}"];

/// Letters in HZ from which a text without a declared encoding counts as HZ.
const LETTERS: usize = 4;

/// Decodes a shifting seven-bit text; `None` if it does not shift, or is in an encoding of the standard.
pub fn unshifted(bytes: &[u8], declared: Option<&str>) -> Option<String> {
    if !bytes.is_ascii() {
        return None;
    }
    let name = declared.unwrap_or_default().trim().to_ascii_lowercase();
    let designated = bytes.windows(4).find_map(|four| encoding_of(four));
    let named = match name.as_str() {
        "iso-2022-kr" | "csiso2022kr" => Some(EUC_KR),
        "iso-2022-cn" | "iso-2022-cn-ext" => Some(GBK),
        _ => None,
    };
    let shifts = |encoding: &&Encoding| designated == Some(*encoding) || bytes.contains(&SHIFT_OUT);
    let (bytes, encoding) = if let Some(encoding) = designated.or(named).filter(shifts) {
        (from_iso_2022(bytes), encoding)
    } else if is_hz(bytes, matches!(name.as_str(), "hz-gb-2312" | "hz" | "hzgb2312")) {
        (from_hz(bytes), GBK)
    } else {
        return None;
    };
    Some(encoding.decode_without_bom_handling(&bytes).0.into_owned())
}

const SHIFT_OUT: u8 = 0x0E;
const SHIFT_IN: u8 = 0x0F;

/// Returns the letters that an escape sequence chooses for the time after a shift.
fn encoding_of(four: &[u8]) -> Option<&'static Encoding> {
    match four {
        b"\x1b$)C" => Some(EUC_KR),
        b"\x1b$)A" => Some(GBK),
        _ => None,
    }
}

fn is_of_two(byte: u8) -> bool {
    (0x21..=0x7E).contains(&byte)
}

fn from_iso_2022(bytes: &[u8]) -> Vec<u8> {
    let mut written = Vec::with_capacity(bytes.len());
    let mut is_shifted = false;
    let mut rest = bytes;
    while let [byte, after @ ..] = rest {
        rest = after;
        match *byte {
            0x1B if after.starts_with(b"$") => rest = after.get(3..).unwrap_or_default(),
            SHIFT_OUT => is_shifted = true,
            SHIFT_IN => is_shifted = false,
            letter if is_shifted && is_of_two(letter) => written.push(letter | 0x80),
            other => {
                // Each line begins unshifted, whether or not the one before it ended so.
                is_shifted &= other != b'\n';
                written.push(other);
            }
        }
    }
    written
}

/// Returns whether a text is in HZ: by its name, or if each of its shifts contains only pairs.
fn is_hz(bytes: &[u8], is_named: bool) -> bool {
    let [open, close] = HZ;
    let mut letters = 0;
    let mut rest = bytes;
    while let Some(start) = find(rest, open) {
        rest = rest.get(start + 2..).unwrap_or_default();
        if is_named {
            return true;
        }
        let Some(end) = find(rest, close) else { return false };
        let (shifted, after) = rest.split_at(end);
        let is_pair = |pair: &[u8]| matches!(pair, [0x21..=0x77, second] if is_of_two(*second));
        if !shifted.chunks(2).all(is_pair) {
            return false;
        }
        letters += shifted.len() / 2;
        rest = after;
    }
    letters >= LETTERS
}

fn find(bytes: &[u8], sign: &[u8]) -> Option<usize> {
    bytes.windows(2).position(|two| two == sign)
}

fn from_hz(bytes: &[u8]) -> Vec<u8> {
    let mut written = Vec::with_capacity(bytes.len());
    let mut is_shifted = false;
    let mut rest = bytes;
    while let [byte, after @ ..] = rest {
        rest = after;
        match (*byte, after) {
            (b'~', [b'{', more @ ..]) if !is_shifted => (is_shifted, rest) = (true, more),
            (b'~', [b'}', more @ ..]) => (is_shifted, rest) = (false, more),
            (b'~', [b'~', more @ ..]) if !is_shifted => {
                written.push(b'~');
                rest = more;
            }
            // A line that continues after its end.
            (b'~', [b'\n', more @ ..] | [b'\r', b'\n', more @ ..]) if !is_shifted => rest = more,
            (first, [second, more @ ..])
                if is_shifted && is_of_two(first) && is_of_two(*second) =>
            {
                written.extend([first | 0x80, second | 0x80]);
                rest = more;
            }
            (other, _) => {
                is_shifted &= other != b'\n';
                written.push(other);
            }
        }
    }
    written
}

/// Decodes UTF-7 (RFC 2152); a shift whose letters are none of UTF-16 stays as it is.
pub fn from_utf_7(text: &str) -> String {
    let mut written = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('+') {
        written.push_str(before);
        let is_end = |c: char| !c.is_ascii_alphanumeric() && !"+/".contains(c);
        let (shifted, more) = after.split_at(after.find(is_end).unwrap_or(after.len()));
        let letters = from_base64(shifted);
        written.push_str(letters.as_deref().unwrap_or("+"));
        rest = match (&letters, more.strip_prefix('-')) {
            (None, None) => after,
            (None, Some(_)) if !shifted.is_empty() => after,
            (_, ended) => ended.unwrap_or(more),
        };
    }
    written.push_str(rest);
    written
}

/// Decodes letters of UTF-16 that are written in base64 without padding.
fn from_base64(text: &str) -> Option<String> {
    let bytes = STANDARD_NO_PAD.decode(text).ok()?;
    let (units, rest) = bytes.as_chunks::<2>();
    let units: Vec<u16> = units.iter().map(|unit| u16::from_be_bytes(*unit)).collect();
    let is_whole = rest.is_empty() && !units.is_empty();
    is_whole.then(|| String::from_utf16(&units).ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn utf_7_is_read_and_a_shift_that_is_none_stays() {
        for (written, text) in [
            ("Hi Mom -+Jjo--!", "Hi Mom -\u{263a}-!"),
            // Without a sign at its end, and with one that is a letter of the text.
            ("Gr+APw", "Grü"),
            ("sch+APY-n, +AOQ.", "schön, ä."),
            ("+2D3eAA- 1 +- 1 = 2", "😀 1 + 1 = 2"),
            // No letters of UTF-16.
            ("a + b, +2D0-, +A-, Date: +0100", "a + b, +2D0-, +A-, Date: +0100"),
            ("+", "+"),
            ("", ""),
        ] {
            assert_eq!(from_utf_7(written), text, "{written}");
        }
    }

    #[test]
    fn each_encoding_of_seven_bits_is_read_by_its_name_or_its_signs() {
        for (name, bytes, text) in [
            ("iso-2022-kr", &b"\x1b$)C\x0e0!3*\x0f abc"[..], "가나 abc"),
            ("", b"\x1b$)C\x0e0!3*\x0f abc", "가나 abc"),
            ("utf-8", b"\x1b$)Cabc \x0e0!3*", "abc 가나"),
            ("ISO-2022-KR", b"\x0e0!\x0f-\x0e3*\x0f", "가-나"),
            // A line that forgets to shift in, one that is cut within a letter, and one that shifts in twice.
            ("iso-2022-kr", b"\x1b$)C\x0e0!\nabc", "가\nabc"),
            ("iso-2022-kr", b"\x1b$)C\x0e0!3", "가\u{fffd}"),
            ("iso-2022-kr", b"\x1b$)Cabc\x0f\x0f", "abc"),
            ("iso-2022-kr", b"\x1b$)C\x0e0! 3*\x0f", "가 나"),
            ("iso-2022-cn", b"\x1b$)A\x0e=;;;\x0f.", "交换."),
            ("hz-gb-2312", b"abc ~{<:Ky2;~}.~~", "abc 己所不.~"),
            ("HZ-GB-2312", b"~{<:~}a~\r\nb~\nc", "己abc"),
            ("hz", b"~{<:Ky\nabc~{2;~}", "己所\nabc不"),
            ("hz", b"~{<:K", "己K"),
            ("", b"This is ~{<:Ky2;S{~}.", "This is 己所不欲."),
        ] {
            assert_eq!(unshifted(bytes, Some(name)).as_deref(), Some(text), "{name} {bytes:?}");
        }
    }

    #[test]
    fn other_texts_are_left_alone() {
        for (name, bytes) in [
            ("iso-2022-kr", &b"plain words"[..]),
            ("hz-gb-2312", b"~/.profile ~~"),
            ("hz-gb-2312", "~{für~}".as_bytes()),
            ("", b"(format t \"~{~a~^, ~}\" list) and ~{name~}"),
            ("", b"a \x0e b"),
            ("iso-2022-jp", b"\x1b$B$3\x1b(B"),
            ("", b""),
        ] {
            assert_eq!(unshifted(bytes, Some(name)), None, "{name} {bytes:?}");
        }
    }
}
