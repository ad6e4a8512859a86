//! Reads messages whose writers break the rules: parts without an end, words cut within a character, wrong character sets.
//!
//! Enter at [`mended`] before a message is parsed, and at [`text`] for what a person reads of it. Invariant: a message that is right is
//! left alone, and one that is not loses no more than its broken part.

use std::borrow::Cow;
use std::ops::Range;

use encoding_rs::{Encoding, ISO_2022_JP, UTF_8, WINDOWS_1252};
use mail_parser::decoders::charsets::map::charset_decoder;
use mail_parser::decoders::{base64, html, quoted_printable};
use mail_parser::{HeaderValue, Message, MessageParser, MessagePart, MimeHeaders, PartType};

/// How often a message is looked through, since each mended part may show another one behind it.
const ROUNDS: usize = 6;
/// How deep messages are read within messages.
const DEPTH: usize = 4;

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

/// Returns a message with its parts closed and the words of its headers whole.
pub fn mended(bytes: &[u8]) -> Cow<'_, [u8]> {
    let mut mended = Cow::Borrowed(bytes);
    for _ in 0..ROUNDS {
        let Some(parsed) = MessageParser::default().parse(mended.as_ref()) else { break };
        let mut parts = Vec::new();
        collect(&parsed, &mut parts);
        let boundaries: Vec<String> = parts.iter().filter_map(|part| boundary(part)).collect();
        let changed = closed(&mended, &boundaries).or_else(|| headers_mended(&mended, &parts));
        let Some(changed) = changed else { break };
        drop(parts);
        drop(parsed);
        mended = Cow::Owned(changed);
    }
    mended
}

/// Collects the parts whose offsets count in the same bytes: those of a message that was encoded count in its own.
fn collect<'a>(message: &'a Message<'a>, parts: &mut Vec<&'a MessagePart<'a>>) {
    for part in &message.parts {
        parts.push(part);
        if let PartType::Message(inner) = &part.body
            && transfer_encoding(part).is_none()
        {
            collect(inner, parts);
        }
    }
}

fn boundary(part: &MessagePart<'_>) -> Option<String> {
    let kind = part.content_type().filter(|kind| kind.ctype() == "multipart")?;
    kind.attribute("boundary").filter(|boundary| !boundary.is_empty()).map(str::to_owned)
}

/// Closes each part of parts that has no end, before what follows it; none if all have one.
fn closed(bytes: &[u8], boundaries: &[String]) -> Option<Vec<u8>> {
    let mut written = Vec::with_capacity(bytes.len() + 128);
    let mut open: Vec<&str> = Vec::new();
    let mut is_changed = false;
    let mut close = |boundary: &str, written: &mut Vec<u8>| {
        if !written.ends_with(b"\n") {
            written.extend(b"\r\n");
        }
        written.extend(format!("--{boundary}--\r\n").bytes());
        is_changed = true;
    };
    for line in bytes.split_inclusive(|byte| *byte == b'\n') {
        let delimiter = line.trim_ascii_end().strip_prefix(b"--");
        let found = delimiter.and_then(|rest| {
            boundaries.iter().find_map(|boundary| match rest.strip_prefix(boundary.as_bytes())? {
                b"" => Some((boundary.as_str(), false)),
                b"--" => Some((boundary.as_str(), true)),
                _ => None,
            })
        });
        if let Some((boundary, is_end)) = found {
            match open.iter().rposition(|known| *known == boundary) {
                Some(at) => {
                    open.drain(at + 1..).rev().for_each(|inner| close(inner, &mut written));
                    if is_end {
                        open.truncate(at);
                    }
                }
                None if is_end => {}
                None => open.push(boundary),
            }
        }
        written.extend(line);
    }
    open.into_iter().rev().for_each(|boundary| close(boundary, &mut written));
    is_changed.then_some(written)
}

