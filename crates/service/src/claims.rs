//! The runs of this process, each driven by one task.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::Arc;

use parking_lot::MutexGuard;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::kept::Begin;
use super::{Parts, Result, Service};
use perihelion_engine::clock;

/// The right of one task to drive a run in this process.
///
/// A task has it before the run's row names this process, and until the row has its end. A row that names this process
/// without a claim has therefore lost its task, or a claiming statement took effect whose reply was lost.
pub(super) struct Claim {
    parts: Arc<Parts>,
    run: Uuid,
    /// Stops the drive.
    pub stop: CancellationToken,
}

impl Drop for Claim {
    fn drop(&mut self) {
        self.parts.driven().remove(&self.run);
    }
}

impl Parts {
    fn driven(&self) -> MutexGuard<'_, HashMap<Uuid, CancellationToken>> {
        self.driven.lock()
    }
}

impl Service {
    /// Claims a run; `None` if another task of this process has it.
    pub(super) fn claim(&self, run: Uuid) -> Option<Claim> {
        match self.parts.driven().entry(run) {
            Entry::Occupied(_) => None,
            Entry::Vacant(free) => {
                let stop = free.insert(self.parts.stop.child_token()).clone();
                Some(Claim { parts: Arc::clone(&self.parts), run, stop })
            }
        }
    }

    /// Begins the run that has waited longest for a thread, unless one is driven.
    pub(super) async fn begin_next(&self, thread: Uuid) -> Result<()> {
        let begin = Begin { owner: &self.parts.owner, now: clock::now() };
        let Some(next) = self.kept().next_run(thread, begin.now).await? else { return Ok(()) };
        let Some(claim) = self.claim(next.id) else { return Ok(()) };
        if let Some(run) = self.kept().begin_run(&next, begin).await? {
            self.launch(claim, run);
        }
        Ok(())
    }

    /// Returns whether this process drives runs.
    pub(super) fn is_driving(&self) -> bool {
        !self.parts.driven().is_empty()
    }

    /// Returns whether a task of this process drives a run, and will call its followers.
    pub(super) fn is_driven(&self, run: Uuid) -> bool {
        self.parts.driven().contains_key(&run)
    }

    /// Stops a run if this process drives it.
    pub(super) fn stop_driving(&self, run: Uuid) {
        if let Some(stop) = self.parts.driven().get(&run) {
            stop.cancel();
        }
    }
}
