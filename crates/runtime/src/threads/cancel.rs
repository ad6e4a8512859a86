//! Ends the active work on a thread from outside.

use std::time::Duration;

use super::{Holder, Threads};
use crate::Error;
use perihelion_engine::checkpoint::{
    self, Claim, Fence, RunEnd, RunStatus, Store, ThreadFilter, ThreadInfo, ThreadStatus,
};
use perihelion_engine::clock;
use perihelion_engine::ids::{RunId, ThreadId};
use perihelion_engine::runner;

/// How long a thread stays locked while its active work ends.
const LEASE: Duration = Duration::from_secs(15);

/// How often a thread is looked at that is to come to rest.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// That something was ended on a thread.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cancelled {
    /// The process that worked on it; `None` if it waited for a worker.
    pub had: Option<Holder>,
}

impl Threads {
    /// Ends the active work on a thread, in any process.
    ///
    /// The threads of its teams are ended with it. The threads are claimed from that process, which can write no more
    /// of the run; calls that were sent and not recorded have an unknown outcome when the thread continues. `None`
    /// without active work.
    pub async fn cancel(&self, thread: ThreadId) -> Result<Option<Cancelled>, Error> {
        let store = self.0.as_ref();
        let before = store.info(thread).await?;
        let is_under_way = is_going(&before);
        if is_under_way {
            end(store, thread).await?;
        }
        // Of a team's own threads some may be under way although their parent is not any more.
        let filter =
            ThreadFilter { with_children: true, root: Some(thread), ..ThreadFilter::default() };
        let mut has_ended = is_under_way;
        for child in store.list(&filter).await? {
            if is_going(&child) {
                end(store, child.id).await?;
                has_ended = true;
            }
        }
        let had = before.owner.as_deref().map(Holder::of);
        Ok(has_ended.then_some(Cancelled { had }))
    }

    /// Waits up to a limit until a thread has no active work; returns whether it succeeded.
    pub async fn is_at_rest_within(&self, thread: ThreadId, most: Duration) -> Result<bool, Error> {
        let begun = clock::monotonic();
        loop {
            if !is_going(&self.info(thread).await?) {
                return Ok(true);
            }
            if begun.elapsed() >= most {
                return Ok(false);
            }
            clock::sleep(LOOK_EVERY).await;
        }
    }
}

fn is_going(info: &ThreadInfo) -> bool {
    matches!(info.status, ThreadStatus::Busy | ThreadStatus::Queued)
}

/// Takes a thread and ends its run.
async fn end(store: &dyn Store, thread: ThreadId) -> Result<(), checkpoint::Error> {
    let owner = runner::owner_name();
    let taken = store.claim(Claim::new(thread, &owner, LEASE).forced()).await?;
    let under_way = store.runs(thread).await?.pop().filter(|run| run.status == RunStatus::Running);
    let run = match under_way {
        Some(run) => run.id,
        None => {
            let run = RunId::new();
            store.begin_run(Fence::new(thread, taken.fence), run, false).await?;
            run
        }
    };
    let end = RunEnd {
        error: Some(runner::STOPPED),
        finish_reason: Some("cancelled"),
        ..RunEnd::new(RunStatus::Cancelled, ThreadStatus::Failed)
    };
    store.end_run(Fence::new(thread, taken.fence), run, end).await
}
