//! The edits of a thread's state, while they are made: by a client, or by a run that begins with one.

use std::time::Duration;

use super::{Result, Service};
use perihelion_engine::bus::{CallReceiver, Notice};
use perihelion_engine::checkpoint::StepKind;
use perihelion_engine::clock;
use perihelion_engine::ids::ThreadId;

/// How often to poll, because edits by the command line send no call.
const LOOK_EVERY: Duration = Duration::from_secs(10);

/// How long calls are collected: a run that says words calls for each of them.
const COLLECTED: Duration = Duration::from_millis(50);

/// Steps that are looked through at once.
const MOST: u32 = 1_000;

/// Finds the edits of one thread that are made from now on.
pub struct Edits {
    service: Service,
    thread: ThreadId,
    calls: CallReceiver<ThreadId, Notice>,
    /// The newest step that was looked at.
    seen: u64,
}

impl Service {
    pub async fn edits(&self, thread: ThreadId) -> Result<Edits> {
        let calls = self.runtime().bus().calls(thread);
        let seen = self.info(thread).await?.head;
        Ok(Edits { service: self.clone(), thread, calls, seen })
    }
}

impl Edits {
    /// Returns the steps that edits made since the last look, oldest first; of more than a thousand steps, those among
    /// the newest.
    pub async fn look(&mut self) -> Result<Vec<u64>> {
        // A call from here on is not missed.
        self.calls.forget();
        let head = self.service.info(self.thread).await?.head;
        let new = u32::try_from(head.saturating_sub(self.seen)).unwrap_or(u32::MAX).min(MOST);
        if new == 0 {
            return Ok(Vec::new());
        }
        let store = self.service.runtime().store();
        let rows = store.history(self.thread, Some(head + 1), new).await?;
        let edits = rows.iter().filter(|row| row.kind == StepKind::Edit && !row.is_filler());
        let mut steps: Vec<u64> = edits.map(|row| row.seq).filter(|seq| *seq > self.seen).collect();
        steps.sort_unstable();
        self.seen = head;
        Ok(steps)
    }

    /// Waits until it is worth looking again; it may be dropped at any moment.
    pub async fn called(&mut self) {
        tokio::select! {
            _ = self.calls.called() => clock::sleep(COLLECTED).await,
            () = clock::sleep(LOOK_EVERY) => {}
        }
    }
}
