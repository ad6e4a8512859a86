//! Single values as text.

use std::borrow::Cow;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::Value;

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

/// Parses a list or an object that arrived as text, if the parameter is one.
pub fn fitted<'a>(
    catalogue: &Catalogue,
    parameter: &Parameter,
    value: &'a Value,
) -> Cow<'a, Value> {
    let Value::String(text) = value else { return Cow::Borrowed(value) };
    let schema = catalogue.resolved(&parameter.schema);
    let is = |kind: &str| crate::schema::has_type(catalogue, schema, kind);
    let trimmed = text.trim_start();
    let may_parse =
        (trimmed.starts_with('[') && is("array")) || (trimmed.starts_with('{') && is("object"));
    match serde_json::from_str(text) {
        Ok(parsed) if may_parse => Cow::Owned(parsed),
        _ => Cow::Borrowed(value),
    }
}

pub fn simple(parameter: &Parameter, value: &Value) -> Result<String> {
    if parameter.media.is_some() {
        return Ok(value.to_string());
    }
    match value {
        Value::Array(list) => Ok(items(list).join(",")),
        Value::Object(entries) => {
            let joint = if parameter.explode { "=" } else { "," };
            let given = entries.iter().filter(|(_, value)| !value.is_null());
            let pairs = given.map(|(name, value)| format!("{name}{joint}{}", written(value)));
            Ok(pairs.collect::<Vec<_>>().join(","))
        }
        value => scalar(value).ok_or_else(|| unsendable(parameter)),
    }
}

pub fn unsendable(parameter: &Parameter) -> Error {
    Error::Value {
        location: parameter.location.name(),
        name: parameter.name.clone(),
        reason: "it is empty".to_owned(),
    }
}
