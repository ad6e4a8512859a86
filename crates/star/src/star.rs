//! The star itself: preprocess → supervisor ⇄ agents … → QA (S1.02).

use std::sync::Arc;

use super::experience::Experience;
use super::founder::Founder;
use super::kind::Kinds;
use super::node;
use super::parts::{Home, StarLimits, StarParts};
use super::preprocess::Preprocess;
use super::qa::Qa;
use super::resolver::AgentResolver;
use super::roster::Roster;
use super::state::GraphState;
use super::supervisor::Supervisor;
use super::trace_context::TraceContext;
use perihelion_engine::graph::{BuildError, Graph, GraphBuilder};
use perihelion_llm::{ChatModel, Prompts};
use perihelion_mcp::ToolHost;
use perihelion_settings::config::Prices;

/// Name of the graph, which threads keep and clients ask for.
pub const GRAPH: &str = "swarm";

/// The star, assembled.
pub struct Star {
    pub graph: Arc<Graph<GraphState>>,
    pub roster: Arc<Roster>,
    /// Keeps alive what the graph's nodes share.
    _parts: Arc<StarParts>,
}

/// What a star is made of.
pub struct StarOptions {
    pub prompts: Arc<Prompts>,
    pub prices: Prices,
    pub limits: StarLimits,
    /// How agents work that are bound to servers.
    pub kinds: Arc<Kinds>,
    /// Where agents that are graphs keep their steps: in the store of the threads.
    pub home: Home,
    /// Skills and memories; none: nothing outlives a thread.
    pub experience: Option<Arc<dyn Experience>>,
    /// Rules of style for answers.
    pub style: Option<Arc<str>>,
    /// Keeps teams that are designed while a run is under way; none: none are.
    pub founder: Option<Arc<dyn Founder>>,
}

impl Star {
    /// Assembles the graph; agents appear in it as the roster is filled.
    ///
    /// With `traces`, tool calls carry their place in the trace to the servers.
    ///
    /// # Errors
    /// [`BuildError`] never happens with the fixed nodes; it is passed on all the same.
    pub fn new(
        options: StarOptions,
        model: Arc<dyn ChatModel>,
        tools: Arc<dyn ToolHost>,
        traces: Option<Arc<dyn TraceContext>>,
    ) -> Result<Self, BuildError> {
        Self::assemble(Roster::default(), options, model, tools, traces)
    }

    /// Assembles the graph over the agents of a roster.
    pub(super) fn assemble(
        roster: Roster,
        options: StarOptions,
        model: Arc<dyn ChatModel>,
        tools: Arc<dyn ToolHost>,
        traces: Option<Arc<dyn TraceContext>>,
    ) -> Result<Self, BuildError> {
        let StarOptions { prompts, prices, limits, home, experience, style, founder, .. } = options;
        let roster = Arc::new(roster);
        let withdraw = Arc::clone(&roster) as _;
        let parts = StarParts {
            model,
            tools,
            prompts,
            prices,
            limits,
            traces,
            home,
            withdraw,
            experience,
            style,
            top: None,
            depth: 0,
            founder,
        };
        let parts = Arc::new(parts);
        let graph = graph(GRAPH, &parts, &roster)?;
        Ok(Self { graph, roster, _parts: parts })
    }
}

/// Builds the graph of a star over a roster; anyone who runs it keeps the parts alive.
pub(super) fn graph(
    name: &str,
    parts: &Arc<StarParts>,
    roster: &Arc<Roster>,
) -> Result<Arc<Graph<GraphState>>, BuildError> {
    let supervisor = Supervisor { parts: Arc::clone(parts), roster: Arc::clone(roster) };
    let resolver = AgentResolver { parts: Arc::downgrade(parts), roster: Arc::clone(roster) };
    GraphBuilder::new(name)
        .node(node::PREPROCESS, Arc::new(Preprocess { parts: Arc::clone(parts) }))
        .node(node::SUPERVISOR, Arc::new(supervisor))
        .node(node::QA, Arc::new(Qa { parts: Arc::clone(parts) }))
        .entry(node::PREPROCESS)
        .edge(node::PREPROCESS, node::SUPERVISOR)
        .resolver(Arc::new(resolver))
        .build()
}
