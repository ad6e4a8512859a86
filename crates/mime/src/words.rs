//! Headers whose words and parameters were divided within a character.

use std::borrow::Cow;

use mail_parser::decoders::base64;

use crate::charset::decoded;

/// Longest encoded word that is looked for, in bytes; the standard allows 75.
const WORD: usize = 4096;
/// Most divided parameters that are joined in one header.
const PARAMETERS: usize = 32;

/// Writes a header with adjacent encoded words and divided parameters as one each.
pub fn joined(header: &str) -> String {
    parameters_joined(&words_joined(header))
}

/// An encoded word of RFC 2047.
struct Word<'a> {
    charset: &'a str,
    bytes: Vec<u8>,
}

/// Joins adjacent words of one character set, since a character may begin in one and end in the next.
fn words_joined(header: &str) -> String {
    let mut written = String::with_capacity(header.len());
    let mut rest = header;
    while let Some(start) = rest.find("=?") {
        let (before, from) = rest.split_at(start);
        written.push_str(before);
        let Some((Word { charset, mut bytes }, mut after)) = word(from) else {
            written.push_str("=?");
            rest = from.get(2..).unwrap_or_default();
            continue;
        };
        let mut is_joined = false;
        while let Some((next, more)) = word(after.trim_start())
            && next.charset.eq_ignore_ascii_case(charset)
        {
            bytes.extend(next.bytes);
            after = more;
            is_joined = true;
        }
        if is_joined || !charset.eq_ignore_ascii_case("utf-8") {
            // Never more than one word again, so that a second pass changes nothing.
            written.push_str("=?utf-8?Q?");
            let text = decoded(&bytes, Some(charset));
            written.extend(text.bytes().map(|byte| format!("={byte:02X}")));
            written.push_str("?=");
        } else {
            written.push_str(from.get(..from.len() - after.len()).unwrap_or_default());
        }
        rest = after;
    }
    written.push_str(rest);
    written
}

/// Reads an encoded word at the beginning of a text; returns the rest.
fn word(text: &str) -> Option<(Word<'_>, &str)> {
    let window = text.get(..text.floor_char_boundary(WORD))?;
    let (charset, rest) = window.strip_prefix("=?")?.split_once('?')?;
    let (encoding, rest) = rest.split_once('?')?;
    let (data, rest) = rest.split_once("?=")?;
    let is_plain = |text: &str| !text.contains(['\r', '\n', '?']);
    let charset = charset.split('*').next().filter(|name| is_plain(name) && !name.contains(' '))?;
    let bytes = match encoding {
        "b" | "B" => from_base64(data.as_bytes())?,
        "q" | "Q" if is_plain(data) => from_quoted(data.replace('_', " ").as_bytes()),
        _ => return None,
    };
    let after = text.get(window.len() - rest.len()..)?;
    is_plain(data).then_some((Word { charset, bytes }, after))
}

/// Joins the pieces of each parameter that RFC 2231 divides, since a character may begin in one and end in the next.
fn parameters_joined(header: &str) -> String {
    let mut written = header.to_owned();
    for _ in 0..PARAMETERS {
        let Some((start, name)) = first_piece(&written) else { break };
        let mut bytes = Vec::new();
        let mut charset = String::new();
        let mut rest = written.get(start..).unwrap_or_default();
        let mut count = 0;
        while let Some((piece, more)) = piece(rest, &name, count) {
            let mut piece = Cow::from(percent_encoding::percent_decode_str(piece));
            if count == 0 {
                let mut parts = piece.splitn(3, |byte| *byte == b'\'');
                charset = String::from_utf8_lossy(parts.next().unwrap_or_default()).into_owned();
                piece = Cow::Owned(parts.nth(1).unwrap_or_default().to_vec());
            }
            bytes.extend_from_slice(&piece);
            rest = more;
            count += 1;
        }
        if count == 0 {
            break;
        }
        let text = decoded(&bytes, Some(&charset));
        let text = percent_encoding::utf8_percent_encode(&text, percent_encoding::NON_ALPHANUMERIC);
        let end = written.len() - rest.len();
        let joined = format!("{name}*=utf-8\'\'{text}");
        written.replace_range(start..end, &joined);
    }
    written
}

/// Finds the first piece of a divided parameter, and the parameter's name.
fn first_piece(header: &str) -> Option<(usize, String)> {
    let (before, _) = header.split_once("*0*=")?;
    let is_name = |c: char| c.is_ascii_alphanumeric() || c == '-';
    let start = before.trim_end_matches(is_name).len();
    Some((start, before.get(start..)?.to_owned()))
}

/// Reads the piece of this number at the beginning of a text; returns its value and the rest.
fn piece<'a>(text: &'a str, name: &str, number: usize) -> Option<(&'a str, &'a str)> {
    let text = text.trim_start_matches([';', ' ', '\t', '\r', '\n']);
    let value = text.strip_prefix(name)?.strip_prefix(&format!("*{number}"))?;
    let value = value.strip_prefix("*=").or_else(|| value.strip_prefix('='))?;
    match value.strip_prefix('"') {
        Some(quoted) => quoted.split_once('"'),
        None => {
            Some(value.split_at(value.find([';', ' ', '\t', '\r', '\n']).unwrap_or(value.len())))
        }
    }
}

/// Decodes as much base64 as possible: a cut costs the last three bytes.
pub fn from_base64(text: &[u8]) -> Option<Vec<u8>> {
    let is_sign = |byte: &u8| byte.is_ascii_alphanumeric() || b"+/=".contains(byte);
    let signs: Vec<u8> = text.iter().copied().filter(is_sign).collect();
    base64::base64_decode(&signs)
}

/// Decodes a base64 body; lines that are not base64, such as the footer of a mailing list, stay as they are.
pub fn base64_body(body: &[u8]) -> Vec<u8> {
    let is_text = |line: &[u8]| {
        let line = line.trim_ascii();
        line.starts_with(b"--") || line.starts_with(b"__") || line.contains(&b' ')
    };
    let mut at = 0;
    for line in body.split_inclusive(|byte| *byte == b'\n') {
        if is_text(line) {
            break;
        }
        at += line.len();
    }
    let (encoded, rest) = body.split_at(at);
    match from_base64(encoded) {
        Some(bytes) if rest.is_empty() => bytes,
        Some(bytes) => [&bytes, &b"\n"[..], rest].concat(),
        None => body.to_vec(),
    }
}

/// Decodes quoted-printable; an equals sign without two hexadecimal digits stays.
pub fn from_quoted(text: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some((&byte, after)) = rest.split_first() {
        // A number may have a sign, which no code has.
        let digits = after.get(..2).filter(|code| code.iter().all(u8::is_ascii_hexdigit));
        let code = digits.and_then(|code| std::str::from_utf8(code).ok());
        let code = code.and_then(|code| u8::from_str_radix(code, 16).ok());
        let line_end = after.iter().position(|byte| !b" \t\r".contains(byte));
        let is_joined = line_end.is_none_or(|at| after[at] == b'\n');
        rest = match code.filter(|_| byte == b'=') {
            Some(code) => {
                bytes.push(code);
                &after[2..]
            }
            None if byte == b'=' && is_joined => line_end.map_or(&[], |at| &after[at + 1..]),
            None => {
                bytes.push(byte);
                after
            }
        };
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_hexadecimal_digits_are_a_code_and_a_sign_with_a_digit_is_text() {
        assert_eq!(from_quoted(b"a=41=+1=-1"), b"aA=+1=-1");
    }
}
