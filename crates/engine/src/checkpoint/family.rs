//! The subgraphs' threads of a thread: each has an id that follows from its place.

use std::collections::BTreeMap;

use super::{Error, Result, StepRow, ThreadDump, ThreadInfo, Threads};
use crate::graph::subgraph_namespace;
use crate::ids::ThreadId;

type Member<'a> = (&'a ThreadInfo, &'a [StepRow]);

/// Lists the threads of a dump, the one at the top first.
pub(super) fn members(dump: &ThreadDump) -> Vec<Member<'_>> {
    dump.family().map(|one| (&one.info, &*one.steps)).collect()
}

/// Lists the ids and places that subgraphs of these threads would have, and that are none of them.
///
/// A row that says that it is another thread's is found by these, at a cost that depends on this thread alone.
/// Encrypted steps name no nodes; only a reader with the key can check them.
///
/// # Errors
/// [`Error::Corrupt`] where one of the threads names another place than its own.
fn places(members: &[Member<'_>]) -> Result<BTreeMap<ThreadId, String>> {
    let mut places = BTreeMap::new();
    for (info, steps) in members {
        let mut add = |step: u64, task: usize, node: &str| {
            let task = u32::try_from(task).unwrap_or(u32::MAX);
            let namespace = subgraph_namespace(&info.namespace, node, step, task);
            places.insert(info.id.child(&namespace), namespace);
        };
        for row in *steps {
            for (task, next) in row.frontier().unwrap_or_default().tasks.iter().enumerate() {
                add(row.seq + 1, task, &next.node);
            }
        }
        // What led to the first step that is kept was dropped: its own writes name its nodes.
        if let Some(row) = steps.first() {
            for (task, written) in row.written().unwrap_or_default().iter().enumerate() {
                add(row.seq, task, &written.node);
            }
        }
    }
    let is_elsewhere = |(info, _): &&Member<'_>| {
        places.remove(&info.id).is_some_and(|place| place != info.namespace)
    };
    match (members.iter().find(is_elsewhere), members.first()) {
        (Some((child, _)), Some((top, _))) => Err(stray(top, child.id)),
        _ => Ok(places),
    }
}

/// Checks that the threads of the subgraphs that these steps ran are all among these, with their places.
///
/// # Errors
/// [`Error::Corrupt`] where a thread names another root or place than its own.
pub async fn check_family(
    store: &(impl Threads + ?Sized),
    members: &[(&ThreadInfo, &[StepRow])],
) -> Result<()> {
    let Some((top, _)) = members.first() else { return Ok(()) };
    for (id, place) in places(members)? {
        match store.info(id).await {
            Err(Error::UnknownThread(_)) => {}
            // Made since the others were read, or by a step that is not among these.
            Ok(found) if found.namespace == place && found.root == Some(top.top()) => {}
            found => return Err(stray(top, found?.id)),
        }
    }
    Ok(())
}

/// Checks that a dump has one thread at the top, and that all others have the ids that follow from their places below it:
/// an import adds nothing to a thread that is not in the file.
///
/// # Errors
/// [`Error::Import`].
pub(super) fn check_import(dump: &ThreadDump) -> Result<()> {
    let top = &dump.info;
    let is_below = |child: &ThreadInfo| {
        let separators = child.namespace.match_indices('|').map(|(at, _)| at);
        let places = separators.chain([child.namespace.len()]).map(|end| &child.namespace[..end]);
        let id = places.fold(top.id, |above, place| above.child(place));
        child.root == Some(top.id) && !child.namespace.is_empty() && child.id == id
    };
    let is_top = top.root.is_none() && top.namespace.is_empty();
    let mut infos = dump.children.iter().map(|child| &child.info);
    let stray = if is_top { infos.find(|child| !is_below(child)) } else { Some(top) };
    stray.map_or(Ok(()), |stray| {
        let reason = "says that it is a subgraph of a thread that is not in the file";
        Err(Error::Import(format!("the thread {} {reason}", stray.id)))
    })
}

/// Refuses a thread of which a subgraph's thread is not where it says that it is.
fn stray(top: &ThreadInfo, child: ThreadId) -> Error {
    let reason = format!("its subgraph's thread {child} says that it is at another place");
    Error::corrupt(top.id, top.head, reason)
}
