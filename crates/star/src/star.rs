//! The star itself: preprocess → supervisor ⇄ agents … → QA (S1.02).

use std::sync::{Arc, Weak};

use crate::{
    GraphState, Roster, StarOptions, StarParts, TraceContext, node, preprocess::Preprocess, qa::Qa,
    supervisor::Supervisor,
};
use perihelion_engine::graph::{BuildError, Graph, GraphBuilder, NodeEntry, Resolver};
use perihelion_llm::ChatModel;
use perihelion_mcp::ToolHost;

/// Name of the graph, which threads keep and clients ask for.
pub const GRAPH: &str = "swarm";

pub struct Star {
    pub graph: Arc<Graph<GraphState>>,
    pub roster: Arc<Roster>,
}

impl Star {
    /// Assembles the graph over the agents of a roster; agents appear in it as that is filled.
    ///
    /// With `traces`, tool calls carry their place in the trace to the servers.
    pub fn new(
        roster: Arc<Roster>,
        options: StarOptions,
        model: Arc<dyn ChatModel>,
        tools: Arc<dyn ToolHost>,
        traces: Option<Arc<dyn TraceContext>>,
    ) -> Result<Self, BuildError> {
        let withdraw = Arc::clone(&roster) as _;
        let parts = StarParts { options, model, tools, traces, withdraw, top: None, depth: 0 };
        let parts = Arc::new(parts);
        let graph = graph(GRAPH, &parts, &roster)?;
        Ok(Self { graph, roster })
    }
}

/// Finds agents' nodes in a roster, by name, while threads are open.
struct AgentResolver {
    parts: Weak<StarParts>,
    roster: Arc<Roster>,
}

impl Resolver<GraphState> for AgentResolver {
    fn resolve(&self, name: &str) -> Option<Arc<NodeEntry<GraphState>>> {
        let parts = self.parts.upgrade()?;
        let agent = self.roster.find(name)?;
        Some(Arc::new(agent.node(&parts).then(node::SUPERVISOR)))
    }

    fn absence(&self, name: &str) -> Option<String> {
        self.roster.absence(name)
    }
}

/// Builds the graph of a star over a roster; its nodes keep the parts alive.
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
