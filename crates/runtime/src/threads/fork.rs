//! Forks of threads.

use super::Threads;
use crate::{Error, Served};
use perihelion_engine::checkpoint::ThreadInfo;
use perihelion_engine::ids::ThreadId;
use perihelion_engine::runner;

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
        if let Some(graph) = graph {
            // A damaged thread leaves no fork behind that cannot be continued.
            graph.state(source, Some(at)).await?;
        }
        Ok(runner::fork(store, info, at, id, title).await?)
    }
}
