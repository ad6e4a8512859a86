//! Runs in the clients' format.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::interrupt::task_id;
use super::modes::ATTEMPT;
use perihelion_engine::ids::ThreadId;
use perihelion_service::StepRun;
use perihelion_service::kept::Run;
use perihelion_star::{GRAPH, TEAM_PREFIX};
use uuid::Uuid;

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

#[derive(Clone, Copy, Debug, Serialize)]
pub(crate) struct RunMetadata<'a> {
    created_by: &'static str,
    graph_id: &'a str,
    assistant_id: Uuid,
    run_attempt: u32,
    thread_id: ThreadId,
    run_id: Uuid,
}

pub(crate) fn graph_of(run: &Run) -> &str {
    let noted = run.metadata["graph_id"].as_str().filter(|name| !name.starts_with(TEAM_PREFIX));
    noted.unwrap_or(GRAPH)
}

impl<'a> RunMetadata<'a> {
    pub(crate) fn new(graph: &'a str, thread: ThreadId, run: StepRun) -> Self {
        Self {
            created_by: "system",
            graph_id: graph,
            assistant_id: run.assistant,
            run_attempt: ATTEMPT,
            thread_id: thread,
            run_id: run.id,
        }
    }

    pub(crate) fn of(run: &'a Run) -> Self {
        Self::new(
            graph_of(run),
            ThreadId(run.thread),
            StepRun { id: run.id, assistant: run.assistant },
        )
    }
}

#[derive(Clone, Debug, Serialize)]
pub(super) struct TaskMetadata<'a> {
    #[serde(flatten)]
    run: RunMetadata<'a>,
    langgraph_step: u64,
    langgraph_node: &'a str,
    langgraph_triggers: [String; 1],
    langgraph_path: [&'a str; 2],
    langgraph_checkpoint_ns: String,
    checkpoint_ns: String,
}

impl<'a> TaskMetadata<'a> {
    pub(super) fn of(run: &'a Run, step: u64, task: u32, node: &'a str) -> Self {
        let space = format!("{node}:{}", task_id(ThreadId(run.thread), step, task));
        Self {
            run: RunMetadata::of(run),
            langgraph_step: step,
            langgraph_node: node,
            langgraph_triggers: [trigger(node)],
            langgraph_path: ["__pregel_pull", node],
            langgraph_checkpoint_ns: space.clone(),
            checkpoint_ns: space,
        }
    }
}

pub(super) fn trigger(node: &str) -> String {
    format!("branch:to:{node}")
}
