//! Ready-made nodes for your own graphs: a model call, a tool call, an agent that calls tools until it can answer, an
//! approval.
//!
//! Enter at [`model_call`], [`tool_call`], [`React`] and [`approval`]. Invariant: all requests go through the node's
//! context, so they happen once and are read back after a crash. Deliberately absent: the star, its prompts and its
//! state; functions of the caller's state provide the request and the update.

mod calls;
mod react;

pub use calls::{Verdict, approval, model_call, tool_call};
pub use react::{Answered, React};
