//! A message as a model reads it.

use mail_parser::{HeaderValue, MessageParser, MimeHeaders};
use perihelion_mime::{addresses, decoded, readable_text, repaired};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::compose::Part;
use crate::{Error, Result};

/// Most messages of a thread that are read.
pub const THREAD: usize = 50;

/// Most characters of a message's text that are shown; a longer text is not sent.
const TEXT: usize = 40_000;

/// A message in a list.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Summary {
    /// Names it: its Message-ID.
    pub id: String,
    pub folder: String,
    pub from: String,
    pub to: Vec<String>,
    pub subject: String,
    /// When it was sent, RFC 3339.
    pub date: Option<String>,
    pub unread: bool,
}

/// A message with its text.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Message {
    pub id: String,
    pub folder: String,
    pub from: String,
    pub to: Vec<String>,
    pub cc: Vec<String>,
    /// Hidden recipients; drafts have them, received messages do not.
    pub bcc: Vec<String>,
    pub subject: String,
    pub date: Option<String>,
    /// Its text; of one that is HTML alone, the text in it.
    pub text: String,
    /// Names and sizes of the attachments.
    pub attachments: Vec<String>,
    /// The Message-ID of the message that it answers.
    pub in_reply_to: Option<String>,
    /// The date in seconds since the epoch: dates of different zones have no order as text.
    #[serde(skip)]
    pub(crate) sent_at: Option<i64>,
    #[serde(skip)]
    pub(crate) references: Vec<String>,
    #[serde(skip)]
    pub(crate) reply_to: Vec<String>,
}

/// Messages of a search, newest first, or of a thread, oldest first.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Messages<T> {
    pub messages: Vec<T>,
    /// There are more; these are the newest.
    pub truncated: bool,
}

/// Reads a message; broken parts are left out.
pub fn read(bytes: &[u8], folder: &str, uid: u32) -> Message {
    parse(bytes, folder, format!("uid:{uid}:{folder}"))
}

/// Reads a message; one without a Message-ID that servers find gets the name that is given.
pub fn parse(bytes: &[u8], folder: &str, fallback: String) -> Message {
    let bytes = repaired(bytes);
    let Some(parsed) = MessageParser::default().parse(bytes.as_ref()) else {
        let text = decoded(&bytes, None);
        return Message { id: fallback, folder: folder.to_owned(), text, ..Message::default() };
    };
    // Of two files of one size, only the digest shows which one is meant.
    let attachments = parsed.attachments().map(|part| {
        let name = part.attachment_name().unwrap_or("unnamed");
        let bytes = part.contents();
        let digest = blake3::hash(bytes).to_hex();
        format!("{name} ({} bytes, {})", bytes.len(), &digest[..16])
    });
    let date = parsed.date().filter(|date| date.is_valid());
    Message {
        id: parsed.message_id().and_then(searchable).unwrap_or(fallback),
        folder: folder.to_owned(),
        from: addresses(parsed.from()).join(", "),
        to: addresses(parsed.to()),
        cc: addresses(parsed.cc()),
        bcc: addresses(parsed.bcc()),
        subject: parsed.subject().unwrap_or_default().to_owned(),
        date: date.map(mail_parser::DateTime::to_rfc3339),
        sent_at: date.map(mail_parser::DateTime::to_timestamp),
        text: readable_text(&parsed),
        attachments: attachments.collect(),
        in_reply_to: ids(parsed.in_reply_to()).pop(),
        references: ids(parsed.references()),
        reply_to: addresses(parsed.reply_to()),
    }
}

impl Message {
    /// Returns whether its ID is a Message-ID, not the server's own name for it.
    pub(crate) fn has_id(&self) -> bool {
        self.id.starts_with('<')
    }

    /// Cuts the text of a received message to the shown length.
    pub(crate) fn clip(&mut self) {
        if let Some((end, _)) = self.text.char_indices().nth(TEXT) {
            self.text.truncate(end);
            self.text.push('…');
        }
    }

    pub fn summary(&self, unread: bool) -> Summary {
        Summary {
            id: self.id.clone(),
            folder: self.folder.clone(),
            from: self.from.clone(),
            to: self.to.clone(),
            subject: self.subject.clone(),
            date: self.date.clone(),
            unread,
        }
    }
}

