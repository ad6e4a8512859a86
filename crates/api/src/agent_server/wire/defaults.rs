//! The possible values of request fields, and an assistant's defaults for them.

use serde_json::{Map, Value, json};

use super::RunBody;
use schemars::JsonSchema;
use serde::Deserialize;

/// Names in `configurable` that the protocol itself uses.
const ITS_OWN: [&str; 9] = [
    "thread_id",
    "run_id",
    "cron_id",
    "graph_id",
    "assistant_id",
    "user_id",
    "checkpoint_id",
    "checkpoint_ns",
    "checkpoint_map",
];

/// The key of the limit of super-steps.
const LIMIT: &str = "recursion_limit";

impl RunBody {
    /// Applies an assistant's context and step limit, below those of the body. The fields of `configurable` are context
    /// too, below the field `context`.
    pub(crate) fn over(mut self, config: &Value, context: &Value) -> Self {
        let own_config = self.config.take().filter(Value::is_object).unwrap_or_else(|| json!({}));
        let own_context = self.context.take().unwrap_or_default();
        let mut merged = Map::new();
        for layer in
            [configurable(config), fields(context), configurable(&own_config), fields(&own_context)]
        {
            merged.extend(layer);
        }
        self.context = Some(Value::Object(merged));
        let mut config_of_run = own_config;
        if let (None, Some(limit)) = (config_of_run.get(LIMIT), config.get(LIMIT)) {
            config_of_run[LIMIT] = limit.clone();
        }
        self.config = Some(config_of_run);
        self
    }
}

fn configurable(config: &Value) -> Map<String, Value> {
    let is_its_own = |name: &str| {
        ITS_OWN.contains(&name) || name.starts_with("__") || name.starts_with("langgraph_")
    };
    let mut given = fields(&config["configurable"]);
    given.retain(|name, _| !is_its_own(name));
    given
}

fn fields(given: &Value) -> Map<String, Value> {
    given.as_object().cloned().unwrap_or_default()
}

/// A word or a list of words.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(untagged)]
pub(crate) enum OneOrMany {
    One(String),
    Many(Vec<String>),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum OnDisconnect {
    Cancel,
    Continue,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum OnCompletion {
    Delete,
    Keep,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum IfNotExists {
    Create,
    Reject,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Durability {
    Sync,
    Async,
    Exit,
}

/// Which end of a list comes first; the newest or greatest by default.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum SortOrder {
    Asc,
    Desc,
}

impl Durability {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Sync => "sync",
            Self::Async => "async",
            Self::Exit => "exit",
        }
    }
}

impl OneOrMany {
    pub(crate) fn into_vec(self) -> Vec<String> {
        match self {
            Self::One(word) => vec![word],
            Self::Many(words) => words,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// S2.12
    #[test]
    fn a_run_inherits_unset_fields_from_its_assistant() {
        let config = json!({
            "recursion_limit": 7,
            "configurable": { "tier": "lead", "region": "EU", "thread_id": "t", "checkpoint_id": "c", "__own": 1 },
        });
        let context = json!({ "tier": "gold", "tone": "dry" });
        let body = json!({ "context": { "tone": "warm" }, "config": { "configurable": { "region": "US" } } });
        let run = RunBody::read(&body).unwrap().over(&config, &context);
        let wanted = json!({ "tier": "gold", "region": "US", "tone": "warm" });
        assert_eq!(run.context, Some(wanted));
        assert_eq!(run.config.as_ref().unwrap()["recursion_limit"], 7);
        assert_eq!(run.at(), None, "a run begins where its thread stands");
        let body = json!({ "config": { "recursion_limit": 3 } });
        let run = RunBody::read(&body).unwrap().over(&config, &context);
        assert_eq!(run.config.unwrap()["recursion_limit"], 3);
    }
}
