//! Runs in the clients' format.

use serde::Deserialize;
use serde_json::{Value, json};

use perihelion_service::kept::Run;

/// The request of a run, in the form that clients saw when it was accepted.
#[derive(Default, Deserialize)]
#[serde(default)]
pub(crate) struct Asked {
    pub input: Value,
    pub command: Option<Command>,
    pub stream_mode: Vec<String>,
    pub subgraphs: bool,
}

#[derive(Default, Deserialize)]
#[serde(default)]
pub(crate) struct Command {
    pub resume: Value,
}

impl Asked {
    pub(crate) fn of(run: &Run) -> Self {
        Self::deserialize(&run.kwargs["shown"]).unwrap_or_default()
    }

    /// Returns the run's answers to open questions; null without any.
    pub(crate) fn resume(self) -> Value {
        self.command.unwrap_or_default().resume
    }
}

/// Removes the fields of a user from the request of a run: they can contain tokens, which concern its nodes alone.
pub(crate) fn without_user(mut request: Value) -> Value {
    let configurable = request.pointer_mut("/config/configurable").and_then(Value::as_object_mut);
    if let Some(given) = configurable {
        given.retain(|name, _| !name.starts_with("langgraph_auth_"));
    }
    request
}

pub(crate) fn shown(run: &Run) -> Value {
    let kwargs = without_user(run.kwargs["shown"].clone());
    json!({
        "run_id": run.id,
        "thread_id": run.thread,
        "assistant_id": run.assistant,
        "metadata": run.metadata,
        "status": run.status.as_str(),
        "kwargs": kwargs,
        "multitask_strategy": run.multitask.as_str(),
        "created_at": run.created_at,
        "updated_at": run.updated_at,
    })
}
