//! Mails (EML, MHTML): fields that a reader looks at, the text, and mails within them; attachments are named.

use mail_parser::{Addr, Address, Message, MessageParser, MessagePart, MimeHeaders as _, PartType};
use perihelion_mime::{body_parts, part_text, repaired, text_of_part, unescaped, unfolded};

use crate::builder::{Builder, one_line};
use crate::{Error, Format, Limits, Parsed, Warning};

/// How deeply mails within mails are read.
const DEEPEST: usize = 5;

pub(crate) fn parse(bytes: &[u8], limits: &Limits) -> Result<Parsed, Error> {
    let bytes = repaired(bytes);
    let message = MessageParser::default()
        .parse(bytes.as_ref())
        .ok_or_else(|| Error::broken(Format::Eml, "it has no fields"))?;
    let mut writer = Writer { builder: Builder::new(Format::Eml), unread: Vec::new(), broken: 0 };
    writer.builder.title = message.subject().map(one_line);
    let from = message.from().into_iter().flat_map(Address::iter);
    let names = from.filter_map(|one| one.name.as_ref().or(one.address.as_ref()));
    writer.builder.authors = crate::builder::author_names(names.map(ToString::to_string));
    let is_written = writer.message(&message, 0);
    let Writer { mut builder, unread, broken } = writer;
    limits.check_text(builder.len())?;
    let is_sealed = message.parts.iter().any(|part| {
        part.content_type().and_then(|kind| kind.subtype()).is_some_and(|kind| {
            kind.eq_ignore_ascii_case("encrypted") || kind.eq_ignore_ascii_case("pkcs7-mime")
        })
    });
    if !is_written && is_sealed {
        return Err(Error::Unsupported("an encrypted mail".into()));
    }
    if !is_written && unread.is_empty() && message.subject().is_none() {
        return Err(Error::NoText);
    }
    if broken > 0 {
        builder.warnings.push(Warning::DamagedText { count: broken });
    }
    if !unread.is_empty() {
        builder.warnings.push(Warning::AttachmentsUnread { names: unread });
    }
    Ok(builder.finish())
}

struct Writer {
    builder: Builder,
    unread: Vec<String>,
    /// Characters that are broken.
    broken: usize,
}

impl Writer {
    /// Writes a mail and those within it; returns whether one of them has a text.
    fn message(&mut self, message: &Message<'_>, depth: usize) -> bool {
        let level = u8::try_from(depth + 1).unwrap_or(6);
        self.builder.heading(level, message.subject().unwrap_or_default());
        self.fields(message);
        let says = |part: &&MessagePart<'_>| {
            part.text_contents().is_some()
                && part_text(message, part).chars().any(char::is_alphanumeric)
        };
        let is_attached = |part: &&MessagePart<'_>| {
            part.content_disposition().is_some_and(|kind| kind.is_attachment())
        };
        let mut is_written = false;
        let body = body_parts(message).into_iter().filter(says);
        for part in body.filter(|part| !is_attached(part)) {
            is_written |= self.text(message, part);
        }
        for part in &message.parts {
            let is_alternative = message.html_body.iter().chain(&message.text_body).any(|id| {
                message.parts.get(*id as usize).is_some_and(|own| std::ptr::eq(own, part))
            });
            match &part.body {
                PartType::Multipart(_) => {}
                PartType::Message(inner) if depth < DEEPEST => {
                    // Read again, because its own parts may be broken as well.
                    let bytes = repaired(inner.raw_message());
                    let inner = MessageParser::default().parse(bytes.as_ref());
                    is_written |= inner.is_some_and(|inner| self.message(&inner, depth + 1));
                }
                _ if part.content_type().and_then(|kind| kind.subtype()) == Some("calendar") => {
                    if !is_written {
                        is_written = self.calendar(&part_text(message, part));
                    }
                }
                PartType::Text(_) | PartType::Html(_) if is_alternative && !is_attached(&part) => {}
                _ => match (part.attachment_name(), text_of_part(message, part)) {
                    (None, Some(text)) if !is_written && !text.trim().is_empty() => {
                        self.builder.paragraph(&text.replace("\r\n", "\n"));
                        is_written = true;
                    }
                    (name, _) => self.unread.push(one_line(name.unwrap_or("unnamed"))),
                },
            }
        }
        is_written
    }

    fn fields(&mut self, message: &Message<'_>) {
        let shown = |one: &Addr<'_>| match (&one.name, &one.address) {
            (Some(name), Some(address)) => format!("{name} <{address}>"),
            (name, address) => {
                name.as_ref().or(address.as_ref()).map(ToString::to_string).unwrap_or_default()
            }
        };
        let lists = [("From", message.from()), ("To", message.to()), ("Cc", message.cc())];
        let mut lines: Vec<String> = Vec::new();
        for (name, list) in lists {
            let list: Vec<String> = list.into_iter().flat_map(Address::iter).map(shown).collect();
            let list = list.join(", ");
            lines.extend((!list.is_empty()).then(|| format!("{name}: {list}")));
        }
        let date = message.date().filter(|date| date.is_valid());
        lines.extend(date.map(|date| format!("Date: {}", date.to_rfc3339())));
        self.builder.paragraph(&lines.join("\n"));
    }

    /// Writes a part of the text; returns whether it says something.
    fn text(&mut self, message: &Message<'_>, part: &MessagePart<'_>) -> bool {
        let text = part_text(message, part);
        self.broken += text.chars().filter(|c| *c == '\u{FFFD}').count();
        let before = self.builder.len();
        match &part.body {
            PartType::Html(_) => drop(crate::html::write(&text, &mut self.builder)),
            _ => {
                let text = text.replace("\r\n", "\n");
                let keeps = |c: &char| !c.is_control() || matches!(c, '\n' | '\t');
                self.builder.paragraph(&text.chars().filter(keeps).collect::<String>());
            }
        }
        self.builder.len() > before
    }

    fn calendar(&mut self, text: &str) -> bool {
        const FIELDS: [&str; 7] =
            ["SUMMARY", "DTSTART", "DTEND", "LOCATION", "ORGANIZER", "ATTENDEE", "DESCRIPTION"];
        /// Parameters shown after a value: its time zone, a name, and whether the person attends.
        const PARAMETERS: [&str; 3] = ["TZID", "CN", "PARTSTAT"];
        let text = unfolded(text);
        let mut lines = Vec::new();
        let event = text.split("BEGIN:VEVENT").skip(1);
        for line in event.flat_map(str::lines).take_while(|line| *line != "END:VCALENDAR") {
            let field = unquoted(line, ':').next().unwrap_or_default();
            let Some(value) = line.get(field.len() + 1..) else { continue };
            let mut parts = unquoted(field, ';');
            let name = parts.next().filter(|name| FIELDS.contains(name));
            let kept = parts.filter_map(|one| one.split_once('=')).filter(|(name, _)| {
                PARAMETERS.iter().any(|known| known.eq_ignore_ascii_case(name))
            });
            let kept: Vec<&str> = kept.map(|(_, value)| value.trim_matches('"')).collect();
            lines.extend(name.map(|name| {
                let kept =
                    if kept.is_empty() { String::new() } else { format!(" ({})", kept.join(", ")) };
                format!("{name}: {}{kept}", unescaped(value).trim())
            }));
        }
        self.builder.paragraph(&lines.join("\n"));
        !lines.is_empty()
    }
}

/// Splits at a character outside quotes.
fn unquoted(text: &str, sign: char) -> impl Iterator<Item = &str> {
    let mut is_quoted = false;
    text.split(move |c: char| {
        is_quoted ^= c == '"';
        c == sign && !is_quoted
    })
}
