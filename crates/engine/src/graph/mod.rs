//! The pure heart: typed state, nodes, routes, and the engine that decides what happens next.
//!
//! Enter at [`GraphBuilder`] to declare a graph and at [`Engine`] to see how one is driven. Invariant: this module
//! performs no I/O, reads no clock and spawns no task. The engine turns events into commands, so a run can be tested by
//! value and simulated from a seed. Deliberately absent: models, tools, storage, and any knowledge of what nodes do.

mod blob;
mod builder;
mod declare;
mod engine;
mod event;
mod exchange;
mod frontier;
mod merge;
mod node;
mod port;
mod reducer;
mod retry;
mod stages;
mod typed;

pub use blob::{Blob, BlobName, BlobText, Blobs, KEPT_ABOVE};
pub use builder::{BuildError, Edge, Graph, GraphBuilder, NodeEntry, Resolver};
pub use engine::Engine;
pub(crate) use event::join_pieces;
pub use event::{EndStatus, RunEvent, StreamMode};
pub use exchange::{Command, EngineError, Event, Limits, NodeRun, Nodes, Pauses, Position, Wants};
pub use frontier::{Frontier, StoredWrite, Target, Task, Written};
pub use merge::{Finished, Merged, merge};
pub(crate) use node::Result;
pub use node::{
    Context, Interrupt, Node, NodeError, NodeLocation, NodeOutput, TaskContext, step_at_the_top,
    subgraph_namespace, subgraph_step,
};
pub use port::{EffectClass, EffectFailure, EffectRequest, Outcome, Perform, Port, Request};
pub use reducer::{Append, Merge, Reducer, State, Update};
pub use retry::RetryPolicy;
pub use stages::{StageError, stages};
pub use typed::{EffectError, node_fn, node_with, try_node_fn};

/// Any error, as the reason of another one.
pub type Cause = Box<dyn std::error::Error + Send + Sync>;

/// The rest of a graph's vocabulary for users: an append-only list whose clone is cheap at any length.
pub type Log<T> = rpds::VectorSync<T>;

/// A dictionary whose clone is cheap at any size.
pub type Dict<V> = rpds::RedBlackTreeMapSync<String, V>;

/// The name under which a node that ends the run is written in routes.
pub const END: &str = "__end__";
