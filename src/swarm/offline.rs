//! Neither model nor servers: what a replay is given, which reads everything from the journal.

use async_trait::async_trait;

use crate::llm::{self, ChatModel, ChatRequest, ChatResponse, TokenSink};
use crate::mcp::{self, CallContext, CallRound, Reply, ServerStatus, ToolHost};

/// Performs nothing: no call, no scan.
pub(super) struct Offline;

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
