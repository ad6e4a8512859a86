//! An assistant's defaults for its runs.

use serde_json::{Map, Value, json};

use super::RunBody;

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
