//! The state as clients see it: messages in their format, large values by their previews.

use serde::{Serialize, Serializer};
use serde_json::{Map, Value, json};

use super::message;
use crate::agent_server::Refusal;
use perihelion_engine::ids::ThreadId;
use perihelion_runtime::{self as runtime, AboutGraph, Served, ThreadState, WrittenUpdate};
use perihelion_star::{GraphState, Message};

/// A state, which becomes JSON only when it is sent.
pub(crate) struct Values<'a>(pub &'a ThreadState);

/// The output of a run, which becomes JSON only when it is sent.
pub(crate) struct Output<'a>(pub &'a ThreadState);

impl Serialize for Output<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        output(self.0).serialize(serializer)
    }
}

/// A node's write, which becomes JSON only when it is sent.
pub(crate) struct Update<'a>(pub &'a WrittenUpdate);

impl Serialize for Values<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        values(self.0).serialize(serializer)
    }
}

impl Serialize for Update<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self(written) = self;
        let mut shown = written.json();
        show_messages(&mut shown, written.about(), || written.messages());
        if written.star().is_some()
            && let Some(artifacts) = shown.get_mut("global_state")
        {
            without_contents(artifacts);
        }
        shown.serialize(serializer)
    }
}

pub(crate) fn values(state: &ThreadState) -> Value {
    let mut shown = state.json();
    show_messages(&mut shown, state.about(), || state.messages());
    if state.of::<GraphState>().is_some() {
        without_contents(&mut shown["global_state"]);
    }
    shown
}

pub(crate) fn output(state: &ThreadState) -> Value {
    if state.about().is_hosted { state.output() } else { values(state) }
}

/// Brings the messages among some fields into the clients' format.
fn show_messages(fields: &mut Value, about: &AboutGraph, read: impl FnOnce() -> Vec<Message>) {
    let field = about.messages.as_ref().and_then(|name| fields.get_mut(name));
    if let Some(list @ Value::Array(_)) = field {
        *list = read().iter().map(message::shown).collect();
    }
}

pub(crate) fn read_update(graph: &dyn Served, given: &Value) -> Result<Value, Refusal> {
    let mut fields: Map<String, Value> = match given {
        Value::Null => Map::new(),
        Value::Object(fields) => fields.clone(),
        _ => return Err(Refusal::invalid("values must be an object or null")),
    };
    if is_star(graph.about()) && fields.remove("user").is_some_and(|user| !user.is_null()) {
        let why = "user: a thread belongs to the user who began it, and this cannot be changed";
        return Err(Refusal::invalid(why));
    }
    read_messages(graph.about(), &mut fields)?;
    let update = Value::Object(fields);
    fits(graph.check_update(&update))?;
    Ok(update)
}

pub(crate) fn read_input(graph: &dyn Served, given: &Value) -> Result<Value, Refusal> {
    let mut input = given.clone();
    if let Some(fields) = input.as_object_mut() {
        read_messages(graph.about(), fields)?;
    }
    fits(graph.check_input(&input))?;
    Ok(input)
}

fn read_messages(about: &AboutGraph, fields: &mut Map<String, Value>) -> Result<(), Refusal> {
    if let Some(messages) = about.messages.as_ref().and_then(|name| fields.get_mut(name)) {
        *messages = json!(message::read_list(messages)?);
    }
    Ok(())
}

fn fits(checked: Result<(), runtime::Error>) -> Result<(), Refusal> {
    checked.map_err(|error| match error {
        runtime::Error::Change(why) => Refusal::invalid(why),
        other => other.into(),
    })
}

fn is_star(about: &AboutGraph) -> bool {
    about.name == perihelion_star::GRAPH
}

/// Leaves the whole of large values out, whose previews are shown.
fn without_contents(artifacts: &mut Value) {
    for artifact in artifacts.as_object_mut().into_iter().flat_map(Map::values_mut) {
        if let Some(fields) = artifact.as_object_mut() {
            fields.remove("content");
        }
    }
}

/// Finds the ID of a checkpoint in the forms in which clients name one: its ID, a checkpoint, or a configuration.
pub(crate) fn named_checkpoint(given: &Value) -> Option<&str> {
    let given = given.get("configurable").unwrap_or(given);
    given.as_str().or_else(|| given.get("checkpoint_id").and_then(Value::as_str))
}

pub(crate) fn named_subgraph(given: &Value) -> Option<&str> {
    let given = given.get("configurable").unwrap_or(given);
    given["checkpoint_ns"].as_str().filter(|namespace| !namespace.is_empty())
}

pub(crate) fn shown_checkpoint(thread: ThreadId, id: &str) -> Value {
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
