//! The logs of what runs told.

use std::time::Duration;

use async_trait::async_trait;

use super::{
    super::{Error, EventPosition, EventRow, Events, Fence, ThreadStatus, limits::moment},
    MemoryStore,
};
use crate::clock;
use crate::ids::ThreadId;

#[async_trait]
impl Events for MemoryStore {
    async fn append_events(&self, fence: Fence, batch: &EventRow) -> Result<(), Error> {
        let state = &mut *self.state();
        let kept = state.fenced(fence)?;
        let thread = fence.thread;
        let first = batch.first;
        let last = kept.position.last;
        if first != last + 1 {
            let same =
                |row: &EventRow| (row.first, row.count, row.run) == (first, batch.count, batch.run);
            return if kept.events.iter().any(same) {
                Ok(())
            } else {
                Err(Error::EventGap { thread, first, last })
            };
        }
        kept.position = EventPosition { last: batch.last(), step: batch.step };
        kept.events.push(EventRow { at: moment(clock::now()), ..batch.clone() });
        Ok(())
    }

    async fn event_position(&self, thread: ThreadId) -> Result<EventPosition, Error> {
        Ok(self.state().get(thread)?.position)
    }

    async fn events_after(
        &self,
        thread: ThreadId,
        after: u64,
        limit: u32,
    ) -> Result<Vec<EventRow>, Error> {
        let state = self.state();
        let newer = state.get(thread)?.events.iter().skip_while(|row| row.last() <= after);
        Ok(newer.take(limit as usize).cloned().collect())
    }

    async fn prune_events(&self, kept_for: Duration, most: u32) -> Result<u64, Error> {
        let state = &mut *self.state();
        let before = moment(clock::now())
            - chrono::TimeDelta::from_std(kept_for).unwrap_or(chrono::TimeDelta::MAX / 2);
        let mut left = most;
        for kept in state.threads.values_mut() {
            if matches!(kept.info.status, ThreadStatus::Busy | ThreadStatus::Queued) {
                continue;
            }
            kept.events.retain(|row| {
                let goes = left > 0 && row.at <= before;
                left -= u32::from(goes);
                !goes
            });
        }
        Ok(u64::from(most - left))
    }
}
