//! Agents that are graphs: a list of stages over a typed state, run as a subgraph of the agent's node.
//!
//! Enter at [`Pipeline`], which becomes a [`Kind`]; a stage is an async function of a [`Stage`]. Invariants:
//! each stage is a step of its own, committed before the next begins; everything that a stage reaches goes through its
//! [`Stage`] and is journalled; the finding is judged by the same reflection as any agent's. Deliberately absent: what
//! stages do, which is the business of each kind.

mod calls;
mod kind;
mod node;
mod stage;
mod state;

pub use kind::Pipeline;
pub use stage::{Budget, Stage};
pub use state::{Ask, Clarification, StageError, StageResult, Step};
pub use state::{Attempt, Outcome, PipelineState, PipelineUpdate};

pub use super::{
    AgentError, Assignment, Chart, CheckedCitations, DependencyOutput, Entity, ErrorKind, Finding,
    Kind, QuoteLocation, Source, Table, ToolReply,
};
pub use perihelion_llm::Role;

/// The node that judges what a pipeline found.
pub(super) const REFLECT: &str = "reflect";

/// Graphs of pipelines are named by this and their kind.
pub(super) const GRAPH_PREFIX: &str = "agent:";
