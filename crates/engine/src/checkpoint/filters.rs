//! Which threads to list, and which ones a worker looks for.

use std::time::Duration;

use chrono::{DateTime, Utc};

use super::ThreadStatus;
use crate::ids::ThreadId;

/// Which threads to list.
#[derive(Clone, Debug, Default)]
pub struct ThreadFilter {
    /// Only threads with this status, by [`ThreadInfo::overall_status`](super::ThreadInfo::overall_status).
    pub status: Option<ThreadStatus>,
    /// Also list subgraphs' threads.
    pub with_children: bool,
    /// Only the subgraphs' threads under this one, which is at the top.
    pub root: Option<ThreadId>,
    /// Only threads not updated since.
    pub updated_before: Option<DateTime<Utc>>,
    /// At most this many, newest update first.
    pub limit: Option<u32>,
}

/// Which threads a worker looks for.
#[derive(Clone, Debug)]
pub struct WorkFilter {
    /// Name of the graph that it runs.
    pub graph: String,
    /// A tenant whose threads are skipped.
    pub except_tenant: Option<String>,
    /// How the names of holders on its own machine are marked; of these it knows whether they live.
    pub machine: String,
    /// Only threads that have been queued for at least this duration.
    pub queued_for: Duration,
    /// At most this many, longest waiting first.
    pub limit: u32,
    /// How many threads to skip, because they were checked before.
    pub skip: u32,
}

/// A thread that can continue, according to the store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Waiting {
    /// The thread.
    pub thread: ThreadId,
    /// The holder of an active lease: the thread can continue only if this holder is dead.
    pub holder: Option<String>,
}
