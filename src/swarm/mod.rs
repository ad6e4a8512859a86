//! The star: a supervisor that plans and routes, one specialist per MCP server, a QA node that answers.
//!
//! Enter at [`Star`], which joins graph, models and tools into one graph over [`GraphState`]. Invariants:
//! every model and tool call goes through the node's context, so it happens once; no agent's failure
//! ends a run; QA always answers. Deliberately absent: storage, processes, the command line.

mod approval;
mod artifacts;
mod assignment;
mod breaker;
mod built_in;
mod citing;
mod clarification;
mod decision;
mod directory;
mod exchange;
mod handout;
mod index;
mod menu;
mod model;
mod offer;
mod offline;
mod preprocess;
mod qa;
mod reflection;
#[cfg(test)]
mod retrieval_tests;
mod roster;
mod search;
mod specialist;
mod star;
mod state;
mod supervisor;
mod taint;
mod tool_names;
mod tool_search;
mod toolbox;
mod trace_context;
mod window;
mod words;

pub use assignment::Assignment;
pub use built_in::is_built_in;
pub use decision::{PlannedTask, SupervisorDecision};
pub use menu::{Menu, MenuSize};
pub use preprocess::{Request, RequestError};
pub use reflection::{Reflection, ReflectionStatus};
pub use roster::Roster;
pub use search::Search;
pub use star::{GRAPH, Star, StarLimits};
pub use state::{
    AgentResult, Artifact, Citation, GraphState, GraphUpdate, Message, Preferences, ResultStatus,
    Routing, Spent, TaskRecord, ToolUse,
};
pub use taint::Sources;
pub use trace_context::TraceContext;

/// Prefix of the agents that are generated from MCP servers (S1.09).
pub const AGENT_PREFIX: &str = "mcp_agent_";

/// What nodes see of their surroundings, by the names under which the journal keeps it.
pub(crate) mod seen {
    /// The agents that the supervisor can choose from.
    pub const MENU: &str = "menu";
    /// The agents that a search found.
    pub const FOUND: &str = "found";
    /// The server of a specialist, with its tools.
    pub const SERVER: &str = "server";
    /// What surrounds the tools that a specialist calls, where it became stricter; a number follows.
    pub const GATES: &str = "gates";
}

/// Fixed nodes of the star.
pub(crate) mod node {
    pub const PREPROCESS: &str = "preprocess";
    pub const SUPERVISOR: &str = "supervisor";
    pub const QA: &str = "qa";
}
