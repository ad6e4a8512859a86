//! The forms of routes: bodies and queries, each described by its type.

use std::collections::BTreeMap;

use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, SchemaGenerator};
use serde_json::{Value, json};

/// The forms of bodies and queries, by method and path: `post /threads`.
#[derive(Debug)]
pub(crate) struct Forms {
    generator: SchemaGenerator,
    bodies: BTreeMap<&'static str, (&'static str, Value)>,
    queries: BTreeMap<&'static str, Value>,
}

impl Default for Forms {
    fn default() -> Self {
        // Names such as `Create` stand for other types in other rooms.
        let settings = SchemaSettings::draft2020_12().with(|settings| {
            settings.inline_subschemas = true;
            settings.meta_schema = None;
        });
        let generator = settings.into_generator();
        Self { generator, bodies: BTreeMap::new(), queries: BTreeMap::new() }
    }
}

impl Forms {
    fn schema<T: JsonSchema>(&mut self) -> Value {
        let schema = self.generator.subschema_for::<T>();
        serde_json::to_value(schema).unwrap_or_else(|_| json!({}))
    }

    pub(crate) fn body<T: JsonSchema>(&mut self, route: &'static str) {
        let schema = self.schema::<T>();
        self.bodies.insert(route, ("application/json", schema));
    }

    pub(crate) fn other_body(&mut self, route: &'static str, kind: &'static str, schema: Value) {
        self.bodies.insert(route, (kind, schema));
    }

    pub(crate) fn bytes(&mut self, route: &'static str) {
        let schema = json!({ "type": "string", "format": "binary" });
        self.other_body(route, "application/octet-stream", schema);
    }

    pub(crate) fn query<T: JsonSchema>(&mut self, route: &'static str) {
        let schema = self.schema::<T>();
        self.queries.insert(route, schema);
    }

    pub(crate) fn body_of(&self, route: &str) -> Option<&(&'static str, Value)> {
        self.bodies.get(route)
    }

    pub(crate) fn query_of(&self, route: &str) -> Vec<Value> {
        let Some(schema) = self.queries.get(route) else { return Vec::new() };
        let required: Vec<&str> =
            schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
        let fields = schema["properties"].as_object().into_iter().flatten();
        fields
            .map(|(name, schema)| {
                let mut schema = schema.clone();
                without_null(&mut schema);
                json!({
                    "name": name, "in": "query", "required": required.contains(&name.as_str()), "schema": schema,
                })
            })
            .collect()
    }

    #[cfg(test)]
    pub(crate) fn routes(&self) -> impl Iterator<Item = &'static str> {
        self.bodies.keys().chain(self.queries.keys()).copied()
    }
}

/// Takes null away: a query has a value, or it has not.
fn without_null(schema: &mut Value) {
    let Some(fields) = schema.as_object_mut() else { return };
    fields.remove("default");
    if let Some(kinds) = fields.get_mut("type").and_then(Value::as_array_mut) {
        kinds.retain(|kind| kind != "null");
        if let [one] = kinds.as_slice() {
            let one = one.clone();
            fields.insert("type".into(), one);
        }
    }
    if let Some(words) = fields.get_mut("enum").and_then(Value::as_array_mut) {
        words.retain(|word| !word.is_null());
    }
    let of_any = fields.get_mut("anyOf").and_then(Value::as_array_mut).map(|any| {
        any.retain(|one| one["type"] != "null");
        any.clone()
    });
    if let Some([Value::Object(one)]) = of_any.as_deref() {
        fields.remove("anyOf");
        fields.extend(one.clone());
    }
}
