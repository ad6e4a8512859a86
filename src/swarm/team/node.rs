//! The node of a team: a star of its own, run as a subgraph.

use std::sync::{Arc, Weak};

use async_trait::async_trait;

use super::agent::TeamAgent;
use super::design::{MAX_DEPTH, Team, TeamDesign};
use super::outcome::report_of;
use crate::clock;
use crate::graph::{Context, Limits, Node, NodeError, NodeOutput};
use crate::mcp;
use crate::metrics::{self, Timer};
use crate::runner::Subgraph;
use crate::swarm::agent::Agent;
use crate::swarm::assignment::Assignment;
use crate::swarm::event::AgentEvent;
use crate::swarm::kind::Kinds;
use crate::swarm::parts::StarParts;
use crate::swarm::report::{Report, Reported};
use crate::swarm::result::{AgentError, ErrorKind};
use crate::swarm::roster::Roster;
use crate::swarm::server_agent::ServerAgent;
use crate::swarm::star;
use crate::swarm::state::{GraphState, GraphUpdate, Preferences};
use crate::swarm::{Allowance, remaining, seen};

/// Steps beyond its own bound that the engine lets a team take: it ends itself at the bound.
const SPARE_STEPS: u64 = 8;

/// Where a team's agents find their servers.
#[derive(Clone)]
pub(super) enum Servers {
    /// Among those that the star's own agents are bound to.
    Of(Weak<Roster>),
    /// Nowhere: every node sees what the recorded one saw.
    Recorded,
}

/// The node of a team.
pub(super) struct TeamNode {
    pub name: String,
    pub team: Arc<Team>,
    pub kinds: Arc<Kinds>,
    pub servers: Servers,
    pub star: Arc<StarParts>,
}

#[async_trait]
impl Node<GraphState> for TeamNode {
    async fn run(&self, ctx: Context<GraphState>) -> Result<NodeOutput<GraphState>, NodeError> {
        // Noted, so that work which has begun ends as the version that it began with.
        let own = self.own_team(&ctx.place().tenant);
        let team: Team = ctx.observe_first(seen::TEAM, &*own).await?;
        let assignment: Assignment = ctx.input()?;
        let (timer, began) = (Timer::start(), clock::monotonic());
        let report = self.work(&ctx, &team.design, &assignment).await?;
        let took = u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX);
        let latency_ms = ctx.observe_unless(seen::LATENCY, &0, &took).await?;
        if !ctx.port().is_replay() {
            let class = report.error.as_ref().map(|_| "agent_error");
            metrics::agent_worked(timer, &self.name, class);
        }
        AgentEvent::AgentResult {
            agent: self.name.clone(),
            reflection: report.reflection.clone(),
            error: report.error.as_ref().map(ToString::to_string),
            not_mine: false,
            usage: report.spent.usage,
        }
        .publish(&ctx);
        let (state, index, agent) = (ctx.state(), ctx.place().task, self.name.as_str());
        let of = Reported { state, index, agent, server: "", assignment, latency_ms };
        Ok(NodeOutput::update(report.into_update(of)))
    }
}