/// Writes the headers of all parts in UTF-8, with adjacent encoded words as one; none if nothing changes.
fn headers_mended(bytes: &[u8], parts: &[&MessagePart<'_>]) -> Option<Vec<u8>> {
    let charset = parts.iter().find_map(|part| charset(part));
    let mut ranges: Vec<Range<usize>> = parts
        .iter()
        .map(|part| part.raw_header_offset() as usize..part.raw_body_offset() as usize)
        .collect();
    ranges.sort_by_key(|range| range.start);
    let mut written = Vec::with_capacity(bytes.len());
    let mut end = 0;
    for range in ranges.into_iter().filter(|range| !range.is_empty()) {
        if range.start < end {
            continue;
        }
        written.extend(bytes.get(end..range.start)?);
        let header = bytes.get(range.clone())?;
        let text = match std::str::from_utf8(header) {
            Ok(text) if !text.contains('\u{1b}') => Cow::Borrowed(text),
            _ => Cow::Owned(decoded(header, charset.as_deref())),
        };
        written.extend(parameters_joined(&words_joined(&text)).bytes());
        end = range.end;
    }
    written.extend(bytes.get(end..)?);
    (written != bytes).then_some(written)
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

/// Reads an encoded word at the beginning of a text; returns what follows it.
fn word(text: &str) -> Option<(Word<'_>, &str)> {
    let (charset, rest) = text.strip_prefix("=?")?.split_once('?')?;
    let (encoding, rest) = rest.split_once('?')?;
    let (data, rest) = rest.split_once("?=")?;
    let is_plain = |text: &str| !text.contains(['\r', '\n', '?']);
    let charset = charset.split('*').next().filter(|name| is_plain(name) && !name.contains(' '))?;
    let bytes = match encoding {
        "b" | "B" => from_base64(data.as_bytes())?,
        "q" | "Q" if is_plain(data) => {
            quoted_printable::quoted_printable_decode(data.replace('_', "=20").as_bytes())?
        }
        _ => return None,
    };
    is_plain(data).then_some((Word { charset, bytes }, rest))
}

/// Joins the pieces of each parameter that RFC 2231 divides, since a character may begin in one and end in the next.
fn parameters_joined(header: &str) -> String {
    let mut written = header.to_owned();
    while let Some((start, name)) = first_piece(&written) {
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

/// Reads the piece of this number at the beginning of a text; returns its value and what follows it.
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

/// Returns what a person reads of a message: its text, otherwise what is attached and can be read.
pub fn text(message: &Message<'_>) -> String {
    text_within(message, DEPTH)
}

fn text_within(message: &Message<'_>, depth: usize) -> String {
    let texts: Vec<String> = message.text_bodies().map(|part| part_text(message, part)).collect();
    let text = texts.join("\n").replace("\r\n", "\n");
    if !text.trim().is_empty() {
        return text;
    }
    let attached = message.attachments().filter_map(|part| attached_text(message, part, depth));
    let attached: Vec<String> = attached.filter(|text| !text.trim().is_empty()).collect();
    attached.join("\n\n")
}

fn attached_text(message: &Message<'_>, part: &MessagePart<'_>, depth: usize) -> Option<String> {
    let kind = part.content_type();
    let subtype = kind.and_then(|kind| kind.subtype()).unwrap_or_default();
    let is_calendar = subtype == "calendar" || subtype == "ics";
    match &part.body {
        PartType::Message(inner) => {
            // Read again, because its own parts may be broken as well.
            let bytes = mended(inner.raw_message());
            let inner = MessageParser::default().parse(bytes.as_ref()).filter(|_| depth > 0)?;
            Some(quoted(&inner, &text_within(&inner, depth - 1)))
        }
        _ if is_calendar => Some(unfolded(&part_text(message, part))),
        PartType::Text(_) | PartType::Html(_) => Some(part_text(message, part)),
        _ if kind.is_some_and(|kind| matches!(kind.ctype(), "message" | "multipart")) => {
            Some(part_text(message, part))
        }
        _ => None,
    }
}

/// Writes a message within a message.
fn quoted(message: &Message<'_>, text: &str) -> String {
    let from = crate::message::addresses(message.from()).join(", ");
    let date = message.date().map(mail_parser::DateTime::to_rfc3339).unwrap_or_default();
    let subject = message.subject().unwrap_or_default();
    format!("From: {from}\nDate: {date}\nSubject: {subject}\n\n{text}")
}

/// Writes the lines of a calendar as they were before they were folded and escaped.
fn unfolded(calendar: &str) -> String {
    let text = calendar.replace("\r\n", "\n").replace("\n ", "").replace("\n\t", "");
    text.replace("\\n", "\n").replace("\\N", "\n").replace("\\,", ",").replace("\\;", ";")
}

/// Decodes a part from its bytes; the parser's own text has lost what it could not decode.
fn part_text(message: &Message<'_>, part: &MessagePart<'_>) -> String {
    let range = part.raw_body_offset() as usize..part.raw_end_offset() as usize;
    let raw = message.raw_message.get(range).unwrap_or_default();
    let bytes = match transfer_encoding(part).as_deref() {
        Some("base64") => from_base64(raw),
        Some("quoted-printable") => quoted_printable::quoted_printable_decode(raw),
        _ => None,
    };
    let bytes = bytes.map_or(Cow::Borrowed(raw), Cow::Owned);
    let is_html = matches!(part.body, PartType::Html(_))
        || part.content_type().is_some_and(|kind| kind.subtype() == Some("html"));
    let charset = charset(part).or_else(|| page_charset(&bytes).filter(|_| is_html));
    let text = decoded(&bytes, charset.as_deref());
    if is_html { html::html_to_text(&text) } else { text }
}

fn charset(part: &MessagePart<'_>) -> Option<String> {
    part.content_type()?.attribute("charset").map(str::to_owned)
}

/// Returns the character set that a page names itself.
fn page_charset(bytes: &[u8]) -> Option<String> {
    let head = String::from_utf8_lossy(bytes.get(..1024).unwrap_or(bytes)).to_ascii_lowercase();
    let (_, name) = head.split_once("charset=")?;
    let name = name.trim_start_matches(['"', '\'']);
    let end = name.find(|c: char| !c.is_ascii_alphanumeric() && !"-_".contains(c));
    name.get(..end.unwrap_or(name.len())).map(str::to_owned)
}

/// Returns how a part was encoded for its transport, if it was.
fn transfer_encoding(part: &MessagePart<'_>) -> Option<String> {
    let name = part.headers.iter().rev().find_map(|header| match (&header.name, &header.value) {
        (mail_parser::HeaderName::ContentTransferEncoding, HeaderValue::Text(name)) => Some(name),
        _ => None,
    });
    name.map(|name| name.trim().to_ascii_lowercase())
        .filter(|name| name == "base64" || name == "quoted-printable")
}

/// Decodes base64 as far as it goes: what is cut off costs its last three bytes.
fn from_base64(text: &[u8]) -> Option<Vec<u8>> {
    let is_sign = |byte: &u8| byte.is_ascii_alphanumeric() || b"+/=".contains(byte);
    let signs: Vec<u8> = text.iter().copied().filter(is_sign).collect();
    base64::base64_decode(&signs)
}

/// Decodes bytes by their declared character set; where that is missing or wrong, by the one that they look like.
pub fn decoded(bytes: &[u8], declared: Option<&str>) -> String {
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

/// Tells whether a bad byte costs its character only, because the others are read.
fn is_mostly_read(text: &str) -> bool {
    let lost = text.matches(REPLACED).count();
    text.chars().filter(|c| !c.is_ascii()).count() >= lost * 5
}
