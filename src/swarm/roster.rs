//! The roster: which agents there are now; nodes are found here by name while threads are open (S1.09).

use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError, RwLock, Weak};

use super::node;
use super::specialist::Specialist;
use super::star::StarParts;
use super::state::GraphState;
use crate::graph::{NodeEntry, Resolver};
use crate::mcp::{self, ServerInfo};

/// The agents generated from the scanned servers.
#[derive(Debug, Default)]
pub struct Roster {
    agents: RwLock<BTreeMap<String, Card>>,
    /// Why agents that could be there are not.
    absences: RwLock<BTreeMap<String, String>>,
    /// Answers to any name with an agent that knows nothing of its server: for replays, in which every
    /// node sees what the recorded one saw.
    answers_to_any: bool,
}

#[derive(Clone, Debug)]
struct Card {
    line: String,
    server: Arc<ServerInfo>,
}

impl Roster {
    /// Makes a roster that knows no server and has an agent under every name.
    pub(super) fn of_any() -> Self {
        Self { answers_to_any: true, ..Self::default() }
    }

    /// Finds the server that an agent is made of.
    fn find(&self, agent: &str) -> Option<Arc<ServerInfo>> {
        if let Some(card) = self.read().get(agent) {
            return Some(Arc::clone(&card.server));
        }
        let nothing = || ServerInfo {
            name: agent.to_owned(),
            description: String::new(),
            server_version: String::new(),
            protocol_version: String::new(),
            tools: Vec::new(),
            rejected_tools: Vec::new(),
            open_world: false,
        };
        self.answers_to_any.then(|| Arc::new(nothing()))
    }

    /// Makes one agent per server, in place of those there were.
    pub fn set(&self, servers: impl IntoIterator<Item = ServerInfo>) {
        let card = |server: ServerInfo| {
            let name = mcp::agent_name(&server.name);
            let line = mcp::menu_line(&server);
            // The menu shows the name beside the line.
            let line =
                line.strip_prefix(&format!("{name}:")).map_or(line.as_str(), str::trim).to_owned();
            (name, Card { line, server: Arc::new(server) })
        };
        *self.agents.write().unwrap_or_else(PoisonError::into_inner) =
            servers.into_iter().map(card).collect();
    }

    /// Says why servers of the file have no agents.
    pub fn set_absences(&self, reasons: impl IntoIterator<Item = (String, String)>) {
        let reasons = reasons.into_iter().map(|(server, why)| (mcp::agent_name(&server), why));
        *self.absences.write().unwrap_or_else(PoisonError::into_inner) = reasons.collect();
    }

    /// Takes an agent out of the menu: its server says something else than it did when it was scanned.
    pub(super) fn remove(&self, agent: &str, why: String) {
        self.agents.write().unwrap_or_else(PoisonError::into_inner).remove(agent);
        let mut absences = self.absences.write().unwrap_or_else(PoisonError::into_inner);
        absences.insert(agent.to_owned(), why);
    }

    /// Returns the agents' names.
    pub fn names(&self) -> Vec<String> {
        self.read().keys().cloned().collect()
    }

    /// Returns name and menu line of each agent that is not disabled; `trouble` says why one cannot be used now.
    pub fn menu(
        &self,
        disabled: &[String],
        trouble: impl Fn(&str) -> Option<String>,
    ) -> Vec<(String, String)> {
        let shown = |name: &String| !disabled.contains(name);
        let line = |card: &Card| match trouble(&card.server.name) {
            Some(why) => format!("{} (cannot be used now: {why})", card.line),
            None => card.line.clone(),
        };
        self.read()
            .iter()
            .filter(|(name, _)| shown(name))
            .map(|(name, card)| (name.clone(), line(card)))
            .collect()
    }

    fn read(&self) -> std::sync::RwLockReadGuard<'_, BTreeMap<String, Card>> {
        self.agents.read().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Finds agents' nodes in the roster.
pub(super) struct AgentResolver {
    pub parts: Weak<StarParts>,
}

impl Resolver<GraphState> for AgentResolver {
    fn resolve(&self, name: &str) -> Option<Arc<NodeEntry<GraphState>>> {
        let parts = self.parts.upgrade()?;
        let server = parts.roster.find(name)?;
        let specialist = Specialist { parts, name: name.to_owned(), server };
        Some(Arc::new(NodeEntry::new(Arc::new(specialist)).then(node::SUPERVISOR)))
    }

    fn absence(&self, name: &str) -> Option<String> {
        let parts = self.parts.upgrade()?;
        parts.roster.absences.read().unwrap_or_else(PoisonError::into_inner).get(name).cloned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_menu_tells_of_an_agent_that_cannot_be_used_now_and_leaves_disabled_ones_out() {
        let server = |name: &str| ServerInfo {
            name: name.to_owned(),
            description: "Reads.".into(),
            server_version: String::new(),
            protocol_version: String::new(),
            tools: Vec::new(),
            rejected_tools: Vec::new(),
            open_world: false,
        };
        let roster = Roster::default();
        roster.set(["a", "b", "c"].map(server));
        let trouble = |name: &str| (name == "b").then(|| "its circuit breaker is open".to_owned());
        let menu = roster.menu(&["mcp_agent_c".to_owned()], trouble);
        let lines: Vec<_> = menu.iter().map(|(_, line)| line.as_str()).collect();
        let usual = "Reads; tools: none";
        let told = format!("{usual} (cannot be used now: its circuit breaker is open)");
        assert_eq!(lines, [usual, &told]);
    }
}
