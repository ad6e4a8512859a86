//! Runs in the clients' format.

use serde::Deserialize;
use serde_json::{Value, json};

use perihelion_service::kept::Run;

/// What a run was asked for, as clients were shown it when it was accepted.
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

    /// Returns the answers to open questions that the run brings; null where it brings none.
    pub(crate) fn resume(self) -> Value {
        self.command.unwrap_or_default().resume
    }
}

pub(crate) fn shown(run: &Run) -> Value {
    json!({
        "run_id": run.id,
        "thread_id": run.thread,
        "assistant_id": run.assistant,
        "metadata": run.metadata,
        "status": run.status.as_str(),
        "kwargs": run.kwargs["shown"],
        "multitask_strategy": run.multitask.as_str(),
        "created_at": run.created_at,
        "updated_at": run.updated_at,
    })
}
