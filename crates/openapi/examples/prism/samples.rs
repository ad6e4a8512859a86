//! Values for a call, out of the description's own examples.

use perihelion_openapi::{Arguments, Catalogue, Content, Location, Operation, Parameter};
use serde_json::{Map, Value, json};

/// How deep objects are filled in.
const DEPTH: usize = 7;

pub struct Samples<'a> {
    pub document: &'a Value,
    pub catalogue: &'a Catalogue,
}

impl Samples<'_> {
    /// Makes the arguments of a call; none where a value is required that only a pattern describes, and where the path has a part that is not
    /// sent as one: Prism finds no such operation.
    pub fn arguments(&self, operation: &Operation) -> Option<Arguments> {
        if operation.path.contains(['#', '?']) {
            return None;
        }
        let mut arguments = Arguments::default();
        let place = self.place(operation)?;
        for parameter in &operation.parameters {
            let example = self.example_of(place, parameter);
            let value = match example {
                Some(example) => example,
                None if parameter.is_required => self.value(&parameter.schema, DEPTH)?,
                None => continue,
            };
            let name = parameter.name.clone();
            let lower = name.to_ascii_lowercase();
            let is_credential =
                ["authorization", "cookie", "host", "content-length"].contains(&lower.as_str());
            match parameter.location {
                Location::Path => drop(arguments.path.insert(name, value)),
                Location::Query => drop(arguments.query.insert(name, value)),
                _ if !is_credential => drop(arguments.headers.insert(name, value)),
                _ => {}
            }
        }
        if let Some(body) = &operation.body {
            let content = body.contents.iter().find(|content| content.media.contains("json"));
            let content = content.or_else(|| body.contents.first())?;
            arguments.body = match self.body_example(place, content) {
                Some(example) => Some(example),
                None => Some(self.value(&content.schema, DEPTH)?),
            };
        }
        Some(arguments)
    }

    fn follow<'b>(&'b self, value: &'b Value) -> &'b Value {
        self.catalogue.resolved(value)
    }

    fn place(&self, operation: &Operation) -> Option<&Value> {
        let path = self.document.get("paths")?.get(&operation.path)?;
        self.follow(path).get(operation.method.to_ascii_lowercase())
    }

    fn example_of(&self, place: &Value, parameter: &Parameter) -> Option<Value> {
        let path = place.get("parameters").and_then(Value::as_array);
        let entry = path.into_iter().flatten().map(|entry| self.follow(entry)).find(|entry| {
            entry.get("name").and_then(Value::as_str) == Some(&parameter.name)
                && entry.get("in").and_then(Value::as_str) == Some(parameter.location.name())
        });
        let example = entry.and_then(|entry| self.example(entry));
        example.or_else(|| self.example(self.follow(&parameter.schema)))
    }

    fn body_example(&self, place: &Value, content: &Content) -> Option<Value> {
        let body = self.follow(place.get("requestBody")?);
        self.example(body.get("content")?.get(&content.media)?)
    }

    /// Reads `example`, or the first of `examples`, which is a map in OpenAPI and a list in JSON Schema.
    fn example(&self, entry: &Value) -> Option<Value> {
        if let Some(example) = entry.get("example") {
            return Some(example.clone());
        }
        match entry.get("examples")? {
            Value::Object(named) => self.follow(named.values().next()?).get("value").cloned(),
            Value::Array(list) => list.first().cloned(),
            _ => None,
        }
    }

    fn value(&self, schema: &Value, depth: usize) -> Option<Value> {
        let schema = self.follow(schema);
        let given = self.example(schema);
        let given = given.or_else(|| schema.get("const").cloned());
        let given =
            given.or_else(|| schema.get("default").filter(|value| !value.is_null()).cloned());
        if let Some(given) = given.or_else(|| schema.get("enum")?.get(0).cloned()) {
            return Some(given);
        }
        for key in ["oneOf", "anyOf"] {
            let first = schema.get(key).and_then(Value::as_array).and_then(|list| list.first());
            if let (Some(first), None) = (first, schema.get("properties")) {
                return if depth == 0 { None } else { self.value(first, depth - 1) };
            }
        }
        match kind(schema) {
            "integer" | "number" => Some(number(schema)),
            "boolean" => Some(json!(true)),
            "string" => text(schema),
            "array" => self.list(schema, depth),
            _ => self.object(schema, depth),
        }
    }

    fn list(&self, schema: &Value, depth: usize) -> Option<Value> {
        let least = schema.get("minItems").and_then(Value::as_u64).unwrap_or(1).clamp(1, 20);
        if depth == 0 {
            return if least > 1 { None } else { Some(json!([])) };
        }
        let item = self.value(schema.get("items").unwrap_or(&Value::Null), depth - 1)?;
        let least = usize::try_from(least).unwrap_or(1);
        Some(Value::Array(vec![item; least]))
    }

    /// Fills in what is required, and what has an example of its own.
    fn object(&self, schema: &Value, depth: usize) -> Option<Value> {
        let mut made = Map::new();
        for inner in schema.get("allOf").and_then(Value::as_array).into_iter().flatten() {
            match self.value(inner, depth.checked_sub(1)?) {
                Some(Value::Object(entries)) => made.extend(entries),
                // A text or a number with something said of it.
                Some(plain) if made.is_empty() && schema.get("properties").is_none() => {
                    return Some(plain);
                }
                _ => {}
            }
        }
        let properties = schema.get("properties").and_then(Value::as_object);
        for (name, property) in properties.into_iter().flatten() {
            let property = self.follow(property);
            let is_read_only = property.get("readOnly") == Some(&Value::Bool(true));
            if let Some(example) = self.example(property).filter(|_| !is_read_only) {
                made.insert(name.clone(), example);
            }
        }
        for name in self.catalogue.required_of(schema) {
            if made.contains_key(&name) {
                continue;
            }
            let property = properties.and_then(|properties| properties.get(&name));
            let value = match property {
                Some(property) => self.value(property, depth.checked_sub(1)?)?,
                None => json!("x"),
            };
            made.insert(name, value);
        }
        Some(Value::Object(made))
    }
}

