//! The star itself: preprocess → supervisor ⇄ agents … → QA (S1.02).

use std::sync::Arc;
use std::time::Duration;

use super::menu::MenuSize;
use super::node;
use super::offline::Offline;
use super::preprocess::Preprocess;
use super::qa::Qa;
use super::roster::{AgentResolver, Roster};
use super::state::GraphState;
use super::supervisor::Supervisor;
use super::trace_context::TraceContext;
use crate::config::Prices;
use crate::graph::{BuildError, Graph, GraphBuilder};
use crate::llm::{ChatModel, Prompts};
use crate::mcp::ToolHost;

/// Name of the graph, which threads keep and clients ask for.
pub const GRAPH: &str = "swarm";

/// Bounds of the star's work, and what it asks people about; a reached bound leads to QA, not to an error.
#[derive(Clone, Copy, Debug)]
pub struct StarLimits {
    /// Super-steps of one turn.
    pub max_steps: u64,
    /// Tokens of one turn.
    pub max_tokens: Option<u64>,
    /// Billionths of a US dollar of one turn.
    pub max_nano_usd: Option<u64>,
    /// Seconds of one run; waiting for people ends a run, so it is not counted.
    pub deadline_sec: Option<u64>,
    /// Tool calls for one task.
    pub max_tool_calls: u32,
    /// Times a rejected output is sent back.
    pub max_reflections: u32,
    /// Bytes above which a tool result becomes an artifact.
    pub result_bytes: usize,
    /// Repeated routings without progress at which the breaker trips.
    pub breaker_retries: u32,
    /// Agents that the supervisor is shown.
    pub menu: MenuSize,
    /// Tools up to which an agent is shown all of its server's; of more, this many that fit its task.
    pub agent_tools: usize,
    /// How long a request for approval can be answered.
    pub approval_timeout: Duration,
    /// Whether a person approves calls that the open world may have led to.
    pub asks_about_taint: bool,
}

/// What the star's nodes share.
pub struct StarParts {
    pub(super) model: Arc<dyn ChatModel>,
    pub(super) tools: Arc<dyn ToolHost>,
    pub(super) prompts: Arc<Prompts>,
    pub(super) roster: Arc<Roster>,
    pub(super) prices: Prices,
    pub(super) limits: StarLimits,
    pub(super) traces: Option<Arc<dyn TraceContext>>,
}

/// The star, assembled.
pub struct Star {
    pub graph: Arc<Graph<GraphState>>,
    pub roster: Arc<Roster>,
    /// Keeps alive what the graph's nodes share.
    _parts: Arc<StarParts>,
}

impl Star {
    /// Assembles the graph; agents appear in it as the roster is filled.
    ///
    /// With `traces`, tool calls carry their place in the trace to the servers.
    ///
    /// # Errors
    /// [`BuildError`] never happens with the fixed nodes; it is passed on all the same.
    pub fn new(
        model: Arc<dyn ChatModel>,
        tools: Arc<dyn ToolHost>,
        prompts: Arc<Prompts>,
        prices: Prices,
        limits: StarLimits,
        traces: Option<Arc<dyn TraceContext>>,
    ) -> Result<Self, BuildError> {
        Self::assemble(Roster::default(), model, tools, prompts, prices, limits, traces)
    }

    /// Assembles the graph for replays: no model, no servers, an agent under every name.
    ///
    /// # Errors
    /// As [`Star::new`].
    pub fn offline(
        prompts: Arc<Prompts>,
        prices: Prices,
        limits: StarLimits,
    ) -> Result<Self, BuildError> {
        let nothing = Arc::new(Offline);
        Self::assemble(
            Roster::of_any(),
            Arc::clone(&nothing) as _,
            nothing,
            prompts,
            prices,
            limits,
            None,
        )
    }

    fn assemble(
        roster: Roster,
        model: Arc<dyn ChatModel>,
        tools: Arc<dyn ToolHost>,
        prompts: Arc<Prompts>,
        prices: Prices,
        limits: StarLimits,
        traces: Option<Arc<dyn TraceContext>>,
    ) -> Result<Self, BuildError> {
        let roster = Arc::new(roster);
        let shared = Arc::clone(&roster);
        let parts =
            Arc::new(StarParts { model, tools, prompts, roster: shared, prices, limits, traces });
        let graph = GraphBuilder::new(GRAPH)
            .node(node::PREPROCESS, Arc::new(Preprocess))
            .node(node::SUPERVISOR, Arc::new(Supervisor { parts: Arc::clone(&parts) }))
            .node(node::QA, Arc::new(Qa { parts: Arc::clone(&parts) }))
            .entry(node::PREPROCESS)
            .edge(node::PREPROCESS, node::SUPERVISOR)
            .resolver(Arc::new(AgentResolver { parts: Arc::downgrade(&parts) }))
            .build()?;
        Ok(Self { graph, roster, _parts: parts })
    }
}
