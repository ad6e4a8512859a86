//! The star of a replay: without model and servers, with an agent under every name; it reads everything from the
//! journal.

use std::sync::Arc;

use async_trait::async_trait;

use crate::{
    ARCHITECT, Architect, Kinds, Roster, ServerAgent, Star, StarOptions, TEAM_PREFIX, TeamAgent,
    roster::RecordedAgents,
};
use perihelion_engine::graph::BuildError;
use perihelion_llm::{self as llm, ChatModel, ChatRequest, ChatResponse, TokenSink};
use perihelion_mcp::{
    self as mcp, CallContext, CallRound, Reply, ServerInfo, ServerStatus, ToolHost,
};

impl Star {
    /// Assembles the graph for replays: no model, no servers, an agent of one of the kinds under every name.
    pub fn offline(kinds: Arc<Kinds>, options: StarOptions) -> Result<Self, BuildError> {
        let (model, tools) = offline_parts();
        let roster = Roster::of_recorded(recorded(kinds));
        Self::new(Arc::new(roster), options, model, tools, None)
    }
}

/// Returns a model and servers that perform no calls, for graphs whose threads are read and replayed.
pub fn offline_parts() -> (Arc<dyn ChatModel>, Arc<dyn ToolHost>) {
    let nothing = Arc::new(Offline);
    (Arc::clone(&nothing) as _, nothing)
}

/// Makes agents of these kinds without their servers.
fn recorded(kinds: Arc<Kinds>) -> RecordedAgents {
    Arc::new(move |name| {
        if name == ARCHITECT {
            return Arc::new(Architect::default());
        }
        if name.starts_with(TEAM_PREFIX) {
            let agents = recorded(Arc::clone(&kinds));
            return Arc::new(TeamAgent::recorded(name.to_owned(), &kinds, agents));
        }
        let nothing = ServerInfo { name: name.to_owned(), ..ServerInfo::default() };
        Arc::new(ServerAgent::named(name.to_owned(), nothing, &kinds))
    })
}

/// Performs no call and no scan.
struct Offline;

#[async_trait]
impl ChatModel for Offline {
    async fn chat(
        &self,
        _: &ChatRequest,
        _: Option<TokenSink<'_>>,
    ) -> Result<ChatResponse, llm::Error> {
        Err(llm::Error::NotConfigured)
    }
}

#[async_trait]
impl ToolHost for Offline {
    async fn scan(&self) -> Vec<ServerStatus> {
        Vec::new()
    }

    async fn exchange(
        &self,
        server: &str,
        _: &str,
        _: CallRound,
        _: CallContext,
    ) -> Result<Reply, mcp::Error> {
        Err(mcp::Error::UnknownServer(server.to_owned()))
    }

    async fn close(&self) {}
}
