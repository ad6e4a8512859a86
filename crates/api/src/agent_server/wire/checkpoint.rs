//! Checkpoints in the clients' format.

use serde_json::{Value, json};

use perihelion_engine::ids::ThreadId;

/// Finds the ID of a checkpoint in the forms in which clients name one: its ID, a checkpoint, or a configuration.
pub(crate) fn named_checkpoint(given: &Value) -> Option<&str> {
    let given = given.get("configurable").unwrap_or(given);
    given.as_str().or_else(|| given.get("checkpoint_id").and_then(Value::as_str))
}

/// Finds the namespace of a checkpoint of a subgraph.
pub(crate) fn named_subgraph(given: &Value) -> Option<&str> {
    let given = given.get("configurable").unwrap_or(given);
    given["checkpoint_ns"].as_str().filter(|namespace| !namespace.is_empty())
}

pub(crate) fn shown(thread: ThreadId, id: &str) -> Value {
    json!({ "checkpoint_id": id, "thread_id": thread, "checkpoint_ns": "" })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_checkpoint_is_named_in_any_of_the_forms_that_clients_use() {
        for given in [
            json!("a"),
            json!({ "checkpoint_id": "a", "thread_id": "t" }),
            json!({ "configurable": { "checkpoint_id": "a" } }),
        ] {
            assert_eq!(named_checkpoint(&given), Some("a"), "{given}");
        }
    }
}
