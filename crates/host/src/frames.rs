//! The frames with which the child answers.

use std::collections::BTreeMap;

use perihelion_runtime::HostedEvent;
use serde::Deserialize;
use serde_json::{Map, Value};

/// A frame with the call that it answers.
#[derive(Debug, Deserialize)]
pub struct Answer {
    pub call: u64,
    #[serde(flatten)]
    pub frame: Frame,
}

/// The contents of a frame.
#[derive(Debug, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Frame {
    /// The graphs are loaded, from these files.
    Loaded {
        graphs: BTreeMap<String, Description>,
        files: Vec<String>,
    },
    /// A stream event, as clients see it.
    Event(HostedEvent),
    /// A checkpoint; the child waits for `next`.
    Step(Step),
    /// The run waits for answers to these questions.
    Asks {
        interrupts: Vec<Question>,
        /// The events in which subgraphs ask them.
        #[serde(default)]
        nested: Vec<HostedEvent>,
    },
    /// The answer to a question besides runs.
    Answer {
        answer: Value,
    },
    /// The run ended before these nodes.
    End {
        next: Vec<String>,
    },
    Error {
        error: String,
        message: String,
        traceback: String,
    },
}

/// The schemas and the drawing of a graph.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct Description {
    pub input_schema: Value,
    pub output_schema: Value,
    pub state_schema: Value,
    pub config_schema: Value,
    pub context_schema: Value,
    pub drawing: Value,
}

/// A LangGraph checkpoint.
#[derive(Debug, Deserialize)]
pub struct Step {
    pub checkpoint: String,
    pub values: Map<String, Value>,
    /// Names of values that the output of the graph does not have.
    #[serde(default)]
    pub hidden: Vec<String>,
    /// Whether the step wrote nothing that the output of the graph has.
    #[serde(default)]
    pub silent: bool,
    pub next: Vec<String>,
    #[serde(default)]
    pub tasks: Value,
    #[serde(default)]
    pub metadata: Value,
    /// Whether the run pauses here.
    #[serde(default)]
    pub pauses: bool,
}

/// An open LangGraph interrupt.
#[derive(Clone, Debug, Deserialize)]
pub struct Question {
    pub id: String,
    pub value: Value,
    /// The node that asks.
    pub task: String,
    /// The number of answers that its task has received.
    pub answered: u64,
}