/// Puts messages into the order in which they were sent; those without a date come first.
pub fn oldest_first(messages: &mut [Message]) {
    messages.sort_by_key(|message| message.sent_at);
}

/// Returns the newest messages of a thread and the requested message, oldest first. Crate `agents` shortens its reply
/// by the same rule (`mail/look.rs`).
pub fn newest(mut messages: Vec<Message>, asked: &str) -> Messages<Message> {
    oldest_first(&mut messages);
    let mut excess = messages.len().saturating_sub(THREAD);
    let truncated = excess > 0;
    messages.retain(|message| {
        let is_left_out = excess > 0 && message.id != asked;
        excess -= usize::from(is_left_out);
        !is_left_out
    });
    Messages { messages, truncated }
}

pub fn bracketed(id: &str) -> String {
    format!("<{}>", id.trim().trim_matches(['<', '>']))
}

/// Returns a Message-ID in angle brackets if servers find messages by it: printable ASCII without spaces.
pub fn searchable(id: &str) -> Option<String> {
    let id = bracketed(id);
    (id.len() >= 5 && id.chars().all(|c| c.is_ascii_graphic())).then_some(id)
}

fn ids(value: &HeaderValue<'_>) -> Vec<String> {
    match value {
        HeaderValue::Text(id) => searchable(id).into_iter().collect(),
        HeaderValue::TextList(list) => list.iter().filter_map(|id| searchable(id)).collect(),
        _ => Vec::new(),
    }
}

/// Rejects a text that is too long to be shown whole before it is sent.
pub(crate) fn check_length(text: &str) -> Result<()> {
    match text.chars().count() {
        characters if characters > TEXT => Err(Error::TooLong { characters, most: TEXT }),
        _ => Ok(()),
    }
}

pub fn parts(bytes: &[u8]) -> Vec<Part> {
    let bytes = repaired(bytes);
    let Some(parsed) = MessageParser::default().parse(bytes.as_ref()) else { return Vec::new() };
    let part = |part: &mail_parser::MessagePart<'_>| {
        let content_type = part.content_type().map(|found| match found.subtype() {
            Some(subtype) => format!("{}/{subtype}", found.ctype()),
            None => found.ctype().to_owned(),
        });
        Part {
            name: part.attachment_name().unwrap_or("unnamed").to_owned(),
            content_type: content_type.unwrap_or_else(|| "application/octet-stream".to_owned()),
            bytes: part.contents().to_vec(),
        }
    };
    parsed.attachments().map(part).collect()
}

/// A draft as a person was shown it; one that differs by now is not sent.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Shown {
    pub from: String,
    pub to: Vec<String>,
    pub cc: Vec<String>,
    pub bcc: Vec<String>,
    pub subject: String,
    pub text: String,
    /// Names and sizes, as the draft lists them.
    pub attachments: Vec<String>,
}

impl Shown {
    /// Rejects a draft that differs from the shown one.
    ///
    /// # Errors
    /// [`Error::Changed`] with the first part that differs; [`Error::TooLong`].
    pub(crate) fn check(&self, draft: &Message) -> Result<()> {
        check_length(&draft.text)?;
        let text = |text: &str| text.trim_end().to_owned();
        let differs = [
            ("from", self.from != draft.from),
            ("to", self.to != draft.to),
            ("cc", self.cc != draft.cc),
            ("bcc", self.bcc != draft.bcc),
            ("subject", self.subject != draft.subject),
            ("text", text(&self.text) != text(&draft.text)),
            ("attachments", self.attachments != draft.attachments),
        ];
        match differs.iter().find(|(_, differs)| *differs) {
            Some((part, _)) => Err(Error::Changed { id: draft.id.clone(), part }),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_attachment_of_the_same_size_is_another_one() {
        let listed = |text: &str| {
            let part = format!("Content-Disposition: attachment; filename=a.txt\r\n\r\n{text}");
            let head = "Content-Type: multipart/mixed; boundary=b\r\n\r\n--b\r\n\r\nt\r\n--b";
            read(format!("{head}\r\n{part}\r\n--b--\r\n").as_bytes(), "Drafts", 1).attachments
        };
        assert_eq!(listed("pay 10"), listed("pay 10"));
        assert_ne!(listed("pay 10"), listed("pay 99"));
        assert!(listed("pay 10")[0].starts_with("a.txt (6 bytes, "), "{:?}", listed("pay 10"));
    }
}
