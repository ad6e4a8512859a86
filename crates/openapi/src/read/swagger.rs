//! The differences of OpenAPI 2.

use serde_json::{Map, Value, json};

use super::{flag, parameter::stated, text, texts};
use crate::{Body, Content, Location, Parameter, Server, Style, pointer::resolved};

const FORM: &str = "application/x-www-form-urlencoded";
const MULTIPART: &str = "multipart/form-data";
/// The description of a parameter's values.
const KEPT: &str = "type format items enum default minimum maximum pattern minLength maxLength minItems maxItems x-example \
     example description";

/// Reads the base addresses out of `schemes`, `host` and `basePath`.
pub fn servers(document: &Value) -> Vec<Server> {
    let host = text(document, "host");
    let base = text(document, "basePath");
    let base = if base.is_empty() || base.starts_with('/') { base } else { format!("/{base}") };
    if host.is_empty() {
        let beside = Server { url: base, variables: Vec::new() };
        return Some(beside).filter(|server| !server.url.is_empty()).into_iter().collect();
    }
    let mut schemes = texts(document.get("schemes"));
    schemes.retain(|scheme| scheme == "http" || scheme == "https");
    // Encrypted addresses come first, and are assumed without a scheme.
    schemes.sort_by_key(|scheme| scheme == "http");
    if schemes.is_empty() {
        schemes.push("https".to_owned());
    }
    schemes
        .iter()
        .map(|scheme| Server { url: format!("{scheme}://{host}{base}"), variables: Vec::new() })
        .collect()
}

/// Reads a parameter that is neither a body nor a field of a form.
pub fn parameter(value: &Value) -> Option<Parameter> {
    let stated = stated(value)?;
    let (style, explode) = match (text(value, "collectionFormat").as_str(), stated.location) {
        ("multi", Location::Query) => (Style::Form, true),
        ("ssv", Location::Query) => (Style::SpaceDelimited, false),
        ("pipes", Location::Query) => (Style::PipeDelimited, false),
        ("tsv", Location::Query) => (Style::TabDelimited, false),
        _ => (stated.style, false),
    };
    Some(Parameter { style, explode, schema: schema(value), ..stated })
}

pub fn body(document: &Value, operation: &Value, parameters: &[&Value]) -> Option<Body> {
    let consumes = operation.get("consumes").or_else(|| document.get("consumes"));
    let consumes = texts(consumes);
    let is_in = |place: &'static str| {
        move |value: &&&Value| value.get("in").and_then(Value::as_str) == Some(place)
    };
    if let Some(body) = parameters.iter().find(is_in("body")) {
        let schema = body.get("schema").cloned().unwrap_or_default();
        let media =
            if consumes.is_empty() { vec!["application/json".to_owned()] } else { consumes };
        let contents = media.into_iter().map(|media| Content {
            media,
            schema: schema.clone(),
            encoding: Value::Null,
        });
        let is_required = flag(body, "required").unwrap_or(false);
        return Some(Body {
            is_required,
            description: text(body, "description"),
            contents: contents.collect(),
        });
    }
    let fields: Vec<&&Value> = parameters.iter().filter(is_in("formData")).collect();
    if fields.is_empty() {
        return None;
    }
    let mut properties = Map::new();
    let mut required = Vec::new();
    let mut encoding = Map::new();
    for field in &fields {
        let name = text(field, "name");
        if flag(field, "required").unwrap_or(false) {
            required.push(Value::from(name.clone()));
        }
        let style = match text(field, "collectionFormat").as_str() {
            "multi" => json!({"style": "form", "explode": true}),
            "ssv" => json!({"style": "spaceDelimited", "explode": false}),
            "pipes" => json!({"style": "pipeDelimited", "explode": false}),
            _ => json!({"style": "form", "explode": false}),
        };
        encoding.insert(name.clone(), style);
        properties.insert(name, schema(resolved(document, field)));
    }
    let has_file = fields.iter().any(|field| text(field, "type") == "file");
    let named = consumes.iter().find(|media| *media == FORM || *media == MULTIPART);
    let media = if has_file { MULTIPART } else { named.map_or(FORM, String::as_str) }.to_owned();
    let is_required = !required.is_empty();
    let schema = json!({"type": "object", "properties": properties, "required": required});
    let content = Content { media, schema, encoding: Value::Object(encoding) };
    Some(Body { is_required, description: String::new(), contents: vec![content] })
}

fn schema(value: &Value) -> Value {
    let found = KEPT.split(' ').filter_map(|key| Some((key.to_owned(), value.get(key)?.clone())));
    let mut schema: Map<String, Value> = found.collect();
    if schema.get("type").and_then(Value::as_str) == Some("file") {
        schema.insert("type".into(), "string".into());
        schema.insert("format".into(), "binary".into());
    }
    Value::Object(schema)
}