fn kind(schema: &Value) -> &str {
    match schema.get("type") {
        Some(Value::Array(list)) => {
            list.iter().filter_map(Value::as_str).find(|kind| *kind != "null").unwrap_or("string")
        }
        Some(Value::String(kind)) => kind,
        _ if schema.get("items").is_some() => "array",
        _ if schema.get("properties").is_some() || schema.get("allOf").is_some() => "object",
        _ => "string",
    }
}

fn number(schema: &Value) -> Value {
    let bound = |key: &str| schema.get(key).and_then(Value::as_f64);
    let least = bound("minimum").map_or(1.0, |least| least.ceil().max(1.0));
    let value = bound("maximum").map_or(least, |most| most.floor().min(least));
    // Whole, whatever the kind.
    json!(value as i64)
}

fn text(schema: &Value) -> Option<Value> {
    if schema.get("pattern").is_some() {
        return None;
    }
    let made = match schema.get("format").and_then(Value::as_str).unwrap_or_default() {
        "date" => "2024-01-02",
        "date-time" => "2024-01-02T03:04:05Z",
        "time" => "03:04:05Z",
        "uuid" => "123e4567-e89b-42d3-a456-426614174000",
        "email" => "ann@example.org",
        "uri" | "url" => "https://example.org/a",
        "hostname" => "example.org",
        "ipv4" => "192.0.2.1",
        "ipv6" => "2001:db8::1",
        "byte" => "eA==",
        _ => "x",
    };
    let length = |key: &str| {
        schema.get(key).and_then(Value::as_u64).and_then(|length| usize::try_from(length).ok())
    };
    let mut made = made.to_owned();
    while made.len() < length("minLength").unwrap_or(0).min(10_000) {
        made.push('x');
    }
    Some(Value::from(made))
}
