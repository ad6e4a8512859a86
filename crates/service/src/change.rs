//! What happens in a run, as those who follow it hear of it; no protocol's shapes.

use chrono::{DateTime, Utc};
use serde_json::Value;

use super::Checkpoint;
use perihelion_engine::graph::Interrupt;
use perihelion_runtime::ThreadState;

/// Something that happened, with its place in the thread's log.
#[derive(Clone, Debug)]
pub struct LoggedChange {
    /// Number of the log's event; what was made of one event has the same number.
    pub id: u64,
    /// The newest time that is known of it, the same for every follower: when the last step was durable, or the run asked
    /// for.
    pub at: DateTime<Utc>,
    /// Whether it is the first that is told of the run.
    pub is_first: bool,
    pub change: ThreadChange,
}

/// What can happen in a run.
#[derive(Clone, Debug)]
pub enum ThreadChange {
    /// The run continues from a state that was there before it.
    ContinuesFrom {
        state: ThreadState,
    },
    TaskStarted {
        step: u64,
        task: u32,
        node: String,
        state: ThreadState,
    },
    TaskFailed {
        step: u64,
        task: u32,
        node: String,
        error: String,
    },
    /// A piece of a message; `text` is all of it so far.
    Piece {
        step: u64,
        task: u32,
        node: String,
        message: String,
        piece: String,
        text: String,
        is_first: bool,
    },
    /// What a node published.
    Custom {
        node: String,
        payload: Value,
    },
    /// A step is durable.
    Step {
        at: Box<Checkpoint>,
        /// The pieces with which its messages end, where they were not told before.
        rest: Vec<ThreadChange>,
        /// The ids of those of its messages that were told in pieces.
        streamed: Vec<String>,
    },
    Interrupted {
        step: u64,
        interrupts: Vec<Interrupt>,
        /// The task of the step that asks each of them; nothing where an older version told it.
        asking: Vec<u32>,
        state: ThreadState,
    },
    /// What a node of a subgraph published.
    Nested {
        namespace: String,
        payload: Value,
    },
}
