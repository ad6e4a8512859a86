//! OpenAPI of all versions.

use serde_json::{Map, Value};

use super::{METHODS, flag, parameter, security, swagger, text, texts};
use crate::catalogue::{Body, Content, Location, Parameter, placeholders};
use crate::pointer::resolved;
use crate::{Catalogue, Operation, Server, Snippet};

pub fn read(document: Value) -> Catalogue {
    let is_old = document.get("swagger").is_some();
    let mut catalogue = Catalogue {
        title: text(&document["info"], "title"),
        servers: if is_old {
            swagger::servers(&document)
        } else {
            servers(document.get("servers"))
        },
        schemes: security::schemes(&document),
        snippets: tags(&document),
        ..Catalogue::default()
    };
    let common = security::requirements(document.get("security"));
    let paths = document.get("paths").and_then(Value::as_object);
    for (path, item) in paths.into_iter().flatten().filter(|(path, _)| path.starts_with('/')) {
        let item = resolved(&document, item);
        let Some(entries) = item.as_object() else { continue };
        for (method, operation) in entries {
            if !METHODS.contains(&method.as_str()) || !operation.is_object() {
                continue;
            }
            let place = OperationLocation { document: &document, is_old, path, method, item };
            let mut read = place.operation(operation);
            read.security =
                security::requirements(operation.get("security")).or_else(|| common.clone());
            catalogue.operations.push(read);
        }
    }
    catalogue.document = document;
    catalogue
}

fn tags(document: &Value) -> Vec<Snippet> {
    let tags = document["tags"].as_array().into_iter().flatten();
    tags.map(|tag| Snippet { title: text(tag, "name"), text: text(tag, "description") })
        .filter(|snippet| !snippet.text.is_empty())
        .collect()
}

struct OperationLocation<'a> {
    document: &'a Value,
    is_old: bool,
    path: &'a str,
    method: &'a str,
    item: &'a Value,
}

impl OperationLocation<'_> {
    fn operation(&self, value: &Value) -> Operation {
        let mut described: Vec<&Value> = Vec::new();
        for source in [value, self.item] {
            for entry in source["parameters"].as_array().into_iter().flatten() {
                let entry = resolved(self.document, entry);
                let is_known = described.iter().any(|known| {
                    known.get("name") == entry.get("name") && known.get("in") == entry.get("in")
                });
                // An operation's own parameter replaces that of its path.
                if !is_known {
                    described.push(entry);
                }
            }
        }
        let mut parameters: Vec<Parameter> = described
            .iter()
            .filter_map(|entry| {
                if self.is_old { swagger::parameter(entry) } else { parameter::read(entry) }
            })
            .collect();
        self.add_placeholders(&mut parameters);
        let own = servers(value.get("servers"));
        let body = if self.is_old {
            swagger::body(self.document, value, &described)
        } else {
            value.get("requestBody").and_then(|body| self.body(body))
        };
        Operation {
            id: text(value, "operationId"),
            method: self.method.to_ascii_uppercase(),
            path: self.path.to_owned(),
            summary: text(value, "summary"),
            description: text(value, "description"),
            tags: texts(value.get("tags")),
            is_deprecated: flag(value, "deprecated").unwrap_or(false),
            parameters,
            body,
            servers: if own.is_empty() { servers(self.item.get("servers")) } else { own },
            security: None,
            answer: self.answer(value),
        }
    }

    fn add_placeholders(&self, parameters: &mut Vec<Parameter>) {
        for (_, name) in placeholders(self.path) {
            let mut known = parameters.iter().filter(|known| known.location == Location::Path);
            if known.all(|known| known.name != name) {
                parameters.push(parameter::plain(name, Location::Path));
            }
        }
        // One that stands nowhere in the path cannot be needed.
        parameters.retain(|parameter| {
            parameter.location != Location::Path
                || placeholders(self.path).any(|(_, name)| name == parameter.name)
        });
    }

    fn body(&self, value: &Value) -> Option<Body> {
        let value = resolved(self.document, value);
        let contents = value.get("content")?.as_object()?;
        let contents: Vec<Content> = contents
            .iter()
            .map(|(media, content)| Content {
                media: media.clone(),
                schema: content.get("schema").cloned().unwrap_or_default(),
                encoding: content.get("encoding").cloned().unwrap_or_default(),
            })
            .collect();
        if contents.is_empty() {
            return None;
        }
        let is_required = flag(value, "required").unwrap_or(false);
        Some(Body { is_required, description: text(value, "description"), contents })
    }

    fn answer(&self, value: &Value) -> Option<Value> {
        let responses = value.get("responses")?.as_object()?;
        let good = responses.iter().find(|(code, _)| code.starts_with('2'));
        let found = good.map(|(_, response)| response).or_else(|| responses.get("default"))?;
        let response = resolved(self.document, found);
        if self.is_old {
            return response.get("schema").cloned();
        }
        let contents: &Map<String, Value> = response.get("content")?.as_object()?;
        let json = contents.iter().find(|(media, _)| media.contains("json"));
        let (_, content) = json.or_else(|| contents.iter().next())?;
        content.get("schema").cloned()
    }
}

/// Reads the base addresses of OpenAPI 3.
fn servers(value: Option<&Value>) -> Vec<Server> {
    let list = value.and_then(Value::as_array).into_iter().flatten();
    let servers = list.map(|server| {
        let variables = server.get("variables").and_then(Value::as_object).into_iter().flatten();
        // One without a default is the operator's to name.
        let variables = variables.filter(|(_, variable)| variable.get("default").is_some());
        let defaults = variables.map(|(name, variable)| (name.clone(), text(variable, "default")));
        Server { url: text(server, "url"), variables: defaults.collect() }
    });
    servers.filter(|server| !server.url.is_empty()).collect()
}
