//! The attachments of a message: named in its text for every model, and sent to the models that accept them.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::ChatMessage;
use perihelion_settings::config::{Input, Inputs};

/// Images in the forms that every API takes.
const IMAGES: [&str; 4] = ["image/gif", "image/jpeg", "image/png", "image/webp"];
const PDF: &str = "application/pdf";
const KILOBYTE: usize = 1024;

/// An attachment of a message: a reference, and during a model call its content.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Attached {
    pub artifact: String,
    pub name: String,
    pub media_type: String,
    /// Length of the whole, in bytes.
    pub bytes: usize,
    /// Base64, or the beginning of a text; never kept with the reference.
    #[serde(skip)]
    pub data: Option<Arc<str>>,
}

impl Attached {
    /// Returns whether it is a text, which every model accepts.
    pub fn is_text(&self) -> bool {
        is_text(&self.media_type)
    }

    fn kind(&self) -> Option<Input> {
        if IMAGES.contains(&self.media_type.as_str()) {
            return Some(Input::Image);
        }
        (self.media_type == PDF).then_some(Input::Pdf)
    }

    fn note(&self, is_sent: bool) -> String {
        let Self { artifact, name, media_type, bytes, .. } = self;
        let size = if *bytes < KILOBYTE {
            format!("{bytes} bytes")
        } else {
            format!("{} KB", bytes.div_ceil(KILOBYTE))
        };
        if is_sent {
            return format!("attached: {name}, {media_type}, {size}");
        }
        match &self.data {
            Some(text) if self.is_text() => {
                let text = text.replace('&', "&amp;").replace('<', "&lt;");
                format!(
                    "attached: {name}, {size}, kept as the artifact {artifact}:\n<attached>\n{text}\n</attached>"
                )
            }
            _ => {
                let kind = if media_type.starts_with("image/") { "images" } else { "files" };
                format!("attached: {name}, {size}; this model takes no {kind}")
            }
        }
    }

    /// Returns the text of a message about it, if it has one.
    pub(super) fn text(&self) -> Option<String> {
        self.is_text().then(|| self.note(false))
    }

    /// Returns the part of Chat Completions with its content, if the model accepts it.
    fn part(&self, takes: &Inputs) -> Option<Value> {
        let kind = self.kind().filter(|kind| takes.takes(*kind))?;
        let url = format!("data:{};base64,{}", self.media_type, self.data.as_ref()?);
        Some(match kind {
            Input::Image => json!({ "type": "image_url", "image_url": { "url": url } }),
            _ => json!({ "type": "file", "file": { "filename": self.name, "file_data": url } }),
        })
    }
}

pub fn is_text(media_type: &str) -> bool {
    const TEXTS: [&str; 5] = [
        "application/json",
        "application/toml",
        "application/x-ndjson",
        "application/xml",
        "application/yaml",
    ];
    media_type.starts_with("text/") || TEXTS.contains(&media_type)
}

/// Writes the texts among the attachments into their message.
pub(super) fn inline(message: &mut ChatMessage) {
    let ChatMessage { content, attached, .. } = message;
    attached.retain(|one| {
        let Some(text) = one.text() else { return true };
        content.push_str("\n\n");
        content.push_str(&text);
        false
    });
}

pub(super) fn content(text: &str, attached: &[Attached], takes: &Inputs) -> Value {
    let mut text = text.to_owned();
    let mut parts = Vec::new();
    for one in attached {
        let part = one.part(takes);
        text.push_str("\n\n");
        text.push_str(&one.note(part.is_some()));
        parts.extend(part);
    }
    if parts.is_empty() {
        return text.into();
    }
    parts.insert(0, json!({ "type": "text", "text": text }));
    parts.into()
}

/// A part of a message of Chat Completions, as other wires read it.
pub(super) enum Part<'a> {
    Text(&'a str),
    Image { media_type: &'a str, data: &'a str },
    File { name: &'a str, media_type: &'a str, data: &'a str },
}

/// Reads the content of a message of Chat Completions, a text or a list.
pub(super) fn parts(content: &Value) -> Vec<Part<'_>> {
    match content {
        Value::String(text) => vec![Part::Text(text)],
        Value::Array(parts) => parts.iter().filter_map(read_part).collect(),
        _ => Vec::new(),
    }
}

fn read_part(part: &Value) -> Option<Part<'_>> {
    let text = |pointer: &str| part.pointer(pointer).and_then(Value::as_str);
    match text("/type")? {
        "image_url" => {
            let (media_type, data) = data_url(text("/image_url/url")?)?;
            Some(Part::Image { media_type, data })
        }
        "file" => {
            let (media_type, data) = data_url(text("/file/file_data")?)?;
            Some(Part::File { name: text("/file/filename").unwrap_or_default(), media_type, data })
        }
        _ => text("/text").map(Part::Text),
    }
}

/// Splits `data:<type>;base64,<data>`.
pub fn data_url(url: &str) -> Option<(&str, &str)> {
    url.strip_prefix("data:")?.split_once(";base64,")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn attached(name: &str, media_type: &str, data: &str) -> Attached {
        Attached {
            artifact: format!("attached/1/{name}"),
            name: name.into(),
            media_type: media_type.into(),
            bytes: 12_000,
            data: Some(data.into()),
        }
    }

    /// S1.02
    #[test]
    fn unsupported_attachments_are_named_and_supported_ones_are_sent_whole() {
        let all = [
            attached("a.png", "image/png", "AAAA"),
            attached("plan.pdf", "application/pdf", "BBBB"),
            attached("x.csv", "text/csv", "a<b\n1,2"),
        ];
        let words = content("Look.", &all, &Inputs::default());
        assert_eq!(
            words.as_str().unwrap(),
            "Look.\n\nattached: a.png, 12 KB; this model takes no images\n\nattached: plan.pdf, 12 KB; this model takes no \
             files\n\nattached: x.csv, 12 KB, kept as the artifact attached/1/x.csv:\n<attached>\na&lt;b\n1,2\n</attached>"
        );
        let sent = content("Look.", &all, &Inputs::of([Input::Text, Input::Image]));
        assert_eq!(sent[1]["image_url"]["url"], "data:image/png;base64,AAAA");
        assert_eq!(sent.as_array().unwrap().len(), 2);
        assert!(sent[0]["text"].as_str().unwrap().contains("plan.pdf, 12 KB; this model takes no"));
        let sent = content("Look.", &all, &Inputs::of([Input::Text, Input::Image, Input::Pdf]));
        assert_eq!(sent[2]["file"]["filename"], "plan.pdf");
        assert!(matches!(
            parts(&sent).as_slice(),
            [
                Part::Text(_),
                Part::Image { media_type: "image/png", data: "AAAA" },
                Part::File { name: "plan.pdf", media_type: "application/pdf", data: "BBBB" },
            ]
        ));
    }
}
