//! Pairs of name and value, as queries, cookies and forms have them.

use serde_json::Value;

use super::value::{document, encoded, items, scalar, unsendable, written};
use crate::{Error, Location, Parameter, Result, Style, read::plain_parameter};

/// Maximum depth of nested objects in one parameter.
const DEPTH: usize = 8;

/// Adds a parameter's pairs, encoded.
pub fn query(
    parameter: &Parameter,
    value: &Value,
    pairs: &mut Vec<(String, String)>,
) -> Result<()> {
    let name = encoded_name(&parameter.name);
    let code = |text: &str| encoded(text, parameter.allow_reserved);
    if let Some(media) = &parameter.media {
        pairs.push((name, code(&document(media, value))));
        return Ok(());
    }
    let between = match parameter.style {
        Style::SpaceDelimited => "%20",
        Style::PipeDelimited => "%7C",
        Style::TabDelimited => "%09",
        _ => ",",
    };
    match (value, parameter.style) {
        (Value::Array(_) | Value::Object(_), Style::DeepObject) => {
            deep(&name, value, DEPTH, pairs, parameter.allow_reserved)
        }
        (Value::Array(list), _) => {
            let texts = items(list);
            if parameter.explode {
                pairs.extend(texts.iter().map(|text| (name.clone(), code(text))));
            } else if !texts.is_empty() {
                let texts: Vec<String> = texts.iter().map(|text| code(text)).collect();
                pairs.push((name, texts.join(between)));
            }
            Ok(())
        }
        (Value::Object(entries), _) => {
            let entries = entries.iter().filter(|(_, value)| !value.is_null());
            let texts = entries.map(|(name, value)| (encoded_name(name), code(&written(value))));
            if parameter.explode {
                pairs.extend(texts);
            } else {
                let texts: Vec<String> = texts.flat_map(|(name, value)| [name, value]).collect();
                pairs.push((name, texts.join(between)));
            }
            Ok(())
        }
        (value, _) => {
            let text = scalar(value).ok_or_else(|| unsendable(parameter))?;
            pairs.push((name, code(&text)));
            Ok(())
        }
    }
}

pub fn joined(pairs: &[(String, String)], between: &str) -> String {
    let pairs: Vec<String> = pairs.iter().map(|(name, value)| format!("{name}={value}")).collect();
    pairs.join(between)
}

pub fn loose(name: &str) -> Parameter {
    Parameter { schema: Value::Null, ..plain_parameter(name, Location::Query) }
}

/// Adds `name[key]=value`, and `name[]=value` for lists.
fn deep(
    name: &str,
    value: &Value,
    depth: usize,
    pairs: &mut Vec<(String, String)>,
    reserved: bool,
) -> Result<()> {
    if depth == 0 {
        return Err(Error::Value {
            location: "query",
            name: name.to_owned(),
            reason: format!("it is nested deeper than {DEPTH} levels"),
        });
    }
    match value {
        Value::Null => {}
        Value::Object(entries) => {
            for (key, value) in entries {
                deep(&format!("{name}[{}]", encoded_name(key)), value, depth - 1, pairs, reserved)?;
            }
        }
        Value::Array(list) => {
            for (index, item) in list.iter().enumerate() {
                // Servers that read brackets take a list of plain values without numbers, and of objects with them.
                let is_plain = !item.is_object() && !item.is_array();
                let key = if is_plain { String::new() } else { index.to_string() };
                deep(&format!("{name}[{key}]"), item, depth - 1, pairs, reserved)?;
            }
        }
        value => {
            pairs.push((name.to_owned(), encoded(&scalar(value).unwrap_or_default(), reserved)))
        }
    }
    Ok(())
}

/// Encodes a name, except the usual brackets.
fn encoded_name(name: &str) -> String {
    encoded(name, false).replace("%5B", "[").replace("%5D", "]")
}
