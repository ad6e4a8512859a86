//! Plain lists of endpoints in YAML, as teams maintain them with their code.
//!
//! A list is found under `endpoints`, `apis`, `routes`, `operations` or `paths`, or in groups of these; `docs`, `snippets`, `notes`
//! and `documentation` contain passages of documentation. Placeholders are `{name}` or `:name`.

use serde_json::{Map, Value};

use super::{first_text, flag, named, parameter, text, texts};
use crate::catalogue::{Body, Content, Location, Parameter, braced, placeholders};
use crate::{Catalogue, Operation, Server, Snippet};

const LISTS: [&str; 6] = ["endpoints", "apis", "routes", "operations", "paths", "api"];
const PASSAGES: [&str; 7] =
    ["docs", "snippets", "notes", "documentation", "guides", "sections", "chunks"];
/// Maximum depth of nested groups.
const DEPTH: usize = 6;

pub fn read(document: Value) -> Catalogue {
    let base = ["base_url", "baseUrl", "base", "server", "url", "host"]
        .iter()
        .map(|key| text(&document, key));
    let base = base.into_iter().find(|url| url.contains("://"));
    let mut catalogue = Catalogue {
        title: first_text(&document, &["title", "name"]).unwrap_or_default(),
        servers: base.map(|url| Server { url, variables: Vec::new() }).into_iter().collect(),
        is_loose: true,
        ..Catalogue::default()
    };
    collect_groups(&document, "", DEPTH, &mut catalogue);
    catalogue.document = document;
    catalogue
}

fn collect_groups(value: &Value, group: &str, depth: usize, catalogue: &mut Catalogue) {
    if depth == 0 {
        return;
    }
    match value {
        Value::Array(items) => {
            for item in items {
                entry(item, group, depth, catalogue);
            }
        }
        Value::Object(entries) => {
            for key in LISTS.iter().chain(&["groups", "modules", "categories", "resources"]) {
                match entries.get(*key) {
                    Some(list @ Value::Array(_)) => {
                        collect_groups(list, group, depth - 1, catalogue)
                    }
                    Some(Value::Object(named)) => by_name(named, depth, catalogue),
                    _ => {}
                }
            }
            for key in PASSAGES {
                if let Some(found) = entries.get(key) {
                    passages(found, group, catalogue);
                }
            }
        }
        _ => {}
    }
}

/// Reads a map from `GET /path`, or from a path to its methods, or from a group's name to its list.
fn by_name(named: &Map<String, Value>, depth: usize, catalogue: &mut Catalogue) {
    for (name, value) in named {
        if let Some((method, path)) = place(name) {
            catalogue.operations.push(operation(value, &method, &path, ""));
        } else if name.starts_with('/') {
            for (method, value) in value.as_object().into_iter().flatten() {
                if super::METHODS.contains(&method.to_ascii_lowercase().as_str()) {
                    catalogue.operations.push(operation(value, method, name, ""));
                }
            }
        } else {
            collect_groups(value, name, depth - 1, catalogue);
        }
    }
}

fn entry(item: &Value, group: &str, depth: usize, catalogue: &mut Catalogue) {
    if let Some(line) = item.as_str() {
        // `GET /path: what it does`, or `GET /path - what it does`
        if let Some((method, path)) = place(line) {
            let about = line
                .split_once(path.as_str())
                .map_or("", |(_, rest)| rest)
                .trim_matches([' ', '-', ':', '–', '—']);
            let mut read = operation(&Value::Null, &method, path.trim_end_matches(':'), group);
            read.summary = about.to_owned();
            catalogue.operations.push(read);
        }
        return;
    }
    let path = first_text(item, &["path", "endpoint", "route", "url"]).unwrap_or_default();
    if let Some((method, path)) = place(&path) {
        catalogue.operations.push(operation(item, &method, &path, group));
    } else if path.starts_with('/') {
        let method = first_text(item, &["method", "verb"]);
        let methods = method.map_or_else(|| texts(item.get("methods")), |method| vec![method]);
        let methods = if methods.is_empty() { vec!["GET".to_owned()] } else { methods };
        for method in methods {
            catalogue.operations.push(operation(item, &method, &path, group));
        }
    } else {
        let name = first_text(item, &["name", "title", "tag"]).unwrap_or_default();
        collect_groups(item, &name, depth - 1, catalogue);
    }
}

