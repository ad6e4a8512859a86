//! The body of a request.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value};

use super::form::{loose, query};
use super::value::scalar;
use super::xml;
use crate::catalogue::Content;
use crate::read::style_named as read_style;
use crate::{Catalogue, Error, Operation, schema};

/// A body that may be sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Payload {
    pub media: String,
    pub bytes: Vec<u8>,
    /// What separates the parts of a multipart body.
    boundary: Option<String>,
}

impl Payload {
    /// Returns what the header `content-type` says.
    #[must_use]
    pub fn content_type(&self) -> String {
        match &self.boundary {
            Some(boundary) => format!("{}; boundary={boundary}", self.media),
            None => self.media.clone(),
        }
    }
}

/// Names what a body lacks.
pub fn missing(catalogue: &Catalogue, operation: &Operation, given: Option<&Value>) -> Vec<String> {
    let Some(body) = &operation.body else { return Vec::new() };
    let given = given.filter(|given| !given.is_null());
    let content = preferred(&body.contents, None);
    let required =
        content.map(|content| schema::required(catalogue, &content.schema)).unwrap_or_default();
    match given {
        None if body.is_required && required.is_empty() => vec!["body".to_owned()],
        None if body.is_required => required.iter().map(|name| format!("{name} (body)")).collect(),
        Some(Value::Object(given)) => required
            .iter()
            .filter(|name| !given.contains_key(*name))
            .map(|name| format!("{name} (body)"))
            .collect(),
        _ => Vec::new(),
    }
}

/// Renders a body in the form that the call asked for, or the one that carries most.
pub fn render(
    catalogue: &Catalogue,
    operation: &Operation,
    given: Option<&Value>,
    wanted: Option<&str>,
) -> Result<Option<Payload>, Error> {
    let Some(given) = given.filter(|given| !given.is_null()) else { return Ok(None) };
    let Some(body) = &operation.body else {
        let is_empty = given.as_object().is_some_and(Map::is_empty);
        return if is_empty { Ok(None) } else { Err(Error::NoBody(operation.id.clone())) };
    };
    let Some(content) = preferred(&body.contents, wanted) else { return Ok(None) };
    let media = concrete(&content.media);
    let plain = |bytes: Vec<u8>| Payload { media: media.clone(), bytes, boundary: None };
    let essence = media.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    let payload = match essence.as_str() {
        "application/x-www-form-urlencoded" => plain(form(content, given)?.into_bytes()),
        "multipart/form-data" => multipart(content, given)?,
        essence if is_json(essence) => {
            plain(json(catalogue, content, given).to_string().into_bytes())
        }
        essence if is_xml(essence) => {
            plain(xml::render(catalogue, &content.schema, given)?.into_bytes())
        }
        _ => plain(raw(&media, given)?),
    };
    Ok(Some(payload))
}

/// Chooses among the forms: the wanted one, then JSON, a form, multipart, XML, text, whatever there is.
fn preferred<'a>(contents: &'a [Content], wanted: Option<&str>) -> Option<&'a Content> {
    let rank = |media: &str| match media.split(';').next().unwrap_or_default().trim() {
        media if is_json(media) => 0,
        "*/*" | "application/*" => 1,
        "application/x-www-form-urlencoded" => 2,
        "multipart/form-data" => 3,
        media if is_xml(media) => 4,
        media if media.starts_with("text/") => 5,
        _ => 6,
    };
    let named = wanted.and_then(|wanted| {
        contents.iter().find(|content| content.media.eq_ignore_ascii_case(wanted))
    });
    named
        .or_else(|| contents.iter().min_by_key(|content| rank(&content.media.to_ascii_lowercase())))
}

/// Names a media type where the document names a range.
fn concrete(media: &str) -> String {
    match media {
        "*/*" | "application/*" => "application/json".to_owned(),
        media if media.ends_with("/*") => "application/octet-stream".to_owned(),
        media => media.to_owned(),
    }
}

fn is_json(media: &str) -> bool {
    media == "application/json" || media.ends_with("+json") || media == "text/json"
}

fn is_xml(media: &str) -> bool {
    media == "application/xml" || media == "text/xml" || media.ends_with("+xml")
}

/// A document that arrived as its own text is what that text says, unless a text was asked for.
fn json(catalogue: &Catalogue, content: &Content, given: &Value) -> Value {
    if let Value::String(text) = given
        && !schema::has_type(catalogue, catalogue.resolved(&content.schema), "string")
        && let Ok(parsed) = serde_json::from_str(text)
    {
        return parsed;
    }
    given.clone()
}

