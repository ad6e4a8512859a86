//! Threads as such: their titles and what stopped them are encrypted, and a fork names whose texts it shares.

use async_trait::async_trait;

use super::{
    super::{Error, NewThread, ThreadFilter, ThreadInfo, ThreadStatus, Threads},
    SealedStore,
    label::{Label, open_info, read_label, seal_label},
};
use crate::ids::ThreadId;

#[async_trait]
impl Threads for SealedStore {
    async fn create(&self, mut new: NewThread) -> Result<ThreadInfo, Error> {
        let label = Label { title: new.title.take(), origins: Vec::new() };
        new.title = Some(seal_label(&self.keys, new.id, &label)?);
        Ok(open_info(&self.keys, self.inner.create(new).await?))
    }

    async fn info(&self, thread: ThreadId) -> Result<ThreadInfo, Error> {
        Ok(open_info(&self.keys, self.inner.info(thread).await?))
    }

    async fn fork(
        &self,
        source: ThreadId,
        at: u64,
        mut new: NewThread,
    ) -> Result<ThreadInfo, Error> {
        let info = self.inner.info(source).await?;
        let of_source = read_label(&self.keys, &info)?.unwrap_or_default();
        let mut label = of_source.of_fork(source, at, new.title.take());
        // Texts that a subgraph's steps name are those of the thread at the top; of its steps none are shared.
        label.origins.extend(info.root.map(|top| (top, 0)));
        new.title = Some(seal_label(&self.keys, new.id, &label)?);
        Ok(open_info(&self.keys, self.inner.fork(source, at, new).await?))
    }

    async fn list(&self, filter: &ThreadFilter) -> Result<Vec<ThreadInfo>, Error> {
        let threads = self.inner.list(filter).await?;
        Ok(threads.into_iter().map(|info| open_info(&self.keys, info)).collect())
    }

    async fn count_threads(&self) -> Result<Vec<(ThreadStatus, u64)>, Error> {
        self.inner.count_threads().await
    }

    async fn delete(&self, thread: ThreadId) -> Result<(), Error> {
        self.inner.delete(thread).await
    }

    async fn delete_as_seen(&self, seen: &ThreadInfo) -> Result<(), Error> {
        self.inner.delete_as_seen(seen).await
    }

    async fn truncate(&self, thread: ThreadId, seq: u64) -> Result<(), Error> {
        self.inner.truncate(thread, seq).await
    }
}
