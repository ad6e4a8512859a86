//! The state as clients see it: messages in their format, large values by their previews.

use serde_json::{Map, Value, json};

use super::message;
use perihelion_star::{GraphState, GraphUpdate};

/// Shows a state.
pub(crate) fn values(state: &GraphState) -> Value {
    let mut shown = json!(state);
    shown["messages"] = Value::Array(state.messages.iter().map(message::shown).collect());
    without_contents(&mut shown["global_state"]);
    shown
}

/// Shows what a node wrote.
pub(crate) fn update(written: &GraphUpdate) -> Value {
    let mut shown = json!(written);
    if let Some(messages) = &written.messages {
        shown["messages"] = Value::Array(messages.iter().map(message::shown).collect());
    }
    if let Some(artifacts) = shown.get_mut("global_state") {
        without_contents(artifacts);
    }
    shown
}

/// Reads an update that a client wrote; a message without an id gets one that no turn has.
///
/// # Errors
/// What cannot be read of it.
pub(super) fn read(given: &Value, thread_head: u64) -> Result<GraphUpdate, String> {
    let mut fields: Map<String, Value> = match given {
        Value::Null => Map::new(),
        Value::Object(fields) => fields.clone(),
        _ => return Err("values must be an object or null".into()),
    };
    if fields.remove("user").is_some_and(|user| !user.is_null()) {
        return Err("user: a thread is the user's who began it, and stays theirs".into());
    }
    if let Some(messages) = fields.get_mut("messages") {
        let list = match messages.take() {
            Value::Array(list) => list,
            one => vec![one],
        };
        let read = list.iter().enumerate().map(|(index, one)| {
            let id = format!("{}.edit.{index}", thread_head + 1);
            message::read(one, id)
                .ok_or_else(|| "a message must have a type of human or ai, and content".to_owned())
        });
        *messages = json!(read.collect::<Result<Vec<_>, String>>()?);
    }
    serde_json::from_value(Value::Object(fields)).map_err(|error| error.to_string())
}

/// Leaves the whole of large values out, whose previews are shown.
fn without_contents(artifacts: &mut Value) {
    for artifact in artifacts.as_object_mut().into_iter().flat_map(Map::values_mut) {
        if let Some(fields) = artifact.as_object_mut() {
            fields.remove("content");
        }
    }
}
