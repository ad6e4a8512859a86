//! The path of a request.

use serde_json::{Map, Value};

use super::value::{encoded, fitted, pieces, scalar, unsendable};
use crate::{
    Catalogue, Error, Location, Operation, Parameter, Result, Style, catalogue::placeholders,
};

/// Renders the template; returns the query that the template itself has, if any.
pub fn render(
    catalogue: &Catalogue,
    operation: &Operation,
    given: &Map<String, Value>,
) -> Result<(String, Vec<(String, String)>)> {
    // The part after a number sign distinguishes operations of one path and is never sent.
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
    let code = |text: &str| encoded(text, false);
    let parts = pieces(parameter, &value, code);
    if parts.concat().is_empty() {
        return Err(unsendable(parameter));
    }
    let name = code(&parameter.name);
    let text = match parameter.style {
        Style::Label if parameter.explode => format!(".{}", parts.join(".")),
        Style::Label => format!(".{}", parts.join(",")),
        // An entry of an object has its own name.
        Style::Matrix if parameter.explode && value.is_object() => format!(";{}", parts.join(";")),
        Style::Matrix if parameter.explode => {
            parts.iter().map(|text| format!(";{name}={text}")).collect()
        }
        Style::Matrix => format!(";{name}={}", parts.join(",")),
        _ => parts.join(","),
    };
    // A dot is never encoded, so these two would be steps and not names.
    let is_step = |text: &str| matches!(text.trim(), "." | "..");
    if is_step(&text) || scalar(&value).is_some_and(|text| is_step(&text)) {
        return Err(Error::PathValue { name: parameter.name.clone(), value: value.to_string() });
    }
    Ok(text)
}
