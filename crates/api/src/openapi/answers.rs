//! What routes answer with: the objects of the Agent Server API, with the fields that each always has.

use serde_json::{Map, Value, json};

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

/// Returns the schema of an answer, as the table of routes names it.
pub(super) fn schema(answer: &str, schemas: &Map<String, Value>) -> Value {
    if let Some(name) = answer.strip_prefix("list of ") {
        return json!({ "type": "array", "items": named(name) });
    }
    if let Some(name) = answer.strip_prefix("part of ") {
        return json!({ "type": "array", "items": named(&part(name)) });
    }
    if let Some(name) = answer.strip_suffix('?') {
        return json!({ "anyOf": [named(name), { "type": "null" }] });
    }
    if schemas.contains_key(answer) { named(answer) } else { json!({ "type": answer }) }
}

fn part(name: &str) -> String {
    format!("{name}Part")
}

fn named(name: &str) -> Value {
    json!({ "$ref": format!("#/components/schemas/{name}") })
}
