//! The schema of a tool's arguments, with what checks arguments against it.

use std::{
    fmt,
    ops::Deref,
    sync::{Arc, OnceLock},
};

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Map, Value};

use super::schema::{self, Checker};

/// JSON Schema of a tool's arguments.
///
/// It is compiled when it is first needed, once for all copies: for the list in which the server told it, the agents that
/// are shown it, and every call that they make. It never changes, so what was compiled is always of this schema.
#[derive(Clone, Default)]
pub struct InputSchema(Arc<Kept>);

#[derive(Default)]
struct Kept {
    schema: Arc<Value>,
    checker: OnceLock<Result<Checker, String>>,
}

impl InputSchema {
    /// Returns what checks arguments; references to other documents are never fetched and fail here.
    ///
    /// # Errors
    /// Why the schema cannot be used.
    pub(crate) fn checker(&self) -> Result<&Checker, &str> {
        let compiled = self.0.checker.get_or_init(|| schema::compile(Arc::clone(&self.0.schema)));
        compiled.as_ref().map_err(String::as_str)
    }

    /// Checks arguments, before anything is sent.
    pub(super) fn check(&self, tool: &str, arguments: &Map<String, Value>) -> Result<(), String> {
        let checker = self
            .checker()
            .map_err(|reason| format!("the input schema of {tool} cannot be used: {reason}"))?;
        checker
            .check(&Value::Object(arguments.clone()))
            .map_err(|complaints| format!("invalid arguments for {tool}: {complaints}"))
    }
}

impl From<Value> for InputSchema {
    fn from(schema: Value) -> Self {
        Self(Arc::new(Kept { schema: Arc::new(schema), checker: OnceLock::new() }))
    }
}

impl Deref for InputSchema {
    type Target = Value;

    fn deref(&self) -> &Value {
        &self.0.schema
    }
}

impl PartialEq for InputSchema {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0) || **self == **other
    }
}

impl fmt::Debug for InputSchema {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

impl Serialize for InputSchema {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        (**self).serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for InputSchema {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Value::deserialize(deserializer).map(Self::from)
    }
}
