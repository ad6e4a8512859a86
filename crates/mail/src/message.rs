//! A message as a model reads it.

use mail_parser::{Address, HeaderValue, MessageParser, MimeHeaders};
use schemars::JsonSchema;
use serde::Serialize;

/// Most characters of a message's text.
const TEXT: usize = 40_000;

/// What a list shows of a message.
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
    pub subject: String,
    pub date: Option<String>,
    /// Its text; of one that is HTML alone, the text in it.
    pub text: String,
    /// Names and sizes of what is attached.
    pub attachments: Vec<String>,
    /// The Message-ID of the message that it answers.
    pub in_reply_to: Option<String>,
    #[serde(skip)]
    pub(crate) references: Vec<String>,
    #[serde(skip)]
    pub(crate) reply_to: Vec<String>,
}

/// Reads a message; what is broken in it is left out.
pub fn read(bytes: &[u8], folder: &str, uid: u32) -> Message {
    let Some(parsed) = MessageParser::default().parse(bytes) else {
        return Message {
            id: fallback(folder, uid),
            folder: folder.to_owned(),
            ..Message::default()
        };
    };
    let texts: Vec<String> = (0..parsed.text_body_count())
        .filter_map(|n| parsed.body_text(n))
        .map(|text| text.into_owned())
        .collect();
    let mut text = texts.join("\n").replace("\r\n", "\n");
    if let Some((end, _)) = text.char_indices().nth(TEXT) {
        text.truncate(end);
        text.push('…');
    }
    let attachments = parsed.attachments().map(|part| {
        format!("{} ({} bytes)", part.attachment_name().unwrap_or("unnamed"), part.contents().len())
    });
    Message {
        id: parsed.message_id().map_or_else(|| fallback(folder, uid), bracketed),
        folder: folder.to_owned(),
        from: addresses(parsed.from()).join(", "),
        to: addresses(parsed.to()),
        cc: addresses(parsed.cc()),
        subject: parsed.subject().unwrap_or_default().to_owned(),
        date: parsed.date().map(mail_parser::DateTime::to_rfc3339),
        text,
        attachments: attachments.collect(),
        in_reply_to: ids(parsed.in_reply_to()).pop(),
        references: ids(parsed.references()),
        reply_to: addresses(parsed.reply_to()),
    }
}

impl Message {
    pub(crate) fn summary(&self, unread: bool) -> Summary {
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

/// Writes an id with the brackets that belong to it.
pub fn bracketed(id: &str) -> String {
    format!("<{}>", id.trim().trim_matches(['<', '>']))
}

/// Names a message that has no Message-ID.
fn fallback(folder: &str, uid: u32) -> String {
    format!("uid:{uid}:{folder}")
}

fn ids(value: &HeaderValue<'_>) -> Vec<String> {
    match value {
        HeaderValue::Text(id) => vec![bracketed(id)],
        HeaderValue::TextList(list) => list.iter().map(|id| bracketed(id)).collect(),
        _ => Vec::new(),
    }
}

fn addresses(value: Option<&Address<'_>>) -> Vec<String> {
    let Some(value) = value else { return Vec::new() };
    value
        .iter()
        .filter_map(|address| {
            let email = address.address()?;
            Some(match address.name() {
                Some(name) if !name.is_empty() => format!("{name} <{email}>"),
                _ => email.to_owned(),
            })
        })
        .collect()
}

/// Reads the hidden recipients of a draft.
pub fn bcc(bytes: &[u8]) -> Vec<String> {
    MessageParser::default().parse(bytes).map(|parsed| addresses(parsed.bcc())).unwrap_or_default()
}