impl TeamNode {
    /// Returns the team of this name that the thread's tenant has; one without agents where it has none.
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
    ) -> Result<Report, NodeError> {
        let (tenant, disabled) = (&ctx.place().tenant, &ctx.state().preferences.disable);
        let roster = Arc::new(self.roster(design, tenant, disabled));
        let is_alone = matches!(self.servers, Servers::Of(_)) && roster.names("").is_empty();
        if ctx.observe_unless(seen::ALONE, &false, &is_alone).await? {
            return Ok(nobody(design));
        }
        // Each was saved when it was not too deep, but two may have been at the same time.
        if self.star.depth >= MAX_DEPTH {
            return Ok(too_deep());
        }
        let parts = Arc::new(self.star.of_team(ctx.place(), ctx.state(), &roster));
        let graph = star::graph(&self.name, &parts, &roster)
            .map_err(|error| NodeError::failed("team", error.to_string()))?;
        let limits =
            Limits { max_steps: parts.limits.max_steps + SPARE_STEPS, ..Limits::default() };
        let now = ctx.port().unrecorded_now_micros();
        let now = now.unwrap_or_else(|| clock::now().timestamp_micros());
        let allowance = remaining::for_team(ctx.state(), &self.star.limits, ctx.place(), now);
        // It is a part of what the team begins with, so it stays what it was whenever the work goes on.
        let opening = opening_of(ctx.state(), assignment, allowance);
        let subgraph = Subgraph::<GraphState, GraphState>::new(
            self.star.home.runner(graph),
            move |_| Ok(opening.clone()),
            |_, _| Err(NodeError::failed("team", "a team's end is read, not merged")),
        );
        let end = subgraph.limits(limits).run_to_end(ctx).await;
        let end = end.map_err(|error| asked_by(&self.name, error))?;
        let child = ctx.place().thread.child(&ctx.place().subgraph());
        let info = self.star.home.store.info(child).await;
        let info = info.map_err(|error| NodeError::failed("team", error.to_string()))?;
        let mut report = report_of(&end, assignment);
        report.spent.steps += info.head;
        Ok(report)
    }

    /// Returns the agents of the team whose servers are there and may be used.
    fn roster(&self, design: &TeamDesign, tenant: &str, disabled: &[String]) -> Roster {
        let Servers::Of(servers) = &self.servers else {
            return Roster::of_any(Arc::clone(&self.kinds));
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
                    let (team, own) = (Team::clone(team), self.servers.clone());
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

/// Returns what a team begins with: its task as the request, and where the task's words come from.
fn opening_of(state: &GraphState, assignment: &Assignment, allowance: Allowance) -> GraphUpdate {
    let mut request = assignment.described();
    for upstream in &assignment.dependency_outputs {
        let (agent, task, output) = (&upstream.agent, &upstream.task, &upstream.output);
        request.push_str(&format!("\n\nWhat {agent} found for \"{task}\":\n{output}"));
    }
    let tainted_by = assignment.tainted_by.clone();
    let Preferences { skip_approvals, interactive, .. } = state.preferences;
    // Its own agents have other names; teams within it keep off the same ones.
    let disable = state.preferences.disable.clone();
    let preferences = Preferences {
        disable,
        tainted_by,
        skip_approvals,
        interactive,
        allowance: Some(allowance),
        ..Preferences::default()
    };
    let update = GraphUpdate::new()
        .input_request(request)
        .request_context(state.request_context.clone())
        .preferences(preferences);
    match &state.user {
        Some(user) => update.user(Some(user.clone())),
        None => update,
    }
}

/// Says that none of a team's agents can work.
fn nobody(design: &TeamDesign) -> Report {
    if design.agents.is_empty() {
        let gone = "there is no team of this name any longer; create or import it again";
        let error = Some(AgentError::new(ErrorKind::Configuration, gone));
        return Report { error, ..Report::default() };
    }
    let mut servers: Vec<&str> =
        design.agents.iter().flat_map(|agent| &agent.servers).map(String::as_str).collect();
    servers.sort_unstable();
    servers.dedup();
    let message =
        format!("none of the team's servers is there or may be used: {}", servers.join(", "));
    let error = Some(AgentError::new(ErrorKind::Configuration, message));
    Report { error, ..Report::default() }
}

/// Says that teams stand within each other too deep.
fn too_deep() -> Report {
    let message =
        format!("teams stand at most {MAX_DEPTH} deep within each other; change one of them");
    let error = Some(AgentError::new(ErrorKind::Configuration, message));
    Report { error, ..Report::default() }
}

/// Lets questions of a team's agents be the team's, by whose name the star knows it.
fn asked_by(team: &str, error: NodeError) -> NodeError {
    match error {
        NodeError::Interrupted(mut open) => {
            for question in &mut open {
                question.node = team.to_owned();
            }
            NodeError::Interrupted(open)
        }
        other => other,
    }
}
