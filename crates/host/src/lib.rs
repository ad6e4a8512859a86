//! LangGraph graphs, run by a child process in their Python environment.
//!
//! Enter at [`open`], which reads a `langgraph.json`, starts its child and returns its graphs. Each is an engine graph
//! with one node: the child runs one super-step, and the node writes its result. The child stores LangGraph's
//! checkpoints in the same database. Invariant: the child begins a super-step only after the engine has committed the
//! previous one, so the state of the engine is authoritative, and killing the child loses no data. Deliberately absent:
//! the decoding of Python values, and the shapes of any protocol.

mod child;
mod config;
mod dotenv;
mod error;
mod frames;
mod host;
mod node;
mod reload;
mod served;
mod state;

pub use error::Error;
pub use host::{Hosted, authenticates, open};
