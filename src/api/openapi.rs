//! The description of all routes, OpenAPI 3.1.

use axum::routing::get;
use axum::{Json, Router};
use serde_json::{Map, Value, json};

/// Makes the route.
pub(super) fn router() -> Router {
    Router::new().route("/openapi.json", get(|| async { Json(document()) }))
}

/// Method, path, what it is for, group, and what it answers.
type Route = (&'static str, &'static str, &'static str, &'static str, &'static str);

/// What a route answers: a JSON object, a list, a number, a stream, text, or nothing.
const ROUTES: &[Route] = &[
    ("get", "/ok", "Whether the server answers", "System", "object"),
    ("get", "/info", "What the server is", "System", "object"),
    ("get", "/healthz", "Whether the process lives", "System", "text"),
    ("get", "/readyz", "Whether the process reaches its database", "System", "text"),
    ("get", "/metrics", "Numbers for Prometheus", "System", "text"),
    ("post", "/assistants", "Create an assistant", "Assistants", "object"),
    ("post", "/assistants/search", "Search assistants", "Assistants", "array"),
    ("post", "/assistants/count", "Count assistants", "Assistants", "integer"),
    ("get", "/assistants/{id}", "Get an assistant", "Assistants", "object"),
    ("patch", "/assistants/{id}", "Change an assistant: a new version", "Assistants", "object"),
    ("delete", "/assistants/{id}", "Delete an assistant", "Assistants", "none"),
    ("get", "/assistants/{id}/graph", "Get the graph", "Assistants", "object"),
    (
        "get",
        "/assistants/{id}/schemas",
        "Get the schemas of input, output and state",
        "Assistants",
        "object",
    ),
    ("get", "/assistants/{id}/subgraphs", "Get the subgraphs", "Assistants", "object"),
    ("post", "/assistants/{id}/versions", "List versions", "Assistants", "array"),
    ("post", "/assistants/{id}/latest", "Choose the latest version", "Assistants", "object"),
    ("post", "/threads", "Create a thread", "Threads", "object"),
    ("post", "/threads/search", "Search threads", "Threads", "array"),
    ("post", "/threads/count", "Count threads", "Threads", "integer"),
    ("get", "/threads/{thread}", "Get a thread", "Threads", "object"),
    ("patch", "/threads/{thread}", "Change a thread's metadata", "Threads", "object"),
    ("delete", "/threads/{thread}", "Delete a thread", "Threads", "none"),
    ("post", "/threads/{thread}/copy", "Copy a thread", "Threads", "object"),
    ("get", "/threads/{thread}/state", "Get the state", "Threads", "object"),
    (
        "post",
        "/threads/{thread}/state",
        "Change the state, or fork from a checkpoint",
        "Threads",
        "object",
    ),
    (
        "post",
        "/threads/{thread}/state/checkpoint",
        "Get the state at a checkpoint",
        "Threads",
        "object",
    ),
    (
        "get",
        "/threads/{thread}/state/{checkpoint}",
        "Get the state at a checkpoint",
        "Threads",
        "object",
    ),
    ("get", "/threads/{thread}/history", "List states, newest first", "Threads", "array"),
    ("post", "/threads/{thread}/history", "List states, newest first", "Threads", "array"),
    ("get", "/threads/{thread}/runs", "List runs", "Runs", "array"),
    ("post", "/threads/{thread}/runs", "Begin a run", "Runs", "object"),
    ("post", "/threads/{thread}/runs/stream", "Begin a run and stream it", "Runs", "stream"),
    ("post", "/threads/{thread}/runs/wait", "Begin a run and wait for it", "Runs", "object"),
    ("get", "/threads/{thread}/runs/{run}", "Get a run", "Runs", "object"),
    ("delete", "/threads/{thread}/runs/{run}", "Delete a run", "Runs", "none"),
    ("get", "/threads/{thread}/runs/{run}/join", "Wait for a run", "Runs", "object"),
    (
        "get",
        "/threads/{thread}/runs/{run}/stream",
        "Stream a run, from Last-Event-ID on",
        "Runs",
        "stream",
    ),
    ("post", "/threads/{thread}/runs/{run}/cancel", "Cancel a run", "Runs", "object"),
    ("post", "/runs", "Begin a run on a thread of its own", "Runs", "object"),
    ("post", "/runs/stream", "Begin a run on a thread of its own and stream it", "Runs", "stream"),
    ("post", "/runs/wait", "Begin a run on a thread of its own and wait for it", "Runs", "object"),
    ("post", "/runs/batch", "Begin several runs", "Runs", "array"),
    ("post", "/runs/cancel", "Cancel several runs", "Runs", "none"),
    ("put", "/store/items", "Put an item", "Store", "none"),
    ("get", "/store/items", "Get an item", "Store", "object"),
    ("delete", "/store/items", "Delete an item", "Store", "none"),
    ("post", "/store/items/search", "Search items", "Store", "object"),
    ("post", "/store/namespaces", "List namespaces", "Store", "object"),
    ("get", "/v1/models", "List models: each graph is one", "OpenAI", "object"),
    ("get", "/v1/models/{model}", "Get a model", "OpenAI", "object"),
    ("post", "/v1/responses", "Create a response", "OpenAI", "object"),
    ("get", "/v1/responses/{id}", "Get a response", "OpenAI", "object"),
    ("delete", "/v1/responses/{id}", "Delete a response", "OpenAI", "object"),
    ("post", "/v1/responses/{id}/cancel", "Cancel a response", "OpenAI", "object"),
    ("post", "/v1/chat/completions", "Create a chat completion", "OpenAI", "object"),
    ("get", "/v1/approvals", "List what waits for a person", "Own", "array"),
    (
        "get",
        "/v1/approvals/history",
        "List requests for approval and what became of each",
        "Own",
        "object",
    ),
    ("get", "/v1/approvals/{id}", "Get what waits for a person", "Own", "object"),
    ("post", "/v1/approvals/{id}", "Answer it: a decision, or an answer", "Own", "object"),
    ("post", "/v1/approvals/{id}/approve", "Approve a call", "Own", "object"),
    ("post", "/v1/approvals/{id}/deny", "Deny a call", "Own", "object"),
    ("get", "/v1/audit", "List who did what, newest first", "Own", "object"),
    ("post", "/v1/auth/register", "Register by name and password", "People", "object"),
    ("post", "/v1/auth/login", "Log in: a session in cookies", "People", "object"),
    ("post", "/v1/auth/logout", "End the session", "People", "none"),
    ("get", "/v1/auth/me", "Who asks, and what they may do", "People", "object"),
    ("get", "/v1/keys", "List the keys of whoever asks", "People", "object"),
    ("post", "/v1/keys", "Make a key; it is shown once", "People", "object"),
    ("delete", "/v1/keys/{name}", "Revoke a key", "People", "none"),
    ("get", "/v1/agents", "List agents, and what is wrong with servers", "Own", "object"),
    ("get", "/v1/agents/{name}", "Get an agent with its tools", "Own", "object"),
    ("get", "/v1/skills", "List skills, or find them by words", "Own", "object"),
    ("get", "/v1/skills/{id}", "Get a skill with its calls", "Own", "object"),
    ("delete", "/v1/skills/{id}", "Forget a skill", "Own", "none"),
    ("get", "/v1/memory", "List what is remembered of a user", "Own", "object"),
    ("delete", "/v1/memory/{key}", "Forget what is remembered under a key", "Own", "none"),
    ("get", "/v1/documents", "List documents", "Own", "object"),
    ("get", "/v1/documents/search", "Find pieces of documents", "Own", "object"),
    ("get", "/v1/documents/{id}", "Get a document with its text", "Own", "object"),
    ("delete", "/v1/documents/{id}", "Delete a document", "Own", "none"),
    ("get", "/v1/teams", "List teams", "Own", "array"),
    ("post", "/v1/teams", "Design a team for a goal, or keep a design", "Own", "object"),
    ("get", "/v1/teams/{name}", "Get a team", "Own", "object"),
    ("delete", "/v1/teams/{name}", "Delete a team with its versions", "Own", "none"),
    (
        "get",
        "/v1/threads/{thread}/report",
        "Get the newest turn as `run --json` prints it",
        "Own",
        "object",
    ),
    ("get", "/v1/threads/{thread}/trace", "Get the trace of a thread", "Own", "object"),
    (
        "get",
        "/v1/threads/{thread}/trace/page",
        "Get the trace of a thread as a page",
        "Own",
        "page",
    ),
    ("get", "/v1/threads/{thread}/artifacts", "List a thread's large values", "Own", "object"),
    ("get", "/v1/threads/{thread}/artifacts/{key}", "Get a large value whole", "Own", "object"),
    ("get", "/v1/threads/{thread}/export", "Export a thread", "Own", "file"),
    ("post", "/v1/threads/import", "Import a thread", "Own", "object"),
    ("get", "/.well-known/agent-card.json", "The agent's card", "A2A", "object"),
    ("post", "/a2a", "A2A by JSON-RPC", "A2A", "object"),
    ("post", "/a2a/message:send", "Send a message", "A2A", "object"),
    ("post", "/a2a/message:stream", "Send a message and stream its task", "A2A", "stream"),
    ("get", "/a2a/tasks", "List tasks of a context", "A2A", "object"),
    ("get", "/a2a/tasks/{task}", "Get a task", "A2A", "object"),
    ("post", "/a2a/tasks/{task}:cancel", "Cancel a task", "A2A", "object"),
    ("post", "/a2a/tasks/{task}:subscribe", "Stream a task", "A2A", "stream"),
    ("post", "/mcp", "The star as an MCP server", "MCP", "object"),
];

/// Makes the document.
pub(super) fn document() -> Value {
    let mut paths = Map::new();
    for route in ROUTES {
        let path = paths.entry(route.1).or_insert_with(|| json!({}));
        path[route.0] = operation(route);
    }
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Perihelion",
            "version": env!("CARGO_PKG_VERSION"),
            "description": "Threads of durable agent graphs: the Agent Server API, OpenAI's interfaces, MCP, and our own routes.",
        },
        "paths": paths,
        "components": {
            "securitySchemes": {
                "key": { "type": "apiKey", "in": "header", "name": "x-api-key" },
                "bearer": { "type": "http", "scheme": "bearer" },
            },
            "schemas": {
                "Refusal": {
                    "type": "object",
                    "properties": { "detail": { "type": "string" }, "error": { "type": "object" } },
                },
            },
        },
    })
}

