//! Agents that are graphs: a list of stages over a typed state, run as a subgraph of the agent's node.
//!
//! Enter at [`Pipeline`], which becomes a [`Kind`]; a stage is an async function of a [`Stage`]. Invariants: each stage
//! is a separate step, committed before the next one begins. All requests of a stage go through its [`Stage`] and are
//! journaled. The finding is judged by the same reflection as that of any agent. Deliberately absent: the work of the
//! stages, which each kind defines.

mod calls;
mod kind;
mod node;
mod stage;
mod state;

pub use calls::NO_CALLS;
pub use kind::Pipeline;
pub use stage::{Budget, Stage};
pub use state::{Ask, StageError, StageResult, Step};
pub use state::{Attempt, Outcome, PipelineState, PipelineUpdate};

pub use super::{
    AgentError, Assignment, Chart, CheckedCitations, DependencyOutput, Entity, ErrorKind, Finding,
    Kind, QuoteLocation, Source, Table, ToolReply,
};
pub use crate::question::Clarification;
pub use perihelion_llm::{Role, clip};
pub use perihelion_mcp::ServerInfo;

pub(super) const REFLECT: &str = "reflect";

pub(super) const GRAPH_PREFIX: &str = "agent:";
