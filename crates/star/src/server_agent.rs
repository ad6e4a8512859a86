//! An agent bound to one MCP server: its node finds out how the agent works, and has it work (S1.06, S1.09).

use std::sync::Arc;

use async_trait::async_trait;

use super::agent::{Agent, AgentCard};
use super::assignment::Assignment;
use super::kind::{Job, Kinds, TOOLS};
use super::parts::StarParts;
use super::report::reported;
use super::seen;
use super::state::GraphState;
use perihelion_engine::graph::{Context, Node, NodeEntry, NodeError, NodeOutput};
use perihelion_mcp::{self as mcp, AgentBinding, ServerInfo};

/// The agent that is made of a server.
pub struct ServerAgent {
    card: AgentCard,
    server: Arc<ServerInfo>,
    kinds: Arc<Kinds>,
}

impl ServerAgent {
    /// Makes the agent of a server; `kinds` know how it works.
    pub fn new(server: ServerInfo, kinds: &Arc<Kinds>) -> Self {
        Self::named(mcp::agent_name(&server.name), server, kinds)
    }

    /// Makes an agent of another name than its server's.
    pub(super) fn named(name: String, mut server: ServerInfo, kinds: &Arc<Kinds>) -> Self {
        let bound = kinds.bind(&server);
        let kind = bound.kind.name().to_owned();
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

/// The node of such an agent.
struct ServerNode {
    name: String,
    server: Arc<ServerInfo>,
    kinds: Arc<Kinds>,
    star: Arc<StarParts>,
}

#[async_trait]
impl Node<GraphState> for ServerNode {
    async fn run(&self, ctx: Context<GraphState>) -> Result<NodeOutput<GraphState>, NodeError> {
        let server = Arc::new(ctx.observe(seen::SERVER, &*self.server).await?);
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
