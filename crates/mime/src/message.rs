//! Reads messages whose writers break the rules: parts without an end, words cut within a character, wrong character sets.
//!
//! Enter at [`repaired`] before a message is parsed, and at [`readable_text`] for the text that a person reads.
//! Invariant: a correct message stays unchanged, and a broken one loses only its broken part.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::ops::Range;

use mail_parser::decoders::html;
use mail_parser::{
    Addr, Address, HeaderValue, Message, MessageParser, MessagePart, MimeHeaders, PartType,
};

use crate::charset::{decoded, named_in_page};
use crate::dates::dated;
use crate::seven_bits::unshifted;
use crate::words::{base64_body, from_quoted, joined};

/// How often a message is looked through, since each repaired part may show another one behind it.
const ROUNDS: usize = 6;
/// How deep messages are read within messages.
const DEPTH: usize = 4;

/// Returns a message with its parts closed and the words of its headers whole.
pub fn repaired(bytes: &[u8]) -> Cow<'_, [u8]> {
    let bytes = bytes.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(bytes);
    let start = bytes.iter().position(|byte| !b"\r\n".contains(byte)).unwrap_or(bytes.len());
    let mut repaired = Cow::Borrowed(&bytes[start..]);
    for _ in 0..ROUNDS {
        let Some(parsed) = MessageParser::default().parse(repaired.as_ref()) else { break };
        let mut parts = Vec::new();
        collect(&parsed, &mut parts);
        let boundaries: BTreeSet<String> = parts.iter().filter_map(|part| boundary(part)).collect();
        let changed = divided(&repaired, &parts)
            .or_else(|| closed(&repaired, &boundaries))
            .or_else(|| headers_repaired(&repaired, &parts));
        let Some(changed) = changed else { break };
        drop(parts);
        drop(parsed);
        repaired = Cow::Owned(changed);
    }
    repaired
}

/// Collects the parts whose offsets are in the same bytes: those of an encoded message are in its own.
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

/// Declares the boundary of the first multipart whose header has none or a wrong one; `None` if all are right.
fn divided(bytes: &[u8], parts: &[&MessagePart<'_>]) -> Option<Vec<u8>> {
    parts.iter().find_map(|part| {
        let kind = part.content_type().filter(|kind| kind.ctype() == "multipart")?;
        let body = part.raw_body_offset() as usize;
        let lines = || bytes.get(body..).unwrap_or_default().split(|byte| *byte == b'\n');
        let is_in = |boundary: &str| {
            let delimiter = format!("--{boundary}");
            lines().any(|line| line.starts_with(delimiter.as_bytes()))
        };
        if boundary(part).is_some_and(|boundary| is_in(&boundary)) {
            return None;
        }
        let mut delimiters = lines().filter_map(|line| line.strip_prefix(b"--"));
        let own = std::str::from_utf8(delimiters.next()?.trim_ascii_end()).ok()?;
        let header = format!(
            "Content-Type: multipart/{}; boundary=\"{own}\"\r\n",
            kind.subtype().unwrap_or("mixed")
        );
        let head = bytes.get(..body)?.strip_suffix(b"\n")?;
        let end = head.strip_suffix(b"\r").unwrap_or(head).len();
        let is_new = !own.is_empty() && !own.contains('"') && !head.ends_with(header.as_bytes());
        is_new.then(|| [&bytes[..end], header.as_bytes(), &bytes[end..]].concat())
    })
}

/// Closes each multipart without an end, before the following part; `None` if all have one.
fn closed(bytes: &[u8], boundaries: &BTreeSet<String>) -> Option<Vec<u8>> {
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
        let rest = delimiter.and_then(|rest| std::str::from_utf8(rest).ok()).unwrap_or_default();
        let begun = boundaries.get(rest).map(|boundary| (boundary.as_str(), false));
        let ended = || Some((boundaries.get(rest.strip_suffix("--")?)?.as_str(), true));
        let found = begun.or_else(ended);
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

/// Writes the headers of all parts in UTF-8, with adjacent encoded words as one; `None` without changes.
fn headers_repaired(bytes: &[u8], parts: &[&MessagePart<'_>]) -> Option<Vec<u8>> {
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
        let shifts = || unshifted(header, charset.as_deref()).is_some();
        let text = match std::str::from_utf8(header) {
            Ok(text) if !text.contains('\u{1b}') && !shifts() => Cow::Borrowed(text),
            _ => Cow::Owned(decoded(header, charset.as_deref())),
        };
        written.extend(joined(&dated(&text)).bytes());
        end = range.end;
    }
    written.extend(bytes.get(end..)?);
    (written != bytes).then_some(written)
}

/// Returns the readable text of a message: its own, otherwise that of its attachments.
pub fn readable_text(message: &Message<'_>) -> String {
    text_within(message, DEPTH)
}

/// Returns the parts of a message's own text: plain ones, or HTML where the plain text is missing or a mere hint at it.
pub fn body_parts<'m>(message: &'m Message<'_>) -> Vec<&'m MessagePart<'m>> {
    /// Letters and digits of a hint at most, and how many times as many the HTML has at least.
    const HINT: usize = 300;
    const TIMES: usize = 4;
    let text_of = |parts: &[&MessagePart<'_>]| -> String {
        let texts = parts.iter().filter(|part| part.text_contents().is_some());
        texts.map(|part| plain_text(message, part)).collect::<Vec<_>>().join("\n")
    };
    let letters = |text: &str| text.chars().filter(|c| c.is_alphanumeric()).count();
    let plain: Vec<_> = message.text_bodies().collect();
    let hint = text_of(&plain);
    let few = letters(&hint);
    if few >= HINT {
        return plain;
    }
    let html: Vec<_> = message.html_bodies().collect();
    let whole = text_of(&html);
    let many = letters(&whole);
    // An alternative has the same words. Each has a letter, so that there are fewer than `HINT`.
    let is_other = || {
        let words = hint.split_whitespace().filter(|word| word.contains(char::is_alphanumeric));
        let words: Vec<&str> = words.collect();
        words.iter().filter(|word| !whole.contains(**word)).count() * 2 > words.len()
    };
    let is_hint = many > few && (many > few * TIMES || is_other());
    if is_hint { html } else { plain }
}

fn text_within(message: &Message<'_>, depth: usize) -> String {
    let parts = body_parts(message).into_iter();
    let texts: Vec<String> = parts.map(|part| plain_text(message, part)).collect();
    let text = texts.join("\n").replace("\r\n", "\n");
    if !text.trim().is_empty() {
        return text;
    }
    let attached = message.attachments().filter_map(|part| attached_text(message, part, depth));
    let attached: Vec<String> = attached.filter(|text| !text.trim().is_empty()).collect();
    attached.join("\n\n")
}

fn attached_text(message: &Message<'_>, part: &MessagePart<'_>, depth: usize) -> Option<String> {
    match &part.body {
        PartType::Message(inner) => {
            // Read again, because its own parts may be broken as well.
            let bytes = repaired(inner.raw_message());
            let inner = MessageParser::default().parse(bytes.as_ref()).filter(|_| depth > 0)?;
            Some(quoted(&inner, &text_within(&inner, depth - 1)))
        }
        _ => text_of_part(message, part),
    }
}

/// Reads a part outside the message's own text if it is text of any kind.
pub fn text_of_part(message: &Message<'_>, part: &MessagePart<'_>) -> Option<String> {
    let kind = part.content_type();
    let is_text = kind.is_some_and(|kind| matches!(kind.ctype(), "text" | "message" | "multipart"));
    match kind.and_then(|kind| kind.subtype()) {
        Some("calendar" | "ics") => Some(unescaped(&unfolded(&plain_text(message, part)))),
        _ if is_text || part.is_text() => Some(plain_text(message, part)),
        _ => None,
    }
}

fn quoted(message: &Message<'_>, text: &str) -> String {
    let from = addresses(message.from()).join(", ");
    let date = message
        .date()
        .filter(|date| date.is_valid())
        .map(mail_parser::DateTime::to_rfc3339)
        .unwrap_or_default();
    let subject = message.subject().unwrap_or_default();
    format!("From: {from}\nDate: {date}\nSubject: {subject}\n\n{text}")
}

pub fn addresses(value: Option<&Address<'_>>) -> Vec<String> {
    let shown = |address: &Addr<'_>| {
        let email = address.address()?;
        Some(match address.name() {
            Some(name) if !name.is_empty() => format!("{name} <{email}>"),
            _ => email.to_owned(),
        })
    };
    value.into_iter().flat_map(Address::iter).filter_map(shown).collect()
}

