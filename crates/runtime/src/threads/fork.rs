//! Forks of threads.

use super::Threads;
use crate::{Error, Served};
use perihelion_engine::checkpoint::{self, NewThread, ThreadInfo};
use perihelion_engine::ids::ThreadId;

impl Threads {
    /// Makes a thread whose history up to `at` is shared with `source`; `graph` is that of the source, if it is known.
    pub async fn fork(
        &self,
        source: ThreadId,
        at: u64,
        id: ThreadId,
        title: Option<String>,
        graph: Option<&dyn Served>,
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
        if let Some(graph) = graph {
            // A damaged thread leaves no fork behind that cannot be continued.
            graph.state(source, Some(at)).await?;
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
}