fn operation((method, path, summary, group, answer): &Route) -> Value {
    let names = path
        .split('/')
        .filter_map(|part| part.strip_prefix('{')?.split_once('}').map(|(name, _)| name));
    let parameters: Vec<Value> = names
        .map(|name| {
            let schema = match name {
                "thread" | "run" => json!({ "type": "string", "format": "uuid" }),
                _ => json!({ "type": "string" }),
            };
            json!({ "name": name, "in": "path", "required": true, "schema": schema })
        })
        .collect();
    let id: String =
        path.chars().map(|letter| if letter.is_alphanumeric() { letter } else { '_' }).collect();
    let content = |kind: &str, schema: Value| json!({ (kind): { "schema": schema } });
    let good = match *answer {
        "none" => json!({ "description": "Done" }),
        "text" => {
            json!({ "description": "Text", "content": content("text/plain", json!({ "type": "string" })) })
        }
        "page" => {
            json!({ "description": "A page", "content": content("text/html", json!({ "type": "string" })) })
        }
        "file" => {
            json!({ "description": "A file", "content": content("application/x-ndjson", json!({ "type": "string" })) })
        }
        "stream" => {
            json!({ "description": "Server-sent events", "content": content("text/event-stream", json!({ "type": "string" })) })
        }
        kind => {
            json!({ "description": "The answer", "content": content("application/json", json!({ "type": [kind, "null"] })) })
        }
    };
    let code = if *answer == "none" { "204" } else { "200" };
    let refusal = json!({
        "description": "A refusal that says why",
        "content": content("application/json", json!({ "$ref": "#/components/schemas/Refusal" })),
    });
    let mut operation = json!({
        "operationId": format!("{method}{id}"),
        "summary": summary,
        "tags": [group],
        "parameters": parameters,
        "responses": { (code): good, "4XX": refusal, "5XX": refusal },
        "security": [{}, { "key": [] }, { "bearer": [] }],
    });
    if matches!(*method, "post" | "put" | "patch")
        || (*method == "delete" && *path == "/store/items")
    {
        let schema = json!({ "type": ["object", "array"] });
        operation["requestBody"] = json!({ "content": content("application/json", schema) });
    }
    operation
}
