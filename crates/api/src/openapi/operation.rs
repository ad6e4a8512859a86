//! One route in the description, and what routes answer with: the objects of the Agent Server API, with the fields that each
//! always has.

use serde_json::{Map, Value, json};

use crate::http::Forms;

pub(super) struct Route<'a> {
    pub method: &'a str,
    pub path: &'a str,
    group: &'a str,
    answer: &'a str,
    purpose: &'a str,
}

impl<'a> Route<'a> {
    /// Reads a row; `None` for a comment.
    pub(super) fn read(row: &'a str) -> Option<Self> {
        let mut cells = row.split('|').map(str::trim);
        let (method, path) = cells.next()?.split_once(' ').filter(|(method, _)| *method != "#")?;
        Some(Self {
            method,
            path,
            group: cells.next()?,
            answer: cells.next()?,
            purpose: cells.next()?,
        })
    }

    pub(super) fn shown(&self, forms: &Forms, schemas: &Map<String, Value>) -> Value {
        let Self { method, path, group, answer, purpose } = self;
        let key = format!("{method} {path}");
        let id = path.replace(|letter: char| !letter.is_alphanumeric(), "_");
        let mut parameters = of_path(path);
        parameters.extend(forms.query_of(&key));
        if *answer == "stream" && *method == "get" {
            parameters.push(json!({
                "name": "Last-Event-ID", "in": "header", "required": false, "schema": { "type": "string" },
                "description": "The ID of the newest event received; -1 for none",
            }));
        }
        let code = match *answer {
            "none" => "204",
            "socket" => "101",
            _ => "200",
        };
        let refusal = self.refusal(schemas);
        let mut responses = json!({ "4XX": refusal, "5XX": refusal });
        responses[code] = good(answer, schemas);
        if let Some((also, what)) = self.also() {
            responses[also] = json!({ "description": what });
        }
        let mut operation = json!({
            "operationId": format!("{method}{id}"),
            "summary": purpose,
            "tags": [group],
            "parameters": parameters,
            "responses": responses,
            "security": [{}, { "key": [] }, { "bearer": [] }],
        });
        if let Some((kind, schema)) = forms.body_of(&key) {
            let needed = schema["required"].as_array().is_some_and(|fields| !fields.is_empty());
            operation["requestBody"] =
                json!({ "required": needed, "content": content(kind, schema.clone()) });
        }
        operation
    }

    /// Returns another answer that is no refusal.
    fn also(&self) -> Option<(&'static str, &'static str)> {
        match (self.method, self.path) {
            ("post", "/threads/{thread}/runs/{run}/cancel") => Some(("202", "It will be stopped")),
            ("get", "/.well-known/agent-card.json") => Some(("304", "It has not changed")),
            ("post", "/mcp") => Some(("202", "The notification was accepted")),
            ("post", "/v1/auth/logout") => Some(("204", "The session has ended")),
            _ => None,
        }
    }

    fn refusal(&self, schemas: &Map<String, Value>) -> Value {
        let is_other = ["OpenAI", "A2A", "MCP"].contains(&self.group);
        let name = if is_other { "OtherRefusal" } else { "Refusal" };
        let mut kinds = content("application/json", schema(name, schemas));
        if self.group == "MCP" {
            kinds["text/plain"] = json!({ "schema": { "type": "string" } });
        }
        json!({ "description": "An error with its reason", "content": kinds })
    }
}

fn of_path(path: &str) -> Vec<Value> {
    let names = path
        .split('/')
        .filter_map(|part| part.strip_prefix('{')?.split_once('}').map(|(name, _)| name));
    let shown = names.map(|name| {
        let schema = match name {
            "thread" | "run" | "cron" => json!({ "type": "string", "format": "uuid" }),
            _ => json!({ "type": "string", "minLength": 1 }),
        };
        json!({ "name": name, "in": "path", "required": true, "schema": schema })
    });
    shown.collect()
}

fn content(kind: &str, schema: Value) -> Value {
    json!({ (kind): { "schema": schema } })
}

fn good(answer: &str, schemas: &Map<String, Value>) -> Value {
    let text = || json!({ "type": "string" });
    // Without a type: some readers take the whole text of a stream, and others each event.
    let events = || json!({ "description": "Events with `event`, `data` and, if a client can resume after it, `id`" });
    let (what, content) = match answer {
        "none" => return json!({ "description": "Done" }),
        "socket" => return json!({ "description": "A WebSocket" }),
        "text" => ("Text", content("text/plain", text())),
        "page" => ("A page", content("text/html", text())),
        "file" => ("A file", content("application/x-ndjson", text())),
        "stream" => ("Server-sent events", content("text/event-stream", events())),
        "either" => {
            let mut both = content("application/json", json!({ "type": "object" }));
            both["text/event-stream"] = json!({ "schema": events() });
            ("The answer, or its events", both)
        }
        "integer" => {
            ("A count", content("application/json", json!({ "type": "integer", "minimum": 0 })))
        }
        kind => ("The answer", content("application/json", schema(kind, schemas))),
    };
    json!({ "description": what, "content": content })
}

/// Returns the objects of `answers.json` by their names; `NAMEPart` has the fields of `NAME` that a client selected.
pub(super) fn schemas() -> Map<String, Value> {
    let all: Map<String, Value> =
        serde_json::from_str(include_str!("answers.json")).unwrap_or_default();
    let both = all.into_iter().flat_map(|(name, mut object)| {
        let required = object.as_object_mut().and_then(|object| object.remove("required"));
        let whole = json!({ "allOf": [named(&part(&name))], "required": required });
        [(part(&name), object), (name, whole)]
    });
    both.collect()
}

fn schema(answer: &str, schemas: &Map<String, Value>) -> Value {
    if let Some(name) = answer.strip_prefix("list of ") {
        return json!({ "type": "array", "items": named(name) });
    }
    if let Some(name) = answer.strip_prefix("part of ") {
        return json!({ "type": "array", "items": named(&part(name)) });
    }
    if let Some(name) = answer.strip_suffix('?') {
        return json!({ "anyOf": [schema(name, schemas), { "type": "null" }] });
    }
    if schemas.contains_key(answer) { named(answer) } else { json!({ "type": answer }) }
}

fn part(name: &str) -> String {
    format!("{name}Part")
}

fn named(name: &str) -> Value {
    json!({ "$ref": format!("#/components/schemas/{name}") })
}
