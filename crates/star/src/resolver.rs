//! Finds agents' nodes in the roster, by name, while threads are open.

use std::sync::{Arc, Weak};

use super::node;
use super::parts::StarParts;
use super::roster::Roster;
use super::state::GraphState;
use perihelion_engine::graph::{NodeEntry, Resolver};

/// Finds agents' nodes in the roster.
pub(super) struct AgentResolver {
    pub parts: Weak<StarParts>,
    pub roster: Arc<Roster>,
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
