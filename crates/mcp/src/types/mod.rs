//! The words of a tool exchange: servers, tools, calls, outcomes, and the trait that performs them.
//!
//! Enter at [`ToolHost`]. Invariant: values alone, which mean the same in a process that never saw the server.
//! Deliberately absent: files, processes, networks.

mod error;
mod exchange;
pub(super) mod schema;
mod schema_cost;
pub(super) mod schema_repair;
mod server;
pub(super) mod text;
mod tool;

pub(crate) use error::Result;
pub use error::{Error, Reason};
pub use exchange::{
    Answers, Asked, CONTEXT_META, CallContext, CallRound, Progress, Question, Reply, TENANT_META,
    TaskHandle, ToolHost, ToolOutcome, Via, Wants, accepted, declined,
};
pub use schema::{InputSchema, InvalidArguments, Mismatch, Unusable as UnusableSchema};
pub use schema_cost::Unbounded as UnboundedSchema;
pub use server::{AgentBinding, Knowledge, Phase, ServerInfo, ServerState, ServerStatus};
pub use text::digest;
pub(super) use text::sorted;
pub use tool::{CallPolicy, ToolAnnotations, ToolDefinition};
