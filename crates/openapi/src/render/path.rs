//! The path of a request.

use serde_json::{Map, Value};

use super::value::{encoded, fitted, items, scalar, unsendable, written};
use crate::{
    Catalogue, Error, Location, Operation, Parameter, Result, Style, catalogue::placeholders,
};

/// Renders the template; returns the query that the template itself has, if any.
pub fn render(
    catalogue: &Catalogue,
    operation: &Operation,
    given: &Map<String, Value>,
) -> Result<(String, Vec<(String, String)>)> {
    // What follows a number sign tells operations of one path apart and is never sent.
    let template = operation.path.split('#').next().unwrap_or_default();
    let (template, query) = template.split_once('?').unwrap_or((template, ""));
    let mut path = String::new();
    let mut rest = template;
    while let Some((text, name)) = placeholders(rest).next() {
        let Some((before, after)) = rest.split_once(text) else { break };
        path.push_str(&literal(before));
        let parameter =
            operation.parameters.iter().find(|p| p.location == Location::Path && p.name == name);
        match (parameter, given.get(name)) {
            (Some(parameter), Some(value)) => path.push_str(&segment(catalogue, parameter, value)?),
            _ => {
                return Err(Error::Missing {
                    operation: operation.id.clone(),
                    names: vec![format!("{name} (path)")],
                });
            }
        }
        rest = after;
    }
    path.push_str(&literal(rest));
    // Two values side by side could make one; the address is checked again as a whole.
    if let Some(step) = path.split('/').find(|segment| matches!(*segment, "." | "..")) {
        return Err(Error::PathValue { name: template.to_owned(), value: step.to_owned() });
    }
    let pairs = query.split('&').filter(|pair| !pair.is_empty() && !pair.contains('{'));
    let pairs = pairs.map(|pair| {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        (encoded(name, true), encoded(value, true))
    });
    Ok((path, pairs.collect()))
}

/// Encodes the template's own text between its placeholders.
fn literal(text: &str) -> String {
    let is_kept = |c: char| c.is_ascii_alphanumeric() || "/-._~:@!$&'()*+,;=%".contains(c);
    let code = |c: char| if is_kept(c) { c.to_string() } else { encoded(&c.to_string(), false) };
    text.chars().map(code).collect()
}

fn segment(catalogue: &Catalogue, parameter: &Parameter, value: &Value) -> Result<String> {
    let value = fitted(catalogue, parameter, value);
    let bad = || Error::PathValue { name: parameter.name.clone(), value: value.to_string() };
    let name = encoded(&parameter.name, false);
    let code = |text: &String| encoded(text, false);
    let pair = |(name, value): (&String, &Value), joint: &str| {
        format!("{}{joint}{}", code(name), code(&written(value)))
    };
    let text = match (value.as_ref(), parameter.style) {
        (Value::Null, _) => return Err(unsendable(parameter)),
        (Value::Array(list), style) => {
            let texts: Vec<String> = items(list).iter().map(code).collect();
            if texts.is_empty() {
                return Err(unsendable(parameter));
            }
            match style {
                Style::Label if parameter.explode => format!(".{}", texts.join(".")),
                Style::Label => format!(".{}", texts.join(",")),
                Style::Matrix if parameter.explode => {
                    texts.iter().map(|text| format!(";{name}={text}")).collect()
                }
                Style::Matrix => format!(";{name}={}", texts.join(",")),
                _ => texts.join(","),
            }
        }
        (Value::Object(entries), style) => {
            if entries.is_empty() {
                return Err(unsendable(parameter));
            }
            let pairs = |joint: &str, between: &str| {
                entries.iter().map(|entry| pair(entry, joint)).collect::<Vec<_>>().join(between)
            };
            match style {
                Style::Label if parameter.explode => format!(".{}", pairs("=", ".")),
                Style::Label => format!(".{}", pairs(",", ",")),
                Style::Matrix if parameter.explode => format!(";{}", pairs("=", ";")),
                Style::Matrix => format!(";{name}={}", pairs(",", ",")),
                _ if parameter.explode => pairs("=", ","),
                _ => pairs(",", ","),
            }
        }
        (scalar_value, style) => {
            let plain = scalar(scalar_value).ok_or_else(bad)?;
            if plain.is_empty() {
                return Err(unsendable(parameter));
            }
            // A dot is never encoded, so these two would be steps and not names.
            if matches!(plain.trim(), "." | "..") {
                return Err(bad());
            }
            match style {
                Style::Label => format!(".{}", code(&plain)),
                Style::Matrix => format!(";{name}={}", code(&plain)),
                _ => code(&plain),
            }
        }
    };
    if matches!(text.as_str(), "." | "..") { Err(bad()) } else { Ok(text) }
}
