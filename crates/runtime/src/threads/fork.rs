//! Forks of threads, and threads that are shortened.

use super::Threads;
use crate::Error;
use perihelion_engine::checkpoint::{self, NewThread, ThreadInfo};
use perihelion_engine::ids::ThreadId;
use perihelion_engine::runner;
use perihelion_star::{GRAPH, GraphState};

impl Threads {
    /// Makes a thread whose history up to `at` is shared with `source`.
    ///
    /// # Errors
    /// As [`Threads::fork`](checkpoint::Threads::fork).
    pub async fn fork(
        &self,
        source: ThreadId,
        at: u64,
        id: ThreadId,
        title: Option<String>,
    ) -> Result<ThreadInfo, Error> {
        let store = self.0.as_ref();
        store.check_keys().await?;
        let info = store.info(source).await?;
        let row = store.history(source, Some(at.saturating_add(1)), 1).await?.pop();
        if at > 0 && row.is_none_or(|row| row.seq != at) {
            // Beyond the head, or dropped: then nobody knows any more what ran next.
            let head = info.head;
            return Err(checkpoint::Error::UnknownStep { thread: source, seq: at, head }.into());
        }
        if info.graph == GRAPH {
            // A damaged one leaves no thread behind that nobody could continue with.
            checkpoint::restore::<GraphState>(store, source, Some(at)).await?;
        }
        let new = NewThread {
            id,
            graph: info.graph,
            title,
            root: None,
            namespace: String::new(),
            tenant: info.tenant,
        };
        Ok(store.fork(source, at, new).await?)
    }

    /// Drops all but the newest `keep` steps of a star's thread; returns the first step that is kept.
    ///
    /// `None` when the thread is not longer than that.
    ///
    /// # Errors
    /// As [`runner::compact`].
    pub async fn compact(&self, thread: ThreadId, keep: u64) -> Result<Option<u64>, Error> {
        Ok(runner::compact::<GraphState>(self.0.as_ref(), thread, keep).await?)
    }
}
