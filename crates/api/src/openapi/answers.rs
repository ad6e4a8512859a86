//! What routes answer with: the objects of the Agent Server API, with the fields that each has always.

use serde_json::{Map, Value, json};

/// An object: its name, and its fields with what each is.
///
/// A name that ends with `?` may be lacking, a kind that ends with `?` may be null, and one with `|` is one of these words.
type Shape = (&'static str, &'static [(&'static str, &'static str)]);

const SHAPES: &[Shape] = &[
    (
        "Thread",
        &[
            ("thread_id", "uuid"),
            ("created_at", "time"),
            ("updated_at", "time"),
            ("state_updated_at", "time"),
            ("metadata", "object"),
            ("status", "idle|busy|interrupted|error"),
            ("config", "object"),
            ("values", "object?"),
            ("error?", "object?"),
            ("interrupts?", "object"),
        ],
    ),
    (
        "ThreadState",
        &[
            ("values", "object"),
            ("next", "list"),
            ("tasks", "list"),
            ("metadata", "object?"),
            ("created_at", "time?"),
            ("checkpoint", "object?"),
            ("parent_checkpoint", "object?"),
            ("interrupts", "list"),
            ("checkpoint_id", "uuid?"),
            ("parent_checkpoint_id", "uuid?"),
        ],
    ),
    (
        "Run",
        &[
            ("run_id", "uuid"),
            ("thread_id", "uuid"),
            ("assistant_id", "uuid"),
            ("metadata", "object"),
            ("status", "pending|running|success|error|timeout|interrupted"),
            ("kwargs", "object"),
            ("multitask_strategy", "enqueue|reject|interrupt|rollback"),
            ("created_at", "time"),
            ("updated_at", "time"),
        ],
    ),
    (
        "Assistant",
        &[
            ("assistant_id", "uuid"),
            ("graph_id", "text"),
            ("config", "object"),
            ("context", "any"),
            ("metadata", "object"),
            ("name", "text"),
            ("created_at", "time"),
            ("updated_at", "time"),
            ("version", "number"),
            ("description", "text?"),
        ],
    ),
    (
        "Cron",
        &[
            ("cron_id", "uuid"),
            ("assistant_id", "uuid"),
            ("thread_id", "uuid?"),
            ("user_id", "text"),
            ("end_time", "time?"),
            ("schedule", "text"),
            ("timezone", "text?"),
            ("payload", "object"),
            ("next_run_date", "time?"),
            ("metadata", "object"),
            ("on_run_completed", "delete|keep?"),
            ("enabled", "flag"),
            ("created_at", "time"),
            ("updated_at", "time"),
            ("paused?", "text"),
        ],
    ),
    (
        "Item",
        &[
            ("namespace", "list"),
            ("key", "text"),
            ("value", "object"),
            ("created_at", "time"),
            ("updated_at", "time"),
            ("score?", "any"),
        ],
    ),
    ("Refusal", &[("detail", "text")]),
    // Of protocols that have a form of their own.
    ("OtherRefusal", &[("detail?", "text"), ("error?", "any")]),
];

/// Returns the objects by their names; `NAMEPart` has the fields of `NAME` that a client selected.
pub(super) fn schemas() -> Value {
    let both = SHAPES.iter().flat_map(|(name, fields)| {
        let whole = json!({ "allOf": [named(&part(name))], "required": always(fields) });
        [((*name).to_owned(), whole), (part(name), object(fields))]
    });
    Value::Object(both.collect())
}

/// Returns the schema of an answer, as the table of routes names it.
pub(super) fn schema(answer: &str) -> Value {
    if let Some(name) = answer.strip_prefix("list of ") {
        return json!({ "type": "array", "items": named(name) });
    }
    if let Some(name) = answer.strip_prefix("part of ") {
        return json!({ "type": "array", "items": named(&part(name)) });
    }
    if let Some(name) = answer.strip_suffix('?') {
        return json!({ "anyOf": [named(name), { "type": "null" }] });
    }
    let is_named = SHAPES.iter().any(|(name, _)| *name == answer);
    if is_named { named(answer) } else { json!({ "type": answer }) }
}

fn part(name: &str) -> String {
    format!("{name}Part")
}

fn named(name: &str) -> Value {
    json!({ "$ref": format!("#/components/schemas/{name}") })
}

fn always(fields: &[(&'static str, &'static str)]) -> Vec<&'static str> {
    fields.iter().map(|(name, _)| *name).filter(|name| !name.ends_with('?')).collect()
}

fn object(fields: &[(&'static str, &'static str)]) -> Value {
    let properties: Map<String, Value> = fields
        .iter()
        .map(|(name, kind)| (name.trim_end_matches('?').to_owned(), field(kind)))
        .collect();
    json!({ "type": "object", "properties": properties })
}

fn field(kind: &str) -> Value {
    if let Some(kind) = kind.strip_suffix('?') {
        return json!({ "anyOf": [field(kind), { "type": "null" }] });
    }
    match kind {
        "any" => json!({}),
        "uuid" => json!({ "type": "string", "format": "uuid" }),
        "time" => json!({ "type": "string", "format": "date-time" }),
        "text" => json!({ "type": "string" }),
        "number" => json!({ "type": "integer", "minimum": 0 }),
        "flag" => json!({ "type": "boolean" }),
        "list" => json!({ "type": "array" }),
        "object" => json!({ "type": "object" }),
        words => json!({ "type": "string", "enum": words.split('|').collect::<Vec<_>>() }),
    }
}
