//! The subgraphs' threads of a thread: each has an id that follows from its place.

use std::collections::BTreeSet;

use super::{Error, ThreadDump};
use crate::graph::subgraph_namespace;
use crate::ids::ThreadId;

/// Lists the ids that subgraphs of a thread and of its children would have, and that are not in the dump.
///
/// A row that says that it is another thread's is found by these, at a cost that depends on this thread alone. Steps
/// that are encrypted name no nodes; the one who can read them looks.
pub(super) fn places(dump: &ThreadDump) -> BTreeSet<ThreadId> {
    let mut places = BTreeSet::new();
    let members = || std::iter::once(dump).chain(&dump.children);
    for one in members() {
        let mut add = |step: u64, task: usize, node: &str| {
            let task = u32::try_from(task).unwrap_or(u32::MAX);
            let namespace = subgraph_namespace(&one.info.namespace, node, step, task);
            places.insert(one.info.id.child(&namespace));
        };
        for row in &one.steps {
            for (task, next) in row.frontier().unwrap_or_default().tasks.iter().enumerate() {
                add(row.seq + 1, task, &next.node);
            }
        }
        // What led to the first step that is kept was dropped: its own writes name its nodes.
        if let Some(row) = one.steps.first() {
            for (task, written) in row.written().unwrap_or_default().iter().enumerate() {
                add(row.seq, task, &written.node);
            }
        }
    }
    for one in members() {
        places.remove(&one.info.id);
    }
    places
}

/// Refuses a thread of which a subgraph's thread says that it is another thread's.
pub(super) fn stray(dump: &ThreadDump, child: ThreadId) -> Error {
    let reason = format!("its subgraph's thread {child} says that it is another thread's");
    Error::Corrupt { thread: dump.info.id, seq: dump.info.head, reason }
}
