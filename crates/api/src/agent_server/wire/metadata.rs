//! The metadata of events and states about their run.

use serde::Serialize;
use uuid::Uuid;

use super::interrupt::task_id;
use super::modes::ATTEMPT;
use perihelion_engine::ids::ThreadId;
use perihelion_service::StepRun;
use perihelion_service::kept::Run;
use perihelion_star::{GRAPH, TEAM_PREFIX};

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

/// The task of a run that something belongs to.
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

/// Returns the name of the channel that makes a node run.
pub(super) fn trigger(node: &str) -> String {
    format!("branch:to:{node}")
}
