//! Parameters of OpenAPI 3.

use serde_json::Value;

use super::openapi::{any_text, defaults};
use super::{flag, text};
use crate::catalogue::{Location, Parameter, Style};

/// Reads a parameter; one without a name or a known place is none.
pub fn read(value: &Value) -> Option<Parameter> {
    let name = text(value, "name");
    let location = location(&text(value, "in"))?;
    if name.is_empty() {
        return None;
    }
    let (style, explode) = defaults(location);
    let style = style_named(&text(value, "style")).unwrap_or(style);
    let explode = flag(value, "explode").unwrap_or(if text(value, "style").is_empty() {
        explode
    } else {
        style == Style::Form
    });
    let content =
        value.get("content").and_then(Value::as_object).and_then(|contents| contents.iter().next());
    let schema = match content {
        Some((_, content)) => content.get("schema").cloned(),
        None => value.get("schema").cloned(),
    };
    Some(Parameter {
        name,
        location,
        is_required: location == Location::Path || flag(value, "required").unwrap_or(false),
        style,
        explode,
        allow_reserved: flag(value, "allowReserved").unwrap_or(false),
        media: content.map(|(media, _)| media.clone()),
        description: text(value, "description"),
        schema: schema.unwrap_or_else(any_text),
    })
}

/// Makes a parameter of which only the name is known.
pub fn plain(name: &str, location: Location) -> Parameter {
    let (style, explode) = defaults(location);
    Parameter {
        name: name.to_owned(),
        location,
        is_required: location == Location::Path,
        style,
        explode,
        allow_reserved: false,
        media: None,
        description: String::new(),
        schema: any_text(),
    }
}

/// Finds the place of a parameter.
pub fn location(name: &str) -> Option<Location> {
    match name {
        "path" => Some(Location::Path),
        "query" => Some(Location::Query),
        "header" => Some(Location::Header),
        "cookie" => Some(Location::Cookie),
        _ => None,
    }
}

/// Finds a style by its name.
pub fn style_named(name: &str) -> Option<Style> {
    match name {
        "simple" => Some(Style::Simple),
        "label" => Some(Style::Label),
        "matrix" => Some(Style::Matrix),
        "form" => Some(Style::Form),
        "spaceDelimited" => Some(Style::SpaceDelimited),
        "pipeDelimited" => Some(Style::PipeDelimited),
        "deepObject" => Some(Style::DeepObject),
        _ => None,
    }
}
