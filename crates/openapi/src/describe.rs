//! Describes an operation for a model: its inputs, with schemas written out while there is space.

use serde_json::{Map, Value, json};

use crate::{Catalogue, Location, Operation, pointer};

/// How deep schemas are written out.
const DEPTH: usize = 6;
/// Most properties and schemas written out in one description.
const BUDGET: usize = 400;
/// The parts of a schema that stay unchanged.
const KEPT: &str = "type format enum default const minimum maximum pattern maxLength nullable";
/// Longest description of a part, in characters.
const TEXT: usize = 300;

pub fn describe(catalogue: &Catalogue, operation: &Operation) -> Value {
    let mut writer = Writer { catalogue, budget: BUDGET };
    let mut parameters = Map::new();
    for location in [Location::Path, Location::Query, Location::Header, Location::Cookie] {
        let list: Vec<Value> = operation
            .parameters
            .iter()
            .filter(|parameter| parameter.location == location)
            .map(|parameter| {
                let mut entry = json!({"name": parameter.name, "required": parameter.is_required});
                put(&mut entry, "description", short(&parameter.description));
                put(&mut entry, "schema", writer.schema(&parameter.schema, 2, &mut Vec::new()));
                entry
            })
            .collect();
        if !list.is_empty() {
            parameters.insert(location.name().to_owned(), Value::Array(list));
        }
    }
    let body = operation.body.as_ref().map(|body| {
        let media: Vec<&str> = body.contents.iter().map(|content| content.media.as_str()).collect();
        let schema = crate::render::preferred(&body.contents, None, None)
            .map(|content| writer.schema(&content.schema, DEPTH, &mut Vec::new()));
        let mut entry = json!({"required": body.is_required, "media": media});
        put(&mut entry, "description", short(&body.description));
        put(&mut entry, "schema", schema.unwrap_or_default());
        entry
    });
    let answer = operation.answer.as_ref().map(|schema| writer.schema(schema, 3, &mut Vec::new()));
    let mut described = json!({
        "operation": operation.id,
        "method": operation.method,
        "path": operation.path,
        "reads_only": operation.is_read(),
    });
    put(&mut described, "summary", Value::from(operation.summary.clone()));
    put(&mut described, "description", Value::from(cut(&operation.description, 2_000)));
    if operation.is_deprecated {
        put(&mut described, "deprecated", Value::Bool(true));
    }
    put(&mut described, "parameters", Value::Object(parameters));
    put(&mut described, "body", body.unwrap_or_default());
    put(&mut described, "answer", answer.unwrap_or_default());
    described
}

fn put(entry: &mut Value, key: &str, value: Value) {
    let is_empty = match &value {
        Value::Null => true,
        Value::String(text) => text.is_empty(),
        Value::Object(entries) => entries.is_empty(),
        _ => false,
    };
    if let (Some(entry), false) = (entry.as_object_mut(), is_empty) {
        entry.insert(key.to_owned(), value);
    }
}

fn short(text: &str) -> Value {
    Value::from(cut(text, TEXT))
}

fn cut(text: &str, length: usize) -> String {
    match text.char_indices().nth(length) {
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()),
        None => text.to_owned(),
    }
}

struct Writer<'a> {
    catalogue: &'a Catalogue,
    budget: usize,
}

impl<'a> Writer<'a> {
    /// Writes a schema out; a recursive one is only named.
    fn schema(&mut self, value: &'a Value, depth: usize, within: &mut Vec<&'a str>) -> Value {
        let reference = value.get("$ref").and_then(Value::as_str);
        let Some(reference) = reference else { return self.inline(value, depth, within) };
        let resolved = self.catalogue.resolved(value);
        if within.contains(&reference)
            || depth == 0
            || self.budget == 0
            || std::ptr::eq(resolved, value)
        {
            return json!({"schema": pointer::name(reference)});
        }
        within.push(reference);
        let written = self.inline(resolved, depth, within);
        within.pop();
        written
    }

    fn inline(&mut self, value: &'a Value, depth: usize, within: &mut Vec<&'a str>) -> Value {
        let Some(entries) = value.as_object() else { return value.clone() };
        let mut written = Map::new();
        for key in KEPT.split(' ') {
            if let Some(found) = entries.get(key) {
                written.insert(key.to_owned(), bounded(found));
            }
        }
        if let Some(text) = entries.get("description").and_then(Value::as_str) {
            written.insert("description".to_owned(), short(text));
        }
        if let Some(example) =
            entries.get("example").filter(|example| example.to_string().len() <= TEXT)
        {
            written.insert("example".to_owned(), example.clone());
        }
        if depth == 0 || self.budget == 0 {
            return Value::Object(written);
        }
        if let Some(properties) = entries.get("properties").and_then(Value::as_object) {
            let mut listed = Map::new();
            for (name, property) in properties {
                if self.budget == 0 {
                    written.insert("more_properties".to_owned(), Value::Bool(true));
                    break;
                }
                self.budget -= 1;
                listed.insert(name.clone(), self.schema(property, depth - 1, within));
            }
            written.insert("properties".to_owned(), Value::Object(listed));
        }
        if let Some(required) = entries.get("required").filter(|required| required.is_array()) {
            written.insert("required".to_owned(), required.clone());
        }
        if let Some(items) = entries.get("items") {
            written.insert("items".to_owned(), self.schema(items, depth - 1, within));
        }
        for key in ["allOf", "anyOf", "oneOf"] {
            let Some(list) = entries.get(key).and_then(Value::as_array) else { continue };
            let list: Vec<Value> =
                list.iter().take(10).map(|inner| self.schema(inner, depth - 1, within)).collect();
            written.insert(key.to_owned(), Value::Array(list));
        }
        Value::Object(written)
    }
}

fn bounded(value: &Value) -> Value {
    match value {
        Value::Array(list) if list.len() > 40 => {
            let mut kept: Vec<Value> = list.iter().take(40).cloned().collect();
            kept.push("…".into());
            Value::Array(kept)
        }
        value => value.clone(),
    }
}
