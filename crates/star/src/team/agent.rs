//! A team as an agent of the star: one line in the catalog, one node, which runs its own star as a subgraph.

use std::sync::{Arc, Weak};

use async_trait::async_trait;

use super::design::{MAX_DEPTH, Team, TeamDesign};
use super::outcome::{nobody, opening_of, report_of, too_deep};
use crate::{
    Agent, AgentCard, Assignment, GraphState, Kinds, Report, Result, Roster, ServerAgent,
    StarParts, question, remaining, report::reported, roster::RecordedAgents, seen, star,
};
use perihelion_engine::graph::{Context, Limits, Node, NodeEntry, NodeError, NodeOutput};
use perihelion_engine::runner::Subgraph;
use perihelion_mcp as mcp;

const KIND: &str = "team";

pub struct TeamAgent {
    card: AgentCard,
    team: Arc<Team>,
    kinds: Arc<Kinds>,
    servers: Servers,
}

impl TeamAgent {
    /// Makes the agent of a team whose servers are in a roster; `kinds` define how its agents work.
    pub fn new(team: Team, kinds: &Arc<Kinds>, roster: &Arc<Roster>) -> Self {
        Self::with(team.agent_name(), team, kinds, Servers::Of(Arc::downgrade(roster)))
    }

    /// Makes the agent of a team within another one, for which it has a role and a goal.
    fn within(mut team: Team, about: &str, kinds: &Arc<Kinds>, servers: Servers) -> Self {
        team.design.description = format!("{about} {}", team.design.description);
        Self::with(team.agent_name(), team, kinds, servers)
    }

    pub(crate) fn recorded(name: String, kinds: &Arc<Kinds>, agents: RecordedAgents) -> Self {
        Self::with(name, Team::default(), kinds, Servers::Recorded(agents))
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

/// Steps beyond its own bound that the engine lets a team take: it ends itself at the bound.
const SPARE_STEPS: u64 = 8;

#[derive(Clone)]
enum Servers {
    /// Among the servers of the star's own agents.
    Of(Weak<Roster>),
    /// Nowhere: every node observes what was recorded.
    Recorded(RecordedAgents),
}

struct TeamNode {
    name: String,
    team: Arc<Team>,
    kinds: Arc<Kinds>,
    servers: Servers,
    star: Arc<StarParts>,
}

#[async_trait]
impl Node<GraphState> for TeamNode {
    async fn run(&self, ctx: Context<GraphState>) -> Result<NodeOutput<GraphState>> {
        // Noted, so that work which has begun ends as the version that it began with.
        let own = self.own_team(&ctx.place().tenant);
        let team: Team = ctx.observe_first(seen::TEAM, &*own).await?;
        let assignment: Assignment = ctx.input()?;
        let work = self.work(&ctx, &team.design, &assignment);
        reported(&ctx, &self.name, "", &assignment, work).await
    }
}

impl TeamNode {
    /// Returns the team of this name of the thread's tenant; a team without agents if there is none.
    fn own_team(&self, tenant: &str) -> Arc<Team> {
        let Servers::Of(roster) = &self.servers else { return Arc::clone(&self.team) };
        let found = roster.upgrade().and_then(|roster| roster.find_for(tenant, &self.name));
        found.and_then(|agent| agent.team().cloned()).unwrap_or_default()
    }

    async fn work(
        &self,
        ctx: &Context<GraphState>,
        design: &TeamDesign,
        assignment: &Assignment,
    ) -> Result<Report> {
        let tenant = &ctx.place().tenant;
        let disabled = &ctx.state().preferences.disable;
        let roster = Arc::new(self.roster(design, tenant, disabled));
        let is_alone = matches!(self.servers, Servers::Of(_)) && roster.names("").is_empty();
        if ctx.observe_unless(seen::ALONE, &false, &is_alone).await? {
            return Ok(nobody(design));
        }
        // Each was saved when it was not too deep, but two may have been at the same time.
        if self.star.depth >= MAX_DEPTH {
            return Ok(too_deep());
        }
        let withdraw = Arc::clone(&roster) as _;
        let parts = Arc::new(self.star.of_team(ctx.place(), ctx.state(), withdraw));
        let graph = star::graph(&self.name, &parts, &roster)
            .map_err(|error| NodeError::failed("team", error))?;
        let limits =
            Limits { max_steps: parts.limits.max_steps + SPARE_STEPS, ..Limits::default() };
        let now = ctx.port().unrecorded_now_micros();
        let allowance = remaining::for_team(ctx.state(), &self.star.limits, ctx.place(), now);
        // It is a part of what the team begins with, so it stays what it was whenever the work continues.
        let opening = opening_of(ctx, assignment, allowance).await?;
        let subgraph = Subgraph::<GraphState, GraphState>::new(
            self.star.home.runner(graph),
            move |_| Ok(opening.clone()),
            |_, _| Err(NodeError::failed("team", "a team's end is read, not merged")),
        );
        let end = subgraph.limits(limits).run_to_end(ctx).await;
        let end = end.map_err(|error| question::asked_as(&self.name, error))?;
        let child = ctx.place().thread.child(&ctx.place().subgraph());
        let info = self.star.home.store.info(child).await;
        let info = info.map_err(|error| NodeError::failed("team", error))?;
        let mut report = report_of(&end, assignment);
        report.spent.steps += info.head;
        Ok(report)
    }

    /// Returns the agents of the team whose servers are there and may be used.
    fn roster(&self, design: &TeamDesign, tenant: &str, disabled: &[String]) -> Roster {
        let servers = match &self.servers {
            Servers::Of(servers) => servers,
            Servers::Recorded(agents) => return Roster::of_recorded(Arc::clone(agents)),
        };
        let roster = Roster::default();
        let Some(servers) = servers.upgrade() else { return roster };
        let mut agents: Vec<Arc<dyn Agent>> = Vec::new();
        for member in &design.agents {
            for (name, server) in member.nodes() {
                let bound = mcp::agent_name(server);
                let about = format!("{}. Goal: {}", member.role, member.goal);
                let team = servers.find_for(tenant, server).filter(|_| !disabled.contains(server));
                if let Some(team) = team.as_ref().and_then(|agent| agent.team()) {
                    let team = Team::clone(team);
                    let own = self.servers.clone();
                    agents.push(Arc::new(TeamAgent::within(team, &about, &self.kinds, own)));
                    continue;
                }
                let Some(agent) = servers.find(&bound).filter(|_| !disabled.contains(&bound))
                else {
                    continue;
                };
                let Some(server) = agent.server() else { continue };
                let mut server = mcp::ServerInfo::clone(server);
                server.description = format!("{about} {}", server.description);
                agents.push(Arc::new(ServerAgent::named(name, server, &self.kinds)));
            }
        }
        roster.set(agents);
        roster
    }
}
