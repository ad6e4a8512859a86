//! The logs of what runs told.

use std::time::Duration;

use super::{
    super::{Error, EventPosition, EventRow, Fence, ThreadStatus, limits::moment},
    state::{Kept, State},
};
use crate::clock;

impl State {
    pub(super) fn append_events(&mut self, fence: Fence, batch: &EventRow) -> Result<(), Error> {
        let kept = self.fenced(fence)?;
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

    pub(super) fn prune_events(&mut self, kept_for: Duration, most: u32) -> u64 {
        let before = moment(clock::now())
            - chrono::TimeDelta::from_std(kept_for).unwrap_or(chrono::TimeDelta::MAX / 2);
        let mut left = most;
        for kept in self.threads.values_mut() {
            if matches!(kept.info.status, ThreadStatus::Busy | ThreadStatus::Queued) {
                continue;
            }
            kept.events.retain(|row| {
                let goes = left > 0 && row.at <= before;
                left -= u32::from(goes);
                !goes
            });
        }
        u64::from(most - left)
    }
}

impl Kept {
    pub(super) fn events_after(&self, after: u64, limit: u32) -> Vec<EventRow> {
        let newer = self.events.iter().skip_while(|row| row.last() <= after);
        newer.take(limit as usize).cloned().collect()
    }
}
