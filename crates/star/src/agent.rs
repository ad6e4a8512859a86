//! The seam at which agents are plugged in, and the agent that is bound to one MCP server (S1.06, S1.09, S3.12).

use std::sync::Arc;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};

use crate::{
    Assignment, GraphState, Job, Kinds, Result, StarParts, TOOLS, Team, report::reported, seen,
};
use perihelion_engine::graph::{Context, Node, NodeEntry, NodeOutput};
use perihelion_mcp::{self as mcp, AgentBinding, ServerInfo, ToolDefinition};

#[derive(Clone, Debug, Default, PartialEq)]
pub struct AgentCard {
    /// The name by which the supervisor chooses it, and of its node.
    pub name: String,
    /// How it works, such as `tools` or `analyst`.
    pub kind: String,
    /// Its purpose, in a sentence or two; the text that is searched if there are many agents.
    pub capabilities: String,
    pub tools: Vec<ToolDefinition>,
    /// Its author can be any server, except the operator's words in `capabilities`.
    pub open_world: bool,
    /// A note for the operator about how it works, such as a fallback.
    pub notice: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SpanKind {
    /// Decides how the run continues.
    Transition,
    Agent,
    Stage,
}

pub trait Agent: Send + Sync {
    fn card(&self) -> &AgentCard;

    /// Returns its line in the agent catalog, without its name; the tools with these numbers come first.
    fn menu_line(&self, first: &[usize]) -> String;

    fn server(&self) -> Option<&Arc<ServerInfo>> {
        None
    }

    fn team(&self) -> Option<&Arc<Team>> {
        None
    }

    /// Returns its node: the input is an [`Assignment`](super::Assignment), the update has the result.
    fn node(&self, star: &Arc<StarParts>) -> NodeEntry<GraphState>;
}

pub struct ServerAgent {
    card: AgentCard,
    server: Arc<ServerInfo>,
    kinds: Arc<Kinds>,
}

impl ServerAgent {
    pub fn new(server: ServerInfo, kinds: &Arc<Kinds>) -> Self {
        Self::named(mcp::agent_name(&server.name), server, kinds)
    }

    /// Makes an agent of another name than its server's.
    pub(super) fn named(name: String, mut server: ServerInfo, kinds: &Arc<Kinds>) -> Self {
        let bound = kinds.bind(&server);
        let kind = bound.kind.card().name.to_owned();
        if kind != TOOLS || server.agent != AgentBinding::default() {
            // Noted with the run: a replay works as the agent did then, whatever its kind is by default later.
            server.agent.kind = Some(kind.clone());
        }
        let card = AgentCard {
            name,
            kind,
            capabilities: server.description.clone(),
            tools: server.tools.clone(),
            open_world: server.open_world,
            notice: bound.notice,
        };
        Self { card, server: Arc::new(server), kinds: Arc::clone(kinds) }
    }
}

impl Agent for ServerAgent {
    fn card(&self) -> &AgentCard {
        &self.card
    }

    fn menu_line(&self, first: &[usize]) -> String {
        let line = mcp::menu_line(&self.server, first);
        let name = format!("{}:", mcp::agent_name(&self.server.name));
        line.strip_prefix(&name).map_or(line.as_str(), str::trim).to_owned()
    }

    fn server(&self) -> Option<&Arc<ServerInfo>> {
        Some(&self.server)
    }

    fn node(&self, star: &Arc<StarParts>) -> NodeEntry<GraphState> {
        NodeEntry::new(Arc::new(ServerNode {
            name: self.card.name.clone(),
            server: Arc::clone(&self.server),
            kinds: Arc::clone(&self.kinds),
            star: Arc::clone(star),
        }))
    }
}

struct ServerNode {
    name: String,
    server: Arc<ServerInfo>,
    kinds: Arc<Kinds>,
    star: Arc<StarParts>,
}

#[async_trait]
impl Node<GraphState> for ServerNode {
    async fn run(&self, ctx: Context<GraphState>) -> Result<NodeOutput<GraphState>> {
        // Noted, so that a question is decided by its answer, whatever the servers file says by then.
        let server = Arc::new(ctx.observe_first(seen::SERVER, &*self.server).await?);
        let assignment: Assignment = ctx.input()?;
        let bound = self.kinds.bind(&server);
        let job = Job {
            ctx: ctx.clone(),
            star: Arc::clone(&self.star),
            agent: self.name.clone(),
            server: Arc::clone(&server),
            assignment: assignment.clone(),
            tools: bound.tools,
        };
        reported(&ctx, &self.name, &server.name, &assignment, bound.kind.work(job)).await
    }
}
