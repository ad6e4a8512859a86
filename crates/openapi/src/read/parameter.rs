//! Parameters of OpenAPI 3.

use serde_json::{Value, json};

use super::{flag, named, text};
use crate::catalogue::{Location, Parameter, Style};

/// Reads a parameter; one without a name or a known place is ignored.
pub fn read(value: &Value) -> Option<Parameter> {
    let plain = stated(value)?;
    let style = named(value, "style").unwrap_or(plain.style);
    let is_plain = text(value, "style").is_empty();
    let explode = if is_plain { plain.explode } else { style == Style::Form };
    let content =
        value.get("content").and_then(Value::as_object).and_then(|contents| contents.iter().next());
    let schema = match content {
        Some((_, content)) => Some(content.get("schema").unwrap_or(&Value::Null)),
        None => value.get("schema"),
    };
    Some(Parameter {
        style,
        explode: flag(value, "explode").unwrap_or(explode),
        allow_reserved: flag(value, "allowReserved").unwrap_or(false),
        media: content.map(|(media, _)| media.clone()),
        schema: schema.cloned().unwrap_or(plain.schema),
        ..plain
    })
}

/// Reads what parameters of all versions say alike.
pub fn stated(value: &Value) -> Option<Parameter> {
    let name = text(value, "name");
    let plain = plain(&name, named(value, "in")?);
    let is_required = plain.is_required || flag(value, "required").unwrap_or(false);
    let description = text(value, "description");
    (!name.is_empty()).then_some(Parameter { is_required, description, ..plain })
}

/// Makes a parameter of which only the name is known.
pub fn plain(name: &str, location: Location) -> Parameter {
    let (style, explode) = match location {
        Location::Path | Location::Header => (Style::Simple, false),
        Location::Query | Location::Cookie => (Style::Form, true),
    };
    Parameter {
        name: name.to_owned(),
        location,
        is_required: location == Location::Path,
        style,
        explode,
        allow_reserved: false,
        media: None,
        description: String::new(),
        schema: json!({"type": "string"}),
    }
}
