//! A team as an agent of the star: one line in the menu, one node.

use std::sync::Arc;

use super::design::Team;
use super::node::{Servers, TeamNode};
use crate::graph::NodeEntry;
use crate::swarm::agent::{Agent, AgentCard};
use crate::swarm::kind::Kinds;
use crate::swarm::parts::StarParts;
use crate::swarm::roster::Roster;
use crate::swarm::state::GraphState;

/// The word for how a team works, beside the kinds of agents.
const KIND: &str = "team";

/// The agent that a team is.
pub struct TeamAgent {
    card: AgentCard,
    team: Arc<Team>,
    kinds: Arc<Kinds>,
    servers: Servers,
}

impl TeamAgent {
    /// Makes the agent of a team whose servers are those of a roster; `kinds` know how its agents work.
    pub fn new(team: Team, kinds: &Arc<Kinds>, roster: &Arc<Roster>) -> Self {
        Self::with(team.agent_name(), team, kinds, Servers::Of(Arc::downgrade(roster)))
    }

    /// Makes the agent of a team within another one, for which it has a role and a goal.
    pub(super) fn within(
        mut team: Team,
        about: &str,
        kinds: &Arc<Kinds>,
        servers: Servers,
    ) -> Self {
        team.design.description = format!("{about} {}", team.design.description);
        Self::with(team.agent_name(), team, kinds, servers)
    }

    /// Makes the agent of a team of which nothing is known but what was recorded.
    pub(in crate::swarm) fn recorded(name: String, kinds: &Arc<Kinds>) -> Self {
        Self::with(name, Team::default(), kinds, Servers::Recorded)
    }

    fn with(name: String, team: Team, kinds: &Arc<Kinds>, servers: Servers) -> Self {
        let goals =
            team.design.agents.iter().map(|agent| format!("{}: {}", agent.role, agent.goal));
        let about = [team.design.description.clone()].into_iter().chain(goals);
        let card = AgentCard {
            name,
            kind: KIND.to_owned(),
            capabilities: about.collect::<Vec<_>>().join(". "),
            ..AgentCard::default()
        };
        Self { card, team: Arc::new(team), kinds: Arc::clone(kinds), servers }
    }
}

impl Agent for TeamAgent {
    fn card(&self) -> &AgentCard {
        &self.card
    }

    fn menu_line(&self, _: &[usize]) -> String {
        let design = &self.team.design;
        let agents = design.agents.iter().map(|agent| format!("{} ({})", agent.name, agent.role));
        let agents = agents.collect::<Vec<_>>().join(", ");
        let line =
            format!("{}; a team of {agents}", design.description.trim_end_matches(['.', ';']));
        line.split_whitespace().collect::<Vec<_>>().join(" ")
    }

    fn team(&self) -> Option<&Arc<Team>> {
        Some(&self.team)
    }

    fn node(&self, star: &Arc<StarParts>) -> NodeEntry<GraphState> {
        NodeEntry::new(Arc::new(TeamNode {
            name: self.card.name.clone(),
            team: Arc::clone(&self.team),
            kinds: Arc::clone(&self.kinds),
            servers: self.servers.clone(),
            star: Arc::clone(star),
        }))
    }
}