fn fields<'a>(
    media: &str,
    given: &'a Value,
) -> Result<std::borrow::Cow<'a, Map<String, Value>>, Error> {
    let refused = || Error::Body {
        media: media.to_owned(),
        reason: "a form is an object of its fields".to_owned(),
    };
    match given {
        Value::Object(fields) => Ok(std::borrow::Cow::Borrowed(fields)),
        Value::String(text) => {
            let parsed: Map<String, Value> = serde_json::from_str(text).map_err(|_| refused())?;
            Ok(std::borrow::Cow::Owned(parsed))
        }
        _ => Err(refused()),
    }
}

fn form(content: &Content, given: &Value) -> Result<String, Error> {
    let mut pairs = Vec::new();
    for (name, value) in fields(&content.media, given)?.iter().filter(|(_, value)| !value.is_null())
    {
        let mut parameter = loose(name);
        let encoding = content.encoding.get(name);
        match encoding
            .and_then(|encoding| encoding.get("style"))
            .and_then(Value::as_str)
            .and_then(read_style)
        {
            Some(style) => {
                parameter.style = style;
                let explode =
                    encoding.and_then(|encoding| encoding.get("explode")).and_then(Value::as_bool);
                parameter.explode = explode.unwrap_or(style == crate::Style::Form);
            }
            // Without a style an object is one document in its field.
            None if value.is_object() => parameter.media = Some("application/json".to_owned()),
            None => {}
        }
        query(&parameter, value, &mut pairs)?;
    }
    let pairs: Vec<String> = pairs.iter().map(|(name, value)| format!("{name}={value}")).collect();
    Ok(pairs.join("&"))
}

fn multipart(content: &Content, given: &Value) -> Result<Payload, Error> {
    let fields = fields(&content.media, given)?;
    let mut parts: Vec<u8> = Vec::new();
    let mut boundary = "perihelion-part".to_owned();
    // A boundary must stand nowhere in the values.
    let text = given.to_string();
    while text.contains(&boundary) {
        boundary.push_str("-x");
    }
    for (name, value) in fields.iter().filter(|(_, value)| !value.is_null()) {
        let values = match value {
            Value::Array(list) if !list.iter().all(Value::is_number) => list.iter().collect(),
            value => vec![value],
        };
        for value in values {
            parts.extend(format!("--{boundary}\r\n").bytes());
            part(name, value, content.encoding.get(name), &mut parts)?;
        }
    }
    parts.extend(format!("--{boundary}--\r\n").bytes());
    Ok(Payload { media: "multipart/form-data".to_owned(), bytes: parts, boundary: Some(boundary) })
}

fn part(
    name: &str,
    value: &Value,
    encoding: Option<&Value>,
    parts: &mut Vec<u8>,
) -> Result<(), Error> {
    let quoted = |text: &str| text.replace('"', "%22").replace(['\r', '\n'], "%0A");
    let declared =
        encoding.and_then(|encoding| encoding.get("contentType")).and_then(Value::as_str);
    let mut head = format!("Content-Disposition: form-data; name=\"{}\"", quoted(name));
    let (media, bytes) = match file(value)? {
        Some(file) => {
            head.push_str(&format!("; filename=\"{}\"", quoted(&file.name)));
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
    parts.extend(head.bytes());
    parts.extend(b"\r\n");
    parts.extend(bytes);
    parts.extend(b"\r\n");
    Ok(())
}

struct File {
    name: String,
    bytes: Vec<u8>,
}

/// Reads a file out of `{"filename", "text" or "base64"}`.
fn file(value: &Value) -> Result<Option<File>, Error> {
    let Some(entries) = value.as_object() else { return Ok(None) };
    let bytes = match (entries.get("base64"), entries.get("text")) {
        (Some(Value::String(text)), _) => {
            STANDARD.decode(text.trim()).map_err(|error| Error::Body {
                media: "multipart/form-data".to_owned(),
                reason: format!("a file's base64 cannot be read: {error}"),
            })?
        }
        (None, Some(Value::String(text))) if entries.contains_key("filename") => {
            text.clone().into_bytes()
        }
        _ => return Ok(None),
    };
    let name = entries.get("filename").and_then(Value::as_str).unwrap_or("file").to_owned();
    Ok(Some(File { name, bytes }))
}

fn raw(media: &str, given: &Value) -> Result<Vec<u8>, Error> {
    if let Some(file) = file(given)? {
        return Ok(file.bytes);
    }
    match given {
        Value::String(text) => Ok(text.clone().into_bytes()),
        Value::Number(_) | Value::Bool(_) => Ok(given.to_string().into_bytes()),
        _ => Err(Error::Body {
            media: media.to_owned(),
            reason: "give it as a text, or as {\"base64\": …}".to_owned(),
        }),
    }
}
