//! The star: a supervisor that plans and routes, one specialist per MCP server, a QA node that answers.
//!
//! Enter at [`Star`], which joins graph, models and tools into one graph over [`GraphState`]. Invariants:
//! every model and tool call goes through the node's context, so it happens once; no agent's failure
//! ends a run; QA always answers. Deliberately absent: storage, processes, the command line.

mod addresses;
mod agent;
pub mod answer;
mod approval;
mod artifacts;
mod assignment;
mod attachments;
mod breaker;
mod caller;
mod candidates;
mod citing;
mod decision;
mod directory;
mod dispatch;
mod ending;
mod event;
mod exchange;
mod experience;
mod kind;
mod limits;
mod menu;
mod message;
mod model;
pub mod nodes;
mod offline;
mod parts;
pub mod pipeline;
mod preprocess;
mod qa;
pub mod question;
mod reflection;
mod remaining;
mod report;
mod result;
#[cfg(test)]
mod retrieval_tests;
mod roster;
mod sanitised;
mod shape;
mod spans;
mod star;
mod state;
mod summing;
mod supervisor;
mod taint;
mod team;
mod tool_loop;
mod tool_names;
mod toolbox;
mod window;

pub use agent::{Agent, AgentCard, ServerAgent, SpanKind};
pub use assignment::{Assignment, DependencyOutput, Entity, Instruction, InstructionKind, Sources};
pub use attachments::Attachment;
pub use caller::ToolReply;
pub use citing::Finding;
pub use citing::{CheckedCitations, check_citations};
pub use decision::{PlannedTask, SupervisorDecision};
pub use ending::{EarlyEnd, FinishReason, ReflectionVerdict};
pub use event::{AgentEvent, MessagePiece};
pub use experience::{Experience, Founder, Known, ShownSkill, Statement, Work};
pub use kind::{Bound, Job, Kind, KindCard, KindError, Kinds, Profile, TOOLS, ToolRole};
pub use limits::{Allowance, MenuSize, StarLimits};
pub use menu::Menu;
pub use message::merge_messages;
pub use offline::offline_parts;
pub use parts::{ALLOWANCE, Home, StarOptions, StarParts, TraceContext};
pub use perihelion_settings::config::AGENT_PREFIX;
pub use preprocess::{Request, RequestError};
pub use reflection::{Reflection, ReflectionStatus};
pub use report::{CallRecord, Report};
pub use result::{
    AgentError, AgentResult, Chart, ErrorKind, QuoteLocation, ResultStatus, Source, Table, ToolUse,
};
pub use roster::Roster;
pub use shape::Shapes;
pub use spans::{Written, is_supervisor, span_kind};
pub use star::{GRAPH, Star};
pub use state::{
    Artifact, Citation, Decided, GraphState, GraphUpdate, Message, Messages, Planner, Preferences,
    REMOVE, REMOVE_ALL, Routing, Search, Spent, Summary, TaskRecord, message_id,
};
pub use team::{
    ARCHITECT, Architect, Brief, Material, TEAM_PREFIX, Team, TeamAgent, TeamDesign, TeamMember,
    clean_name, design,
};
pub use tool_loop::ToolLoop;
pub use tool_names::is_built_in;

/// The result of a node.
pub(crate) type Result<T, E = perihelion_engine::graph::NodeError> = std::result::Result<T, E>;

/// Observations of nodes, by their names in the journal.
pub mod seen {
    /// The agents that the supervisor can choose from.
    pub const MENU: &str = "menu";
    /// The form of a decision, where it is not the full one; whether that of an agent or, with a number, a verdict is
    /// compact.
    pub const SHAPE: &str = "shape";
    /// The agents that fit a request by words.
    pub const CANDIDATES: &str = "candidates";
    /// The agents that a search found.
    pub const FOUND: &str = "found";
    /// The server of a specialist, with its tools.
    pub const SERVER: &str = "server";
    /// The policy of a specialist's tools, if it became stricter; a number follows.
    pub const GATES: &str = "gates";
    /// The places of the calls that a person was asked about, in an answer whose number follows.
    pub const ASKED: &str = "asked";
    /// The version of a team that works.
    pub const TEAM: &str = "team";
    /// The building blocks that the architect can use for a team, and whether a person must agree.
    pub const MATERIAL: &str = "material";
    /// Whether a team has no agent that can work.
    pub const ALONE: &str = "alone";
    /// How long an agent worked on a task, in milliseconds.
    pub const LATENCY: &str = "latency_ms";
    /// The bounds with which a turn begins.
    pub const LIMITS: &str = "limits";
    /// The remaining bounds of a turn.
    pub const BUDGET: &str = "budget";
    /// How tasks like the present one were solved before.
    pub const SKILLS: &str = "skills";
}

/// Fixed nodes of the star.
pub mod node {
    pub const PREPROCESS: &str = "preprocess";
    pub const SUPERVISOR: &str = "supervisor";
    pub const QA: &str = "qa";
}

/// Returns whether a field has its default, which is not stored.
fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

/// The name under which the supervisor searches.
const FIND_AGENT: &str = "find_agent";

/// Returns the names of the star's fixed nodes, in the order in which a turn passes them.
pub fn node_names() -> [&'static str; 3] {
    [node::PREPROCESS, node::SUPERVISOR, node::QA]
}
