//! The body of a request.

use serde_json::{Map, Value};

use super::form::{joined, loose, query};
use super::multipart::{self, file};
use super::xml;
use crate::{Catalogue, Content, Error, Operation, Result, Style, read::named, schema};

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Payload {
    pub media: String,
    pub bytes: Vec<u8>,
    /// The separator of the parts of a multipart body.
    pub(super) boundary: Option<String>,
}

impl Payload {
    pub fn content_type(&self) -> String {
        match &self.boundary {
            Some(boundary) => format!("{}; boundary={boundary}", self.media),
            None => self.media.clone(),
        }
    }
}

pub fn missing(catalogue: &Catalogue, operation: &Operation, given: Option<&Value>) -> Vec<String> {
    let Some(body) = &operation.body else { return Vec::new() };
    let given = given.filter(|given| !given.is_null());
    let content = preferred(&body.contents, None, given);
    let required =
        content.map(|content| schema::required(catalogue, &content.schema)).unwrap_or_default();
    match given {
        None if body.is_required && required.is_empty() => vec!["body".to_owned()],
        None if !body.is_required => Vec::new(),
        Some(given) if !given.is_object() => Vec::new(),
        given => required
            .iter()
            .filter(|name| given.is_none_or(|given| given.get(*name).is_none()))
            .map(|name| format!("{name} (body)"))
            .collect(),
    }
}

/// Renders a body in the requested form, or the richest one.
pub fn render(
    catalogue: &Catalogue,
    operation: &Operation,
    given: Option<&Value>,
    wanted: Option<&str>,
) -> Result<Option<Payload>> {
    let Some(given) = given.filter(|given| !given.is_null()) else { return Ok(None) };
    let Some(body) = &operation.body else {
        let is_empty = given.as_object().is_some_and(Map::is_empty);
        return if is_empty { Ok(None) } else { Err(Error::NoBody(operation.id.clone())) };
    };
    let Some(content) = preferred(&body.contents, wanted, Some(given)) else { return Ok(None) };
    let media = concrete(&content.media);
    let plain = |bytes: Vec<u8>| Payload { media: media.clone(), bytes, boundary: None };
    let payload = match essence(&media).as_str() {
        "application/x-www-form-urlencoded" => plain(form(content, given)?.into_bytes()),
        "multipart/form-data" => multipart::render(catalogue, content, given)?,
        essence if is_patch(essence) => {
            plain(patch(catalogue, content, given)?.to_string().into_bytes())
        }
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

/// Chooses among the forms: the wanted one, then JSON, a form, multipart, XML, text, whatever there is. A file goes as a file, and
/// only a list of operations as a JSON Patch.
pub fn preferred<'a>(
    contents: &'a [Content],
    wanted: Option<&str>,
    given: Option<&Value>,
) -> Option<&'a Content> {
    let is_file = |value: &Value| value.get("filename").is_some_and(Value::is_string);
    let has_file = given.and_then(Value::as_object).is_some_and(|fields| {
        fields.values().any(|value| {
            is_file(value) || value.as_array().is_some_and(|list| list.iter().any(is_file))
        })
    });
    let rank = |media: &str| match essence(media).as_str() {
        "multipart/form-data" if has_file => 0,
        media if is_patch(media) && given.is_some_and(is_operations) => 0,
        media if is_patch(media) => 9,
        media if is_json(media) => 1,
        "*/*" | "application/*" => 2,
        "application/x-www-form-urlencoded" => 3,
        "multipart/form-data" => 4,
        media if is_xml(media) => 5,
        media if media.starts_with("text/") => 6,
        _ => 7,
    };
    let named = wanted.and_then(|wanted| {
        contents.iter().find(|content| content.media.eq_ignore_ascii_case(wanted))
    });
    named.or_else(|| contents.iter().min_by_key(|content| rank(&content.media)))
}

/// Returns a media type without its parameters, in lower case.
fn essence(media: &str) -> String {
    media.split(';').next().unwrap_or_default().trim().to_ascii_lowercase()
}

fn is_patch(media: &str) -> bool {
    media == "application/json-patch+json" || media == "application/json-patch"
}

/// Returns whether a value is a list of the operations of RFC 6902.
fn is_operations(given: &Value) -> bool {
    given.as_array().is_some_and(|list| list.iter().all(|one| one.get("op").is_some()))
}

/// Writes a JSON Patch; one operation alone is a list of one.
fn patch(catalogue: &Catalogue, content: &Content, given: &Value) -> Result<Value> {
    let given = json(catalogue, content, given);
    let takes_object = schema::has_type(catalogue, &content.schema, "object");
    match &given {
        Value::Object(fields) if fields.contains_key("op") => Ok(Value::Array(vec![given])),
        Value::Object(_) if !takes_object => Err(Error::Body {
            media: content.media.clone(),
            reason: "give a list of operations: [{\"op\": \"replace\", \"path\": \"/name\", \"value\": …}]"
                .to_owned(),
        }),
        _ => Ok(given),
    }
}

/// Names a media type if the document has a range.
fn concrete(media: &str) -> String {
    match media {
        "*/*" | "application/*" => "application/json".to_owned(),
        media if media.ends_with("/*") => "application/octet-stream".to_owned(),
        media => media.to_owned(),
    }
}

pub(super) fn is_json(media: &str) -> bool {
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

pub fn fields<'a>(
    media: &str,
    given: &'a Value,
) -> Result<std::borrow::Cow<'a, Map<String, Value>>> {
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

fn form(content: &Content, given: &Value) -> Result<String> {
    let mut pairs = Vec::new();
    for (name, value) in fields(&content.media, given)?.iter().filter(|(_, value)| !value.is_null())
    {
        let mut parameter = loose(name);
        let encoding = content.encoding.get(name);
        match encoding.and_then(|encoding| named(encoding, "style")) {
            Some(style) => {
                parameter.style = style;
                let explode =
                    encoding.and_then(|encoding| encoding.get("explode")).and_then(Value::as_bool);
                parameter.explode = explode.unwrap_or(style == Style::Form);
            }
            // Without a style an object is one document in its field.
            None if value.is_object() => parameter.media = Some("application/json".to_owned()),
            None => {}
        }
        query(&parameter, value, &mut pairs)?;
    }
    Ok(joined(&pairs, "&"))
}

fn raw(media: &str, given: &Value) -> Result<Vec<u8>> {
    if let Some(file) = file(given, false)? {
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
