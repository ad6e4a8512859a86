//! Ready nodes for graphs of one's own: a model call, a tool call, an agent that calls tools until it can answer, an
//! approval.
//!
//! Enter at [`model_call`], [`tool_call`], [`React`] and [`approval`]. Invariant: whatever they send goes through the
//! node's context, so that it happens once and is read back after a crash. Deliberately absent: the star, its prompts
//! and its state; each node is told by functions of the caller's state what to ask and where to write.

mod calls;
mod react;

pub use calls::{Verdict, approval, model_call, tool_call};
pub use react::{Answered, React};
