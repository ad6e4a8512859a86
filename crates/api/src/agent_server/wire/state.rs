//! The state as clients see it: messages in their format, large values by their previews.

use serde::{Serialize, Serializer};
use serde_json::{Map, Value, json};

use super::message;
use crate::agent_server::Refusal;
use perihelion_star::{GraphState, GraphUpdate};

/// A state, which is made into JSON only where it is sent.
pub(crate) struct Values<'a>(pub &'a GraphState);

/// What a node wrote, which is made into JSON only where it is sent.
pub(crate) struct Update<'a>(pub &'a GraphUpdate);

impl Serialize for Values<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        values(self.0).serialize(serializer)
    }
}

impl Serialize for Update<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self(written) = self;
        let mut shown = json!(written);
        if let Some(messages) = &written.messages {
            shown["messages"] = messages.iter().map(message::shown).collect();
        }
        if let Some(artifacts) = shown.get_mut("global_state") {
            without_contents(artifacts);
        }
        shown.serialize(serializer)
    }
}

/// Shows a state.
pub(crate) fn values(state: &GraphState) -> Value {
    let mut shown = json!(state);
    shown["messages"] = state.messages.iter().map(message::shown).collect();
    without_contents(&mut shown["global_state"]);
    shown
}

/// Reads an update that a client wrote.
///
/// # Errors
/// [`Refusal`] with what cannot be read of it.
pub(crate) fn read_update(given: &Value) -> Result<GraphUpdate, Refusal> {
    let mut fields: Map<String, Value> = match given {
        Value::Null => Map::new(),
        Value::Object(fields) => fields.clone(),
        _ => return Err(Refusal::invalid("values must be an object or null")),
    };
    if fields.remove("user").is_some_and(|user| !user.is_null()) {
        let why = "user: a thread belongs to the user who began it, and this cannot be changed";
        return Err(Refusal::invalid(why));
    }
    if let Some(messages) = fields.get_mut("messages") {
        *messages = json!(message::read_list(messages)?);
    }
    serde_json::from_value(Value::Object(fields))
        .map_err(|error| Refusal::invalid(error.to_string()))
}

/// Leaves the whole of large values out, whose previews are shown.
fn without_contents(artifacts: &mut Value) {
    for artifact in artifacts.as_object_mut().into_iter().flat_map(Map::values_mut) {
        if let Some(fields) = artifact.as_object_mut() {
            fields.remove("content");
        }
    }
}
