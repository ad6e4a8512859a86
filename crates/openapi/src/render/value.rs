//! Single values as text.

use std::borrow::Cow;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::Value;

use super::body::is_json;
use crate::{Catalogue, Error, Parameter, Result};

/// Everything but what RFC 3986 calls unreserved.
const ENCODED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');
/// The characters that stay unchanged if a parameter permits reserved ones; without those that end a query or a pair.
const KEEPS_RESERVED: &AsciiSet = &ENCODED
    .remove(b':')
    .remove(b'/')
    .remove(b'?')
    .remove(b'@')
    .remove(b'!')
    .remove(b'$')
    .remove(b'\'')
    .remove(b'(')
    .remove(b')')
    .remove(b'*')
    .remove(b',')
    .remove(b';')
    .remove(b'[')
    .remove(b']');

pub fn encoded(text: &str, allow_reserved: bool) -> String {
    utf8_percent_encode(text, if allow_reserved { KEEPS_RESERVED } else { ENCODED }).to_string()
}

/// Returns the text of a value that is neither list nor object; `None` for null.
pub fn scalar(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        Value::Bool(flag) => Some(flag.to_string()),
        Value::Null | Value::Array(_) | Value::Object(_) => None,
    }
}

/// Returns the text of any value; lists and objects are written as JSON.
pub fn written(value: &Value) -> String {
    scalar(value).unwrap_or_else(|| value.to_string())
}

pub fn items(list: &[Value]) -> Vec<String> {
    list.iter().filter(|item| !item.is_null()).map(written).collect()
}

/// Writes a value as a document of a media type: JSON, or the text itself.
pub fn document(media: &str, value: &Value) -> String {
    if is_json(media) { value.to_string() } else { written(value) }
}

/// Parses a value that arrived as text, if the parameter takes what it says: a list or an object, and where the value is
/// a JSON document, a number or a flag.
pub fn fitted<'a>(
    catalogue: &Catalogue,
    parameter: &Parameter,
    value: &'a Value,
) -> Cow<'a, Value> {
    let Value::String(text) = value else { return Cow::Borrowed(value) };
    let schema = catalogue.resolved(&parameter.schema);
    let is = |kind: &str| crate::schema::has_type(catalogue, schema, kind);
    let is_document = parameter.media.as_deref().is_some_and(is_json);
    // Of a document without a type, any JSON is one.
    let is_any = is_document && !TYPES.into_iter().any(is);
    let is_taken = |parsed: &Value| match parsed {
        Value::Array(_) => is("array") || is_any,
        Value::Object(_) => is("object") || is_any,
        Value::Number(_) => is_document && (is("number") || is("integer") || is_any),
        Value::Bool(_) => is_document && (is("boolean") || is_any),
        Value::String(_) | Value::Null => false,
    };
    if let Some(parsed) = serde_json::from_str(text).ok().filter(is_taken) {
        return Cow::Owned(parsed);
    }
    // A list that is sent with commas may be given with them.
    let is_list = is("array") && !is("string") && !parameter.explode && !is_document;
    if is_list && !text.is_empty() {
        return Cow::Owned(text.split(',').map(|item| Value::from(item.trim())).collect());
    }
    Cow::Borrowed(value)
}

/// The types of JSON that a schema can name.
const TYPES: [&str; 6] = ["array", "object", "string", "number", "integer", "boolean"];

/// Writes a value in the simple style, as headers have it.
pub fn simple(parameter: &Parameter, value: &Value) -> Result<String> {
    if let Some(media) = &parameter.media {
        return Ok(document(media, value));
    }
    match value {
        Value::Null => Err(unsendable(parameter)),
        value => Ok(pieces(parameter, value, str::to_owned).join(",")),
    }
}

/// Returns the parts of a value in their order: its items, its names and values, or itself; names and values are joined
/// if the parameter is exploded.
pub fn pieces(parameter: &Parameter, value: &Value, code: impl Fn(&str) -> String) -> Vec<String> {
    match value {
        Value::Null => Vec::new(),
        Value::Array(list) => items(list).iter().map(|item| code(item)).collect(),
        Value::Object(entries) => {
            let given = entries.iter().filter(|(_, value)| !value.is_null());
            let pairs = given.map(|(name, value)| [code(name), code(&written(value))]);
            if parameter.explode {
                pairs.map(|pair| pair.join("=")).collect()
            } else {
                pairs.flatten().collect()
            }
        }
        one => vec![code(&written(one))],
    }
}

pub fn unsendable(parameter: &Parameter) -> Error {
    Error::Value {
        location: parameter.location.name(),
        name: parameter.name.clone(),
        reason: "it is empty".to_owned(),
    }
}
