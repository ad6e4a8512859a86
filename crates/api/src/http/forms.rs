//! The forms of routes: bodies and queries, each described by the type that its handler reads.

use std::collections::BTreeMap;

use axum::Extension;
use axum::body::Bytes;
use axum::extract::ws::WebSocketUpgrade;
use axum::extract::{Path, Query, Request, State};
use axum::http::{HeaderMap, Uri};
use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, SchemaGenerator};
use serde_json::{Value, json};

/// The forms of bodies and queries, by method and path: `post /threads`.
#[derive(Debug)]
pub(crate) struct Forms {
    generator: SchemaGenerator,
    bodies: BTreeMap<String, (&'static str, Value)>,
    queries: BTreeMap<String, Value>,
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

    pub(crate) fn body<T: JsonSchema>(&mut self, route: &str) {
        let schema = self.schema::<T>();
        self.other_body(route, "application/json", schema);
    }

    pub(crate) fn other_body(&mut self, route: &str, kind: &'static str, schema: Value) {
        self.bodies.insert(route.to_owned(), (kind, schema));
    }

    pub(crate) fn bytes(&mut self, route: &str) {
        let schema = json!({ "type": "string", "format": "binary" });
        self.other_body(route, "application/octet-stream", schema);
    }

    pub(crate) fn query<T: JsonSchema>(&mut self, route: &str) {
        let schema = self.schema::<T>();
        self.queries.insert(route.to_owned(), schema);
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
    pub(crate) fn routes(&self) -> impl Iterator<Item = &String> {
        self.bodies.keys().chain(self.queries.keys())
    }
}

/// An argument of a handler. One that reads a body or a query adds its form.
pub(crate) trait Input {
    fn describe(_: &mut Forms, _route: &str) {}
}

impl<S> Input for State<S> {}
impl<T> Input for Path<T> {}
impl<T> Input for Query<T> {}
impl<T> Input for Extension<T> {}
impl Input for HeaderMap {}
impl Input for Uri {}
impl Input for Request {}
impl Input for WebSocketUpgrade {}
impl<T> Input for Option<Extension<T>> {}

impl Input for Bytes {
    fn describe(forms: &mut Forms, route: &str) {
        forms.bytes(route);
    }
}

impl<T: Input, E> Input for Result<T, E> {
    fn describe(forms: &mut Forms, route: &str) {
        T::describe(forms, route);
    }
}

/// The arguments of a handler, after the marker type that axum puts before them.
pub(crate) trait Inputs {
    fn describe(forms: &mut Forms, route: &str);
}

impl Inputs for ((),) {
    fn describe(_: &mut Forms, _: &str) {}
}

macro_rules! inputs {
    ($(($($input:ident)*))*) => {$(
        impl<M, $($input: Input),*> Inputs for (M, $($input,)*) {
            fn describe(forms: &mut Forms, route: &str) {
                $($input::describe(forms, route);)*
            }
        }
    )*};
}

inputs! { (A) (A B) (A B C) (A B C D) (A B C D E F) }

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
