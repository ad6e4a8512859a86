//! One route in the description.

use serde_json::{Value, json};

use super::answers;
use super::forms::Forms;
use super::routes::Route;

/// Shows a route.
pub(super) fn shown(route: &Route, forms: &Forms) -> Value {
    let (method, path, summary, group, answer) = route;
    let key = format!("{method} {path}");
    let id: String =
        path.chars().map(|letter| if letter.is_alphanumeric() { letter } else { '_' }).collect();
    let mut parameters = of_path(path);
    parameters.extend(forms.query_of(&key));
    if *answer == "stream" && *method == "get" {
        parameters.push(json!({
            "name": "Last-Event-ID", "in": "header", "required": false, "schema": { "type": "string" },
            "description": "What was heard last; -1: nothing",
        }));
    }
    let code = match *answer {
        "none" => "204",
        "socket" => "101",
        _ => "200",
    };
    let mut responses = json!({ "4XX": refusal(group), "5XX": refusal(group) });
    responses[code] = good(answer);
    for (also, what) in beside(method, path) {
        responses[*also] = json!({ "description": what });
    }
    let mut operation = json!({
        "operationId": format!("{method}{id}"),
        "summary": summary,
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

/// Describes a stream without a type: some readers hold its whole text to it, and others each event.
fn events() -> Value {
    json!({ "description": "Events, each with its `event`, its `data` and, where a stream can be resumed after it, its `id`" })
}

/// What a route answers when nothing is wrong.
fn good(answer: &str) -> Value {
    let text = || json!({ "type": "string" });
    match answer {
        "none" => json!({ "description": "Done" }),
        "socket" => json!({ "description": "A WebSocket" }),
        "text" => json!({ "description": "Text", "content": content("text/plain", text()) }),
        "page" => json!({ "description": "A page", "content": content("text/html", text()) }),
        "file" => {
            json!({ "description": "A file", "content": content("application/x-ndjson", text()) })
        }
        "stream" => {
            json!({ "description": "Server-sent events", "content": content("text/event-stream", events()) })
        }
        // What a client asked to be streamed comes as events.
        "either" => {
            let mut both = content("application/json", json!({ "type": "object" }));
            both["text/event-stream"] = json!({ "schema": events() });
            json!({ "description": "The answer, or its events", "content": both })
        }
        "integer" => json!({
            "description": "How many",
            "content": content("application/json", json!({ "type": "integer", "minimum": 0 })),
        }),
        kind => {
            let schema = answers::schema(kind);
            json!({ "description": "The answer", "content": content("application/json", schema) })
        }
    }
}

/// What else a route may answer, as no refusal.
fn beside(method: &str, path: &str) -> &'static [(&'static str, &'static str)] {
    match (method, path) {
        ("post", "/threads/{thread}/runs/{run}/cancel") => &[("202", "It is to be stopped")],
        ("get", "/.well-known/agent-card.json") => &[("304", "It is as it was")],
        ("post", "/mcp") => &[("202", "It was taken")],
        _ => &[],
    }
}

fn refusal(group: &str) -> Value {
    let name = if ["OpenAI", "A2A", "MCP"].contains(&group) { "OtherRefusal" } else { "Refusal" };
    let mut kinds = content("application/json", answers::schema(name));
    if group == "MCP" {
        kinds["text/plain"] = json!({ "schema": { "type": "string" } });
    }
    json!({ "description": "A refusal that says why", "content": kinds })
}