/// Splits `GET /path`.
fn place(line: &str) -> Option<(String, String)> {
    let (method, rest) = line.trim().split_once(char::is_whitespace)?;
    let path = rest.split_whitespace().next()?;
    let is_place =
        super::METHODS.contains(&method.to_ascii_lowercase().as_str()) && path.starts_with('/');
    is_place.then(|| (method.to_ascii_uppercase(), path.to_owned()))
}

fn operation(value: &Value, method: &str, path: &str, group: &str) -> Operation {
    let path = braced(path.split_once('?').map_or(path, |(path, _)| path));
    let mut parameters: Vec<Parameter> =
        placeholders(&path).map(|(_, name)| parameter::plain(name, Location::Path)).collect();
    for (keys, location) in [
        (&["path_params", "pathParams"][..], Location::Path),
        (&["query_params", "queryParams", "query", "query_parameters"][..], Location::Query),
        (&["headers", "header_params"][..], Location::Header),
        (&["params", "parameters"][..], Location::Query),
    ] {
        for key in keys {
            fields(value.get(*key), location, &mut parameters);
        }
    }
    parameters.retain(|p| {
        p.location != Location::Path || placeholders(&path).any(|(_, name)| name == p.name)
    });
    let schema = ["body", "json_body", "request_body", "requestBody", "payload"]
        .iter()
        .find_map(|key| value.get(*key));
    let takes_body = matches!(method.to_ascii_uppercase().as_str(), "POST" | "PUT" | "PATCH");
    let free = takes_body.then_some(&Value::Null);
    let body = schema.filter(|schema| !schema.is_null()).or(free).map(|schema| Body {
        description: schema.as_str().unwrap_or_default().to_owned(),
        contents: vec![Content {
            media: "application/json".into(),
            schema: body_schema(schema),
            ..Content::default()
        }],
        ..Body::default()
    });
    let mut tags = texts(value.get("tags"));
    if !group.is_empty() {
        tags.push(group.to_owned());
    }
    Operation {
        id: first_text(value, &["operationId", "id"]).unwrap_or_default(),
        method: method.to_ascii_uppercase(),
        path,
        summary: first_text(value, &["summary", "title", "name"]).unwrap_or_default(),
        description: [text(value, "description"), text(value, "notes"), text(value, "details")]
            .join("\n")
            .trim()
            .to_owned(),
        tags,
        parameters,
        body,
        ..Operation::default()
    }
}

fn fields(value: Option<&Value>, location: Location, parameters: &mut Vec<Parameter>) {
    let mut add = |name: &str, about: &Value| {
        let mut made = parameter::plain(name, named(about, "in").unwrap_or(location));
        made.description = about.as_str().map_or_else(|| text(about, "description"), str::to_owned);
        let mut known = parameters.iter_mut().filter(|known| known.location == Location::Path);
        if let Some(known) = known.find(|known| known.name == name) {
            known.description = made.description;
            return;
        }
        made.is_required = flag(about, "required").unwrap_or(false);
        if let Some(kind) = about.get("type").and_then(Value::as_str) {
            made.schema = serde_json::json!({"type": kind});
        }
        parameters.push(made);
    };
    match value {
        Some(Value::Object(named)) => named.iter().for_each(|(name, about)| add(name, about)),
        Some(Value::Array(list)) => {
            for item in list {
                match item.as_str() {
                    Some(name) => add(name, &Value::Null),
                    None => add(&text(item, "name"), item),
                }
            }
        }
        _ => {}
    }
    parameters.retain(|parameter| !parameter.name.is_empty());
}

fn body_schema(value: &Value) -> Value {
    if value.get("type").is_some() || value.get("properties").is_some() {
        return value.clone();
    }
    match value {
        Value::Object(_) => serde_json::json!({"type": "object", "example": value}),
        _ => Value::Null,
    }
}

fn passages(value: &Value, group: &str, catalogue: &mut Catalogue) {
    match value {
        Value::String(text) => catalogue
            .snippets
            .push(Snippet { title: group.to_owned(), text: text.trim().to_owned() }),
        Value::Array(list) => list.iter().for_each(|item| passages(item, group, catalogue)),
        Value::Object(entries) => {
            if let Some(text) = first_text(value, &["text", "content", "body", "description"]) {
                let title = first_text(value, &["title", "name", "heading"]);
                let title = title.unwrap_or_else(|| group.to_owned());
                catalogue.snippets.push(Snippet { title, text });
            } else {
                entries.iter().for_each(|(name, item)| passages(item, name, catalogue));
            }
        }
        _ => {}
    }
}
