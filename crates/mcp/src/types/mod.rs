//! The words of a tool exchange: servers, tools, calls, outcomes, and the trait that performs them.
//!
//! Enter at [`ToolHost`]. Invariant: values alone, which mean the same in a process that never saw the server.
//! Deliberately absent: files, processes, networks.

mod call;
mod call_policy;
mod canonical;
mod error;
mod exchange;
mod host;
mod input_schema;
mod phase;
pub(super) mod schema;
mod schema_cost;
pub(super) mod schema_repair;
mod server;
pub(super) mod text;
mod tool;

pub use call::{CallContext, Progress, TENANT_META, ToolOutcome, Via};
pub use call_policy::CallPolicy;
pub use canonical::digest;
pub(super) use canonical::sorted;
pub use error::{Error, Reason};
pub use exchange::{
    Answers, Asked, CallRound, Question, Reply, TaskHandle, Wants, accepted, declined,
};
pub use host::ToolHost;
pub use input_schema::{InputSchema, InvalidArguments};
pub use phase::{Phase, ServerState};
pub use schema::{Mismatch, Unusable as UnusableSchema};
pub use schema_cost::Unbounded as UnboundedSchema;
pub use server::{AgentBinding, Knowledge, ServerInfo, ServerStatus};
pub use tool::{ToolAnnotations, ToolDefinition, validate_arguments};
