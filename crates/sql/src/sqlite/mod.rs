//! SQLite, opened so that it cannot write: read-only file, `query_only`, authorizer, limits, deadline.
//!
//! This module runs in a worker process (see [`worker`](crate::worker)). Invariant: the authorizer refuses hidden
//! tables whether or not the guard was there.

mod authorizer;
mod functions;
mod names;
mod percentile;
mod reader;
mod sources;

pub use authorizer::contain_process;
pub use reader::Reader;
