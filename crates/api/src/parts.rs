//! Images and files in the content of messages, in the forms in which clients send them.

use serde_json::{Value, json};

use crate::http::Refusal;
use perihelion_star::Attachment;

/// Replaces the question if a message has only attachments.
const NO_WORDS: &str = "See what is attached.";

/// Longest text in a part that is shown again as it came.
const SHOWN: usize = 1_000;

/// Composes a question from its words and attachments; `None` without both.
pub(crate) fn question(
    words: String,
    attachments: Vec<Attachment>,
) -> Option<(String, Vec<Attachment>)> {
    if !words.trim().is_empty() {
        return Some((words, attachments));
    }
    (!attachments.is_empty()).then(|| (NO_WORDS.to_owned(), attachments))
}

/// Reads the attachments of several messages, in order.
pub(crate) fn attachments_of<'a>(
    contents: impl Iterator<Item = &'a Value>,
) -> Result<Vec<Attachment>, Refusal> {
    Ok(contents.map(attachments).collect::<Result<Vec<_>, _>>()?.concat())
}

/// Reads the attachments of a message's content.
///
/// # Errors
/// An unsupported part, with the fix.
fn attachments(content: &Value) -> Result<Vec<Attachment>, Refusal> {
    let parts = content.as_array().map_or(&[][..], Vec::as_slice);
    parts.iter().filter_map(|part| read(part).transpose()).collect()
}

fn read(part: &Value) -> Result<Option<Attachment>, Refusal> {
    let Some(kind) = part.get("type").and_then(Value::as_str) else { return Ok(None) };
    match kind {
        // Of Chat Completions, of Responses, and of LangChain, Anthropic and the Agent Server.
        "image_url" | "input_image" | "image" | "file" | "input_file" | "document" => {
            found(part).map(Some).ok_or_else(|| {
                Refusal::invalid(format!(
                    "a part of type {kind} has no data: send the bytes in base64 (a data: URL, or data with \
                     its mime_type); other URLs and file IDs are not supported"
                ))
            })
        }
        "input_audio" | "audio" | "video" => {
            let why = format!("parts of type {kind} are not supported; send text, images or files");
            Err(Refusal::invalid(why))
        }
        _ => Ok(None),
    }
}

fn found(part: &Value) -> Option<Attachment> {
    let text = |pointer: &str| part.pointer(pointer).and_then(Value::as_str).map(str::to_owned);
    let first = |pointers: &[&str]| pointers.iter().find_map(|pointer| text(pointer));
    let name = first(&[
        "/filename",
        "/file/filename",
        "/name",
        "/metadata/name",
        "/metadata/filename",
        "/title",
    ]);
    let name = name.unwrap_or_default();
    let address =
        first(&["/image_url/url", "/image_url", "/file/file_data", "/file_data", "/url", "/data"]);
    if let Some(whole) = address.and_then(|address| Attachment::of_data_url(&name, &address)) {
        return Some(whole);
    }
    let bare = first(&["/base64", "/source/data", "/data", "/file/file_data", "/file_data"])?;
    // An address is not the data itself.
    let is_data = !bare.contains("://");
    let media_type = first(&["/mime_type", "/source/media_type", "/media_type", "/mimeType"]);
    let media_type = media_type.unwrap_or_default();
    is_data.then_some(Attachment { name, media_type, data: bare })
}

/// Shows an input without its attachments, which are stored once and elsewhere.
pub(crate) fn veiled(input: &Value) -> Value {
    match input {
        Value::Array(items) => items.iter().map(veiled).collect(),
        Value::Object(fields) => {
            let veil = |(name, value): (&String, &Value)| {
                let keys = ["data", "base64", "file_data", "url", "image_url"];
                let long = value.as_str().is_some_and(|text| text.len() > SHOWN);
                let shown = if long && keys.contains(&name.as_str()) {
                    json!("(kept as an artifact)")
                } else {
                    veiled(value)
                };
                (name.clone(), shown)
            };
            Value::Object(fields.iter().map(veil).collect())
        }
        other => other.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// S2.01
    #[test]
    fn images_and_files_are_read_in_each_form_that_clients_send() {
        let url = "data:image/png;base64,AAAA";
        let forms = json!([
            { "type": "text", "text": "Look." },
            { "type": "image_url", "image_url": { "url": url } },
            { "type": "image_url", "image_url": url },
            { "type": "input_image", "image_url": url },
            { "type": "image", "source_type": "base64", "mime_type": "image/png", "data": "AAAA" },
            { "type": "image", "base64": "AAAA", "mime_type": "image/png" },
            { "type": "image", "source": { "type": "base64", "media_type": "image/png", "data": "AAAA" } },
        ]);
        let read = attachments(&forms).unwrap();
        assert_eq!(read.len(), 6);
        assert!(
            read.iter().all(|one| one.media_type == "image/png" && one.data == "AAAA"),
            "{read:?}"
        );
        let pdf = "data:application/pdf;base64,BBBB";
        let files = json!([
            { "type": "file", "file": { "filename": "a.pdf", "file_data": pdf } },
            { "type": "input_file", "filename": "a.pdf", "file_data": pdf },
            { "type": "file", "source_type": "base64", "mime_type": "application/pdf", "data": "BBBB",
              "metadata": { "name": "a.pdf" } },
        ]);
        let read = attachments(&files).unwrap();
        assert!(
            read.iter().all(|one| one.name == "a.pdf" && one.media_type == "application/pdf"),
            "{read:?}"
        );
        for elsewhere in [
            json!([{ "type": "image_url", "image_url": { "url": "https://example.org/a.png" } }]),
            json!([{ "type": "file", "file": { "file_id": "file-1" } }]),
            json!([{ "type": "input_audio", "input_audio": { "data": "AAAA", "format": "wav" } }]),
        ] {
            attachments(&elsewhere).unwrap_err();
        }
        assert_eq!(attachments(&json!("plain")).unwrap(), []);
    }
}
