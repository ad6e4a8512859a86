//! The events of a run for followers, independent of any protocol.

use chrono::{DateTime, Utc};
use serde_json::Value;

use super::Checkpoint;
use perihelion_engine::graph::Interrupt;
use perihelion_runtime::{HostedEvent, ThreadState};

/// Something that happened, with its place in the thread's log.
#[derive(Clone, Debug)]
pub struct LoggedChange {
    /// Number of the log's event; events made from the same log event share it.
    pub id: u64,
    /// The newest time that is known of it, the same for every follower: when the last step was durable, or the run asked
    /// for.
    pub at: DateTime<Utc>,
    /// Whether it is the first event of the run.
    pub is_first: bool,
    pub change: ThreadChange,
}

/// The kinds of events of a run.
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
    /// An event of a hosted graph, as clients of its stream mode see it.
    Hosted(HostedEvent),
    Custom {
        node: String,
        payload: Value,
    },
    Step {
        at: Box<Checkpoint>,
        /// The last pieces of its messages, if they were not sent before.
        rest: Vec<ThreadChange>,
        /// The IDs of those of its messages that were sent in pieces.
        streamed: Vec<String>,
    },
    Interrupted {
        step: u64,
        interrupts: Vec<Interrupt>,
        /// The task of the step that asks each question; empty in events of older versions.
        asking: Vec<u32>,
        state: ThreadState,
    },
    /// A payload that a node of a subgraph published.
    Nested {
        namespace: String,
        payload: Value,
    },
}
