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
        let had = end(store, store.info(thread).await?).await?;
        // Of a team's own threads some may be under way although their parent is not any more.
        let filter =
            ThreadFilter { with_children: true, root: Some(thread), ..ThreadFilter::default() };
        let mut has_ended = had.is_some();
        for child in store.list(&filter).await? {
            has_ended |= end(store, child).await?.is_some();
        }
        let had = had.and_then(|had| had.owner).as_deref().map(Holder::of);
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

/// Takes a thread that was read and ends its run; returns the row before that, or `None` if nothing was under way.
///
/// The run may have ended, or moved to another process, since the thread was read: then it is read again.
async fn end(
    store: &dyn Store,
    mut seen: ThreadInfo,
) -> Result<Option<ThreadInfo>, checkpoint::Error> {
    let thread = seen.id;
    let owner = runner::owner_name();
    let taken = loop {
        if !is_going(&seen) {
            return Ok(None);
        }
        let claim = Claim::new(thread, &owner, LEASE).forced();
        match store.claim(Claim { seen: Some(seen.fence), ..claim }).await {
            Err(checkpoint::Error::Busy { .. }) => seen = store.info(thread).await?,
            taken => break taken?,
        }
    };
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
    store.end_run(Fence::new(thread, taken.fence), run, end).await?;
    Ok(Some(seen))
}

#[cfg(test)]
mod tests {
    use super::super::tests::with;
    use super::*;

    /// Starts a run on a thread of its own.
    async fn running() -> (Threads, ThreadInfo, RunId) {
        let thread = ThreadId::new();
        let threads = with(&[thread]).await;
        let store = threads.store();
        let info = store.claim(Claim::new(thread, "a/b/1/2", LEASE)).await.unwrap();
        let run = RunId::new();
        store.begin_run(Fence::from(&info), run, false).await.unwrap();
        (threads, info, run)
    }

    #[tokio::test]
    async fn a_run_that_ended_after_its_thread_was_read_is_not_cancelled() {
        for status in [ThreadStatus::Idle, ThreadStatus::Interrupted] {
            let (threads, seen, run) = running().await;
            let store = threads.store();
            let done = RunEnd::new(RunStatus::Done, status);
            store.end_run(Fence::from(&seen), run, done).await.unwrap();
            assert_eq!(end(store.as_ref(), seen.clone()).await.unwrap(), None);
            let after = threads.info(seen.id).await.unwrap();
            assert_eq!((after.status, after.error), (status, None));
            assert_eq!(threads.cancel(seen.id).await.unwrap(), None);
        }
    }

    #[tokio::test]
    async fn a_run_that_moved_to_another_process_is_cancelled_there() {
        let (threads, seen, _) = running().await;
        let moved = Claim::new(seen.id, "a/b/3/4", LEASE).forced();
        threads.store().claim(moved).await.unwrap();
        let ended = end(threads.store().as_ref(), seen.clone()).await.unwrap().unwrap();
        assert_eq!(ended.owner.as_deref(), Some("a/b/3/4"));
        let after = threads.info(seen.id).await.unwrap();
        assert_eq!(
            (after.status, after.error.as_deref()),
            (ThreadStatus::Failed, Some(runner::STOPPED))
        );
    }
}
