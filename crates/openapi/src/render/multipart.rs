//! Forms of several parts, with files.

use std::hash::{BuildHasher as _, RandomState};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

use super::body::{Payload, fields};
use super::value::scalar;
use crate::{Catalogue, Content, Error, Result, schema};

/// Writes an object as a form of a part for each field.
pub fn render(catalogue: &Catalogue, content: &Content, given: &Value) -> Result<Payload> {
    let fields = fields(&content.media, given)?;
    let mut parts: Vec<Vec<u8>> = Vec::new();
    for (name, value) in fields.iter().filter(|(_, value)| !value.is_null()) {
        let values = match value {
            Value::Array(list) if !list.iter().all(Value::is_number) => list.iter().collect(),
            value => vec![value],
        };
        let is_file = schema::property(catalogue, &content.schema, name)
            .is_some_and(|schema| is_binary(catalogue, schema));
        for value in values {
            let file = file(value, is_file)?;
            parts.push(part(name, value, file, content.encoding.get(name)));
        }
    }
    let boundary = boundary(&parts);
    let mut bytes: Vec<u8> = Vec::new();
    for part in &parts {
        bytes.extend(format!("--{boundary}\r\n").bytes());
        bytes.extend(part);
    }
    bytes.extend(format!("--{boundary}--\r\n").bytes());
    Ok(Payload { media: "multipart/form-data".to_owned(), bytes, boundary: Some(boundary) })
}

/// Chooses a boundary that no part contains, or a file could add fields to the form.
fn boundary(parts: &[Vec<u8>]) -> String {
    let mut boundary = "perihelion-part".to_owned();
    let is_in = |boundary: &str, part: &[u8]| {
        part.windows(boundary.len()).any(|found| found == boundary.as_bytes())
    };
    while parts.iter().any(|part| is_in(&boundary, part)) {
        boundary = format!("perihelion-part-{:016x}", RandomState::new().hash_one(parts.len()));
    }
    boundary
}

/// Returns whether a field, or each in its list, is a file.
fn is_binary(catalogue: &Catalogue, schema: &Value) -> bool {
    let schema = catalogue.resolved(schema);
    let item = schema.get("items").map(|items| catalogue.resolved(items));
    [Some(schema), item].into_iter().flatten().any(|schema| {
        schema.get("format").is_some_and(|format| format == "binary")
            || schema.get("type").is_some_and(|kind| kind == "file")
            || schema.get("contentMediaType").is_some()
    })
}

fn part(name: &str, value: &Value, file: Option<File>, encoding: Option<&Value>) -> Vec<u8> {
    let quoted = |text: &str| text.replace('"', "%22").replace(['\r', '\n'], "%0A");
    let declared =
        encoding.and_then(|encoding| encoding.get("contentType")).and_then(Value::as_str);
    let mut head = format!("Content-Disposition: form-data; name=\"{}\"", quoted(name));
    let (media, bytes) = match file {
        Some(file) => {
            let file_name = file.name.unwrap_or_else(|| name.to_owned());
            head.push_str(&format!("; filename=\"{}\"", quoted(&file_name)));
            (Some(declared.unwrap_or("application/octet-stream").to_owned()), file.bytes)
        }
        None => match scalar(value) {
            Some(text) => (declared.map(str::to_owned), text.into_bytes()),
            None => (
                Some(declared.unwrap_or("application/json").to_owned()),
                value.to_string().into_bytes(),
            ),
        },
    };
    head.push_str("\r\n");
    if let Some(media) = media.filter(|media| !media.contains(['\r', '\n'])) {
        head.push_str(&format!("Content-Type: {media}\r\n"));
    }
    [head.as_bytes(), b"\r\n", &bytes, b"\r\n"].concat()
}

pub struct File {
    name: Option<String>,
    pub bytes: Vec<u8>,
}

/// Reads a file from `{"filename", "text" or "base64"}`; if a file is expected, also from a text and under other usual
/// names.
pub fn file(value: &Value, is_wanted: bool) -> Result<Option<File>> {
    let entries = match value {
        Value::Object(entries) => entries,
        Value::String(text) if is_wanted => {
            return Ok(Some(File { name: None, bytes: text.clone().into_bytes() }));
        }
        _ => return Ok(None),
    };
    let first = |names: &[&str]| names.iter().find_map(|name| entries.get(*name)?.as_str());
    let own_name = first(&["filename"]);
    let name = own_name.or_else(|| first(&["file_name", "fileName", "name"]).filter(|_| is_wanted));
    let text = first(&["text"]).or_else(|| first(&["content", "data"]).filter(|_| is_wanted));
    let bytes = match (first(&["base64"]), text) {
        (Some(text), _) => STANDARD.decode(text.trim()).map_err(|error| Error::Body {
            media: "multipart/form-data".to_owned(),
            reason: format!("a file's base64 cannot be read: {error}"),
        })?,
        (None, Some(text)) if is_wanted || own_name.is_some() => text.to_owned().into_bytes(),
        _ => return Ok(None),
    };
    Ok(Some(File { name: name.map(str::to_owned), bytes }))
}