/// Writes the lines of a calendar as they were before they were folded.
pub fn unfolded(calendar: &str) -> String {
    calendar.replace("\r\n", "\n").replace("\n ", "").replace("\n\t", "")
}

/// Writes a calendar's value as it was before it was escaped.
pub fn unescaped(value: &str) -> String {
    value.replace("\\n", "\n").replace("\\N", "\n").replace("\\,", ",").replace("\\;", ";")
}

/// Decodes a part from its bytes, as markup if it is; the parser's own text has lost undecodable bytes.
pub fn part_text(message: &Message<'_>, part: &MessagePart<'_>) -> String {
    let range = part.raw_body_offset() as usize..part.raw_end_offset() as usize;
    let raw = message.raw_message.get(range).unwrap_or_default();
    let bytes = match transfer_encoding(part).as_deref() {
        Some("base64") => Cow::Owned(base64_body(raw)),
        Some("quoted-printable") => Cow::Owned(from_quoted(raw)),
        _ => Cow::Borrowed(raw),
    };
    let charset = charset(part).or_else(|| named_in_page(&bytes).filter(|_| is_html(part)));
    decoded(&bytes, charset.as_deref())
}

/// Decodes a part as a person reads it, without markup.
fn plain_text(message: &Message<'_>, part: &MessagePart<'_>) -> String {
    let text = part_text(message, part);
    if is_html(part) { html::html_to_text(&text) } else { text }
}

fn is_html(part: &MessagePart<'_>) -> bool {
    matches!(part.body, PartType::Html(_))
        || part.content_type().is_some_and(|kind| kind.subtype() == Some("html"))
}

fn charset(part: &MessagePart<'_>) -> Option<String> {
    part.content_type()?.attribute("charset").map(str::to_owned)
}

fn transfer_encoding(part: &MessagePart<'_>) -> Option<String> {
    let name = part.headers.iter().rev().find_map(|header| match (&header.name, &header.value) {
        (mail_parser::HeaderName::ContentTransferEncoding, HeaderValue::Text(name)) => Some(name),
        _ => None,
    });
    name.map(|name| name.trim().to_ascii_lowercase())
        .filter(|name| name == "base64" || name == "quoted-printable")
}
