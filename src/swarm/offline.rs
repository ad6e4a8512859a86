//! Neither model nor servers: what a replay is given, which reads everything from the journal.

use async_trait::async_trait;
use serde_json::{Map, Value};

use crate::llm::{self, ChatModel, ChatRequest, ChatResponse, TokenSink};
use crate::mcp::{self, CallContext, ServerStatus, ToolHost, ToolOutcome};

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

    async fn call(
        &self,
        server: &str,
        _: &str,
        _: Map<String, Value>,
        _: CallContext,
    ) -> Result<ToolOutcome, mcp::Error> {
        Err(mcp::Error::UnknownServer(server.to_owned()))
    }

    async fn close(&self) {}
}
