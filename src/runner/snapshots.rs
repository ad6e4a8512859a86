//! Writes snapshots beside the run: when the deltas since the last one outweigh it.

use std::sync::Arc;

use tokio::task::JoinHandle;

use crate::checkpoint::{Encoded, Error, SnapshotRow, Store};
use crate::graph::State;
use crate::ids::ThreadId;

/// Below this many bytes of deltas a snapshot saves nothing.
const SMALLEST: usize = 64 * 1024;

/// Decides when a snapshot is due and writes it in the background; no step waits for one.
#[derive(Debug)]
pub(super) struct Snapshots {
    thread: ThreadId,
    last_size: usize,
    since: usize,
    writing: Option<JoinHandle<Result<usize, Error>>>,
}

impl Snapshots {
    pub(super) fn new(thread: ThreadId, last_size: usize, since: usize) -> Self {
        Self { thread, last_size, since, writing: None }
    }

    /// Takes note of a committed step and starts a snapshot where one is due.
    pub(super) fn committed<S: State>(
        &mut self,
        store: &Arc<dyn Store>,
        seq: u64,
        delta: usize,
        state: &Arc<S>,
    ) {
        self.since += delta;
        if self.since < self.last_size.max(SMALLEST)
            || self.writing.as_ref().is_some_and(|task| !task.is_finished())
        {
            return;
        }
        self.last_size += self.since;
        self.since = 0;
        let (store, thread, state) = (Arc::clone(store), self.thread, Arc::clone(state));
        self.writing = Some(tokio::spawn(async move {
            let encoded =
                tokio::task::spawn_blocking(move || Encoded::json_streamed(&*state)).await;
            let (state, size) = encoded.map_err(|error| Error::Damaged(error.to_string()))??;
            store
                .put_snapshot(
                    thread,
                    &SnapshotRow { seq, schema_version: S::SCHEMA_VERSION, state },
                )
                .await?;
            Ok(size)
        }));
    }

    /// Waits for a snapshot under way; a failure only costs reading time later.
    pub(super) async fn finish(self) {
        let Some(task) = self.writing else { return };
        match task.await {
            Ok(Ok(_)) => {}
            Ok(Err(error)) => {
                tracing::warn!(thread = %self.thread, %error, "a snapshot could not be written")
            }
            Err(error) => {
                tracing::warn!(thread = %self.thread, %error, "a snapshot was broken off")
            }
        }
    }
}
