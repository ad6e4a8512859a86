//! Bodies in XML, after the `xml` notes of a schema.

use serde_json::Value;

use crate::{Catalogue, Error, Result, schema};

/// Maximum depth of nested elements.
const DEPTH: usize = 32;

/// Writes a value as a document; a text that already is one stays as it is.
pub fn render(catalogue: &Catalogue, schema: &Value, given: &Value) -> Result<String> {
    if let Value::String(text) = given
        && text.trim_start().starts_with('<')
    {
        return Ok(text.clone());
    }
    let name = note(catalogue, schema, "name")
        .or_else(|| schema::name(schema))
        .unwrap_or_else(|| "root".to_owned());
    let mut text = String::from("<?xml version=\"1.0\" encoding=\"UTF-8\"?>");
    element(catalogue, &name, schema, given, DEPTH, &mut text)?;
    Ok(text)
}

fn element(
    catalogue: &Catalogue,
    name: &str,
    schema: &Value,
    value: &Value,
    depth: usize,
    text: &mut String,
) -> Result<()> {
    let refused = |reason: String| Error::Body { media: "application/xml".to_owned(), reason };
    if depth == 0 {
        return Err(refused(format!("it is nested deeper than {DEPTH} levels")));
    }
    if !is_name(name) {
        return Err(refused(format!("no element can have the name: {name}")));
    }
    match value {
        Value::Object(entries) => {
            text.push('<');
            text.push_str(name);
            let described = |key: &str| schema::property(catalogue, schema, key);
            let is_attribute = |key: &str| {
                described(key).is_some_and(|schema| flag(catalogue, schema, "attribute"))
            };
            for (key, value) in entries.iter().filter(|(key, _)| is_attribute(key) && is_name(key))
            {
                let value = super::value::scalar(value).unwrap_or_default();
                text.push_str(&format!(" {key}=\"{}\"", escaped(&value)));
            }
            text.push('>');
            for (key, value) in
                entries.iter().filter(|(key, value)| !is_attribute(key) && !value.is_null())
            {
                let inner = described(key).unwrap_or(&Value::Null);
                let name = note(catalogue, inner, "name").unwrap_or_else(|| key.clone());
                element(catalogue, &name, inner, value, depth - 1, text)?;
            }
            text.push_str(&format!("</{name}>"));
        }
        Value::Array(list) => {
            let items = catalogue.resolved(schema).get("items").unwrap_or(&Value::Null);
            let is_wrapped = flag(catalogue, schema, "wrapped");
            let inner = note(catalogue, items, "name").unwrap_or_else(|| name.to_owned());
            if is_wrapped {
                text.push_str(&format!("<{name}>"));
            }
            for item in list {
                element(catalogue, &inner, items, item, depth - 1, text)?;
            }
            if is_wrapped {
                text.push_str(&format!("</{name}>"));
            }
        }
        value => {
            let value = super::value::scalar(value).unwrap_or_default();
            text.push_str(&format!("<{name}>{}</{name}>", escaped(&value)));
        }
    }
    Ok(())
}

fn note(catalogue: &Catalogue, schema: &Value, key: &str) -> Option<String> {
    catalogue.resolved(schema).pointer("/xml")?.get(key)?.as_str().map(str::to_owned)
}

fn flag(catalogue: &Catalogue, schema: &Value, key: &str) -> bool {
    let xml = catalogue.resolved(schema).get("xml");
    xml.and_then(|xml| xml.get(key)).and_then(Value::as_bool).unwrap_or(false)
}

fn is_name(name: &str) -> bool {
    let mut chars = name.chars();
    chars.next().is_some_and(|c| c.is_alphabetic() || c == '_')
        && chars.all(|c| c.is_alphanumeric() || "-_.:".contains(c))
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}
