//! The schema of a tool's arguments, with what checks arguments against it.

use std::{
    fmt,
    ops::Deref,
    sync::{Arc, OnceLock},
};

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Map, Value};

use super::schema::{self, Checker, Mismatch, Unusable};

/// JSON Schema of a tool's arguments.
///
/// It is compiled when it is first needed, once for all copies: for the list in which the server told it, the agents that
/// are shown it, and every call that they make. It never changes, so what was compiled is always of this schema.
#[derive(Clone, Default)]
pub struct InputSchema(Arc<Kept>);

#[derive(Default)]
struct Kept {
    schema: Arc<Value>,
    checker: OnceLock<Result<Checker, Unusable>>,
}

impl InputSchema {
    /// Returns what checks arguments; references to other documents are never fetched and fail here.
    ///
    /// # Errors
    /// Why the schema cannot be used.
    pub(crate) fn checker(&self) -> Result<&Checker, &Unusable> {
        let compiled = self.0.checker.get_or_init(|| schema::compile(Arc::clone(&self.0.schema)));
        compiled.as_ref()
    }

    /// Checks arguments, before anything is sent.
    pub(super) fn check(
        &self,
        tool: &str,
        arguments: &Map<String, Value>,
    ) -> Result<(), InvalidArguments> {
        let tool = tool.to_owned();
        match self.checker().map(|checker| checker.check(&Value::Object(arguments.clone()))) {
            Ok(Ok(())) => Ok(()),
            Ok(Err(source)) => Err(InvalidArguments::Mismatch { tool, source }),
            Err(source) => Err(InvalidArguments::Schema { tool, source: source.clone() }),
        }
    }
}

/// Why the arguments of a call are not sent, in words meant for the model that made the call.
#[derive(Clone, Debug, thiserror::Error)]
pub enum InvalidArguments {
    #[error("the input schema of {tool} cannot be used: {source}")]
    Schema { tool: String, source: Unusable },
    /// The complaints, each with the place it is about.
    #[error("invalid arguments for {tool}: {source}")]
    Mismatch { tool: String, source: Mismatch },
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
