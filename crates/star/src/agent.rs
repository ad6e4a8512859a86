//! The seam at which agents are plugged in: a card, and a node that turns an assignment into a result (S1.06, S3.12).

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::parts::StarParts;
use super::state::GraphState;
use super::team::Team;
use perihelion_engine::graph::NodeEntry;
use perihelion_llm::Role;
use perihelion_mcp::{ServerInfo, ToolDefinition};

/// What others know of an agent.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct AgentCard {
    /// The name by which the supervisor chooses it, and of its node.
    pub name: String,
    /// How it works, such as `tools` or `analyst`.
    pub kind: String,
    /// What it is for, in a sentence or two; what is searched when there are many agents.
    pub capabilities: String,
    /// The tools that it works with.
    pub tools: Vec<ToolDefinition>,
    /// Anybody may have written what stands here, but for the operator's words in `capabilities`.
    pub open_world: bool,
    /// What the operator should know of how it works, such as a fallback.
    pub notice: Option<String>,
}

/// A model call that a kind of agent makes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct ModelStage {
    pub role: Role,
    /// Sent as `x-perihelion-stage`.
    pub stage: &'static str,
    /// Name of the answer's schema.
    pub schema: &'static str,
}

/// How an agent's work is drawn in a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SpanKind {
    /// Decides where the run goes.
    Transition,
    /// Works on a task.
    Agent,
    /// One stage of an agent's own graph.
    Stage,
}

/// Something that turns assignments into results.
pub trait Agent: Send + Sync {
    /// Returns what others know of it.
    fn card(&self) -> &AgentCard;

    /// Returns its line in the supervisor's menu, without its name; the tools of these numbers stand first.
    fn menu_line(&self, first: &[usize]) -> String;

    /// Returns the MCP server that it is bound to, if it is.
    fn server(&self) -> Option<&Arc<ServerInfo>> {
        None
    }

    /// Returns the team that it is, if it is one.
    fn team(&self) -> Option<&Arc<Team>> {
        None
    }

    /// Returns its node: the input is an [`Assignment`](super::Assignment), the update holds the result.
    fn node(&self, star: &Arc<StarParts>) -> NodeEntry<GraphState>;

    /// Returns how its work is drawn.
    fn span_kind(&self) -> SpanKind {
        SpanKind::Agent
    }

    /// Returns the model calls that it makes beside those of every agent.
    fn model_stages(&self) -> &[ModelStage] {
        &[]
    }
}
