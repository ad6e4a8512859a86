//! Single values as text.

use std::borrow::Cow;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::Value;

use crate::{Catalogue, Error, Location, Parameter};

/// Everything but what RFC 3986 calls unreserved.
const ENCODED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');
/// What stays as it is where a parameter allows reserved characters; those that end a query or a pair are not among them.
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

/// Encodes a text for a path or a query.
pub fn encoded(text: &str, allow_reserved: bool) -> String {
    utf8_percent_encode(text, if allow_reserved { KEEPS_RESERVED } else { ENCODED }).to_string()
}

/// Returns the text of a value that is neither list nor object; null has none.
pub fn scalar(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        Value::Bool(flag) => Some(flag.to_string()),
        Value::Null | Value::Array(_) | Value::Object(_) => None,
    }
}

/// Returns the texts of a list; what stands in it and is no scalar is written as JSON.
pub fn items(list: &[Value]) -> Vec<String> {
    list.iter()
        .filter(|item| !item.is_null())
        .map(|item| scalar(item).unwrap_or_else(|| item.to_string()))
        .collect()
}

/// Gives a list or an object that arrived as text its form, where the parameter is one.
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

/// Writes a value in the simple style, as headers have it.
pub fn simple(parameter: &Parameter, value: &Value) -> Result<String, Error> {
    if parameter.media.is_some() {
        return Ok(value.to_string());
    }
    match value {
        Value::Array(list) => Ok(items(list).join(",")),
        Value::Object(entries) => {
            let joint = if parameter.explode { "=" } else { "," };
            let pairs =
                entries.iter().filter(|(_, value)| !value.is_null()).map(|(name, value)| {
                    format!("{name}{joint}{}", scalar(value).unwrap_or_else(|| value.to_string()))
                });
            Ok(pairs.collect::<Vec<_>>().join(","))
        }
        value => scalar(value).ok_or_else(|| unsendable(parameter)),
    }
}

pub fn unsendable(parameter: &Parameter) -> Error {
    Error::Value {
        location: match parameter.location {
            Location::Path => "path",
            Location::Query => "query",
            Location::Header => "header",
            Location::Cookie => "cookie",
        },
        name: parameter.name.clone(),
        reason: "it is empty".to_owned(),
    }
}
