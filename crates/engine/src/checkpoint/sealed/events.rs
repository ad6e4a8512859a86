//! The logs of what runs told.

use std::time::Duration;

use async_trait::async_trait;

use super::{
    super::{Error, EventPosition, EventRow, Events, Fence},
    SealedStore, values,
};
use crate::ids::ThreadId;

#[async_trait]
impl Events for SealedStore {
    async fn append_events(&self, fence: Fence, batch: &EventRow) -> Result<(), Error> {
        let batch = values::seal_event(&self.keys, fence.thread, batch)?;
        self.inner.append_events(fence, &batch).await
    }

    async fn event_position(&self, thread: ThreadId) -> Result<EventPosition, Error> {
        self.inner.event_position(thread).await
    }

    async fn events_after(
        &self,
        thread: ThreadId,
        after: u64,
        limit: u32,
    ) -> Result<Vec<EventRow>, Error> {
        let rows = self.inner.events_after(thread, after, limit).await?;
        rows.into_iter().map(|row| values::open_event(&self.keys, thread, row)).collect()
    }

    async fn prune_events(&self, kept: Duration, most: u32) -> Result<u64, Error> {
        self.inner.prune_events(kept, most).await
    }
}
