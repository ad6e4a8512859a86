//! The state of a thread, changed by a person.

use std::sync::Arc;

use serde_json::{Map, Value};

use super::Threads;
use crate::Error;
use crate::star_options::star_options;
use perihelion_engine::graph::END;
use perihelion_engine::ids::ThreadId;
use perihelion_engine::runner::{Runner, StateView};
use perihelion_settings::config::Settings;
use perihelion_settings::config::strict::nearest;
use perihelion_star::{GraphState, GraphUpdate, Kinds, Star};

impl Threads {
    /// Changes a star's thread as if a node had written it; the change is a step.
    ///
    /// # Errors
    /// [`Error::Change`] for a field that there is not or a value that it cannot have; otherwise as
    /// [`Runner::update_state`].
    pub async fn update(
        &self,
        settings: &Settings,
        kinds: Kinds,
        thread: ThreadId,
        fields: Map<String, Value>,
        as_node: Option<&str>,
    ) -> Result<StateView<GraphState>, Error> {
        let update = read(fields)?;
        let options = star_options(settings, &kinds, &self.0)?;
        let star = Star::offline(Arc::new(kinds), options)?;
        let mut runner = Runner::new(Arc::clone(&star.graph), Arc::clone(&self.0));
        runner.most_bytes = Some(settings.limits.max_state_bytes);
        Ok(runner.update_state(thread, update, as_node.unwrap_or(END)).await?)
    }
}

/// Reads fields as a change of the state.
fn read(fields: Map<String, Value>) -> Result<GraphUpdate, Error> {
    let known = serde_json::to_value(GraphState::default()).unwrap_or_default();
    let known: Vec<String> =
        known.as_object().map(|all| all.keys().cloned().collect()).unwrap_or_default();
    if let Some(wrong) = fields.keys().find(|field| !known.contains(field)) {
        let near = nearest(wrong, known.iter().map(String::as_str));
        let hint = near.map_or_else(|| known.join(", "), |near| format!("did you mean {near}?"));
        return Err(Error::Change(format!("the state has no field {wrong}; {hint}")));
    }
    serde_json::from_value(Value::Object(fields)).map_err(|error| Error::Change(error.to_string()))
}
