//! Reads a document of any kind into a [`Catalogue`].
//!
//! Enter at [`Catalogue::read`]. Tolerant: unreadable parts are left out, and the rest still works.

mod openapi;
mod parameter;
mod plain;
mod security;
mod swagger;

use serde::de::DeserializeOwned;
use serde_json::Value;

pub use parameter::plain as plain_parameter;

use crate::{Catalogue, Error, Result};

const METHODS: [&str; 9] =
    ["get", "put", "post", "delete", "options", "head", "patch", "trace", "query"];

impl Catalogue {
    /// Reads a document: OpenAPI 2, 3.0 or 3.1, or a plain list of endpoints; JSON or YAML.
    ///
    /// # Errors
    /// [`Error::NotReadable`] if it is neither JSON nor YAML, [`Error::NoOperations`] for a document that is not a
    /// description. A description without operations, such as one of webhooks, is valid.
    pub fn read(text: &str) -> Result<Self> {
        let document = parse(text)?;
        let is_empty = ["paths", "webhooks", "x-webhooks"]
            .iter()
            .any(|key| document.get(*key).is_some_and(Value::is_object));
        let mut catalogue = if document.get("paths").is_some_and(Value::is_object)
            || document.get("openapi").is_some()
        {
            openapi::read(document)
        } else {
            plain::read(document)
        };
        if catalogue.operations.is_empty() && catalogue.snippets.is_empty() && !is_empty {
            return Err(Error::NoOperations);
        }
        catalogue.index();
        Ok(catalogue)
    }
}

fn parse(text: &str) -> Result<Value> {
    let text = text.trim_start_matches('\u{feff}');
    if text.trim_start().starts_with(['{', '[']) {
        // YAML may begin with a brace as well; the error of the JSON parser is the better message.
        return serde_json::from_str(text)
            .or_else(|error| yaml(text).map_err(|_| Error::NotReadable(error.into())));
    }
    yaml(text)
}

fn yaml(text: &str) -> Result<Value> {
    // Large descriptions are ordinary; what is refused is a small one that grows by references.
    let options = serde_saphyr::options! {
        strict_booleans: true,
        budget: serde_saphyr::budget! {
            max_events: 20_000_000,
            max_nodes: 10_000_000,
            max_total_scalar_bytes: 256 * 1024 * 1024,
        },
    };
    serde_saphyr::from_str_with_options(text, options).map_err(|error| {
        let message = error.to_string();
        Error::NotReadable(message.lines().next().unwrap_or_default().into())
    })
}

fn text(value: &Value, key: &str) -> String {
    match value.get(key) {
        Some(Value::String(text)) => text.trim().to_owned(),
        Some(Value::Number(number)) => number.to_string(),
        _ => String::new(),
    }
}

/// Returns the first of some keys' texts that is not empty.
fn first_text(value: &Value, keys: &[&str]) -> Option<String> {
    keys.iter().map(|key| text(value, key)).find(|text| !text.is_empty())
}

/// Reads one of a few names.
pub fn named<T: DeserializeOwned>(value: &Value, key: &str) -> Option<T> {
    serde_json::from_value(text(value, key).into()).ok()
}

fn flag(value: &Value, key: &str) -> Option<bool> {
    match value.get(key)? {
        Value::Bool(flag) => Some(*flag),
        Value::String(text) => Some(text == "true"),
        _ => None,
    }
}

fn texts(value: Option<&Value>) -> Vec<String> {
    let list = value.and_then(Value::as_array).into_iter().flatten();
    list.filter_map(|item| item.as_str().map(str::to_owned)).collect()
}
