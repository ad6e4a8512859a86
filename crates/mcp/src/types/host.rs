//! What performs tool calls.

use async_trait::async_trait;
use serde_json::{Map, Value};

use super::call::{CallContext, ToolOutcome};
use super::call_policy::CallPolicy;
use super::error::Error;
use super::exchange::{CallRound, Reply};
use super::server::ServerStatus;

/// Performs tool calls on the configured servers.
#[async_trait]
pub trait ToolHost: Send + Sync {
    /// Returns the servers that could be scanned and those that could not, in the file's order.
    async fn scan(&self) -> Vec<ServerStatus>;

    /// Goes one round of a call, once; never retries a call that may have run.
    ///
    /// # Errors
    /// [`Error::NotSent`] and the like when the call certainly did not run; [`Error::Unknown`] when it may have.
    async fn exchange(
        &self,
        server: &str,
        tool: &str,
        round: CallRound,
        context: CallContext,
    ) -> Result<Reply, Error>;

    /// Calls a tool that neither asks nor becomes a task; one that does is an error.
    ///
    /// # Errors
    /// As [`ToolHost::exchange`].
    async fn call(
        &self,
        server: &str,
        tool: &str,
        arguments: Map<String, Value>,
        context: CallContext,
    ) -> Result<ToolOutcome, Error> {
        let unknown = |reason: &str| Error::Unknown {
            server: server.to_owned(),
            tool: tool.to_owned(),
            reason: reason.into(),
        };
        match self.exchange(server, tool, CallRound::first(arguments), context).await? {
            Reply::Done(outcome) => Ok(outcome),
            Reply::Asked { .. } => {
                Err(unknown("the server asked for input, which this caller cannot give"))
            }
            Reply::Task { .. } => {
                Err(unknown("the server made a task of it, which this caller cannot follow"))
            }
        }
    }

    /// Says why calls of a server are refused for now, if they are: its circuit breaker is open.
    ///
    /// It stands in the prompts of every thread, so nothing in it may be what a server wrote.
    fn failure(&self, _server: &str) -> Option<String> {
        None
    }

    /// Returns what surrounds the calls of a tool now, as far as that is known without asking its server.
    fn call_policy(&self, _server: &str, _tool: &str) -> Option<CallPolicy> {
        None
    }

    /// Returns how many calls of one answer the server is given at a time; more than that would only wait.
    fn at_once(&self, _server: &str) -> usize {
        1
    }

    /// Closes every session and ends every child process, in parallel.
    async fn close(&self);
}
