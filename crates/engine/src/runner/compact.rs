//! Shortens a thread: its older steps become one snapshot.

use super::snapshots::snapshot_of;
use crate::checkpoint::{Error, Store, restore};
use crate::graph::State;
use crate::ids::ThreadId;

/// Drops all but the newest `keep` steps of a thread; returns the first step that is kept.
///
/// The newest step always stays: only its row says what runs next.
///
/// What the dropped steps wrote lives on in a snapshot, which is durable before anything is dropped:
/// a crash in between leaves the thread whole. `None` when no more than `keep` are there. A run
/// under way is not disturbed, since it only writes behind the head.
///
/// # Errors
/// As [`restore`], [`Steps::put_snapshot`](crate::checkpoint::Steps::put_snapshot) and
/// [`Threads::truncate`](crate::checkpoint::Threads::truncate).
pub async fn compact<S: State>(
    store: &dyn Store,
    thread: ThreadId,
    keep: u64,
) -> Result<Option<u64>, Error> {
    let head = store.info(thread).await?.head;
    let seq = head.saturating_sub(keep.max(1));
    // An earlier call may have kept fewer: then there is nothing left to drop, and no state to restore.
    if seq == 0 || store.history(thread, Some(seq + 1), 1).await?.is_empty() {
        return Ok(None);
    }
    keep_snapshot::<S>(store, thread, seq).await?;
    let mut last = seq;
    loop {
        match store.truncate(thread, seq).await {
            Ok(()) => return Ok(Some(seq + 1)),
            // Its process ended between the step and the snapshot, or is there now.
            Err(Error::BareReturn { seq: bare, .. }) if bare > last => {
                keep_snapshot::<S>(store, thread, bare).await?;
                last = bare;
            }
            Err(error) => return Err(error),
        }
    }
}

/// Restores a thread at a step and keeps that as a snapshot.
async fn keep_snapshot<S: State>(
    store: &dyn Store,
    thread: ThreadId,
    seq: u64,
) -> Result<(), Error> {
    let restored = restore::<S>(store, thread, Some(seq)).await?;
    let expected = restored.snapshot_size + restored.since_snapshot;
    let (snapshot, _) = snapshot_of(&*restored.state, seq, store.compress_above(), expected)?;
    store.put_snapshot(thread, &snapshot).await
}
