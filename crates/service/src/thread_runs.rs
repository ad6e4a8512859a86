//! The runs of a thread in order, as they begin; past ones first.

use std::time::Duration;

use futures::StreamExt as _;
use uuid::Uuid;

use super::kept::Run;
use super::{Result, Service};
use perihelion_engine::bus::{CallReceiver, Notice, Subscription};
use perihelion_engine::clock;
use perihelion_engine::ids::ThreadId;

/// How often an idle thread is polled: another process on SQLite sends no call for a run that ended before its first
/// step.
const LOOK_EVERY: Duration = Duration::from_secs(10);

/// How often one is looked at that there is not yet.
const WAIT: Duration = Duration::from_millis(250);

/// Waits for the runs of one thread, which may not be there yet.
pub struct BegunRuns {
    service: Service,
    thread: ThreadId,
    /// The event of the log that the client has, until the runs before it are passed over.
    after: u64,
    /// The first event of the run that was returned last.
    first_event: u64,
    /// The runs with this first event that were returned.
    seen: Vec<Uuid>,
    /// Wakes when an idle thread continues.
    log: Option<Subscription>,
    /// Calls when a run of the thread began or ended.
    calls: CallReceiver<ThreadId, Notice>,
}

impl Service {
    /// Waits for the runs of a thread; those that ended before the event `after` are passed over, except the last of them.
    pub fn begun_runs(&self, thread: ThreadId, after: u64) -> BegunRuns {
        let calls = self.runtime().bus().calls(thread);
        BegunRuns {
            service: self.clone(),
            thread,
            after,
            first_event: 0,
            seen: Vec::new(),
            log: None,
            calls,
        }
    }
}

impl BegunRuns {
    /// Returns the next run that has begun; `None` after a while without one.
    ///
    /// It can be dropped at any time without losing events.
    pub async fn next(&mut self) -> Result<Option<Run>> {
        // What was called before is looked at now; what is called from here on is not missed.
        self.calls.forget();
        // On the heap: otherwise each idle stream has room for its statements.
        if let Some(run) = Box::pin(self.look()).await? {
            return Ok(Some(run));
        }
        if self.log.is_none() && Box::pin(self.service.info(self.thread)).await.is_ok() {
            let mark = self.service.runtime().store().event_position(self.thread).await?;
            self.log = Some(self.service.runtime().bus().subscribe(self.thread, mark.last));
            // One that began between both looks published that before the subscription.
            return Box::pin(self.look()).await;
        }
        match &mut self.log {
            None => tokio::select! {
                _ = self.calls.called() => {}
                () = clock::sleep(WAIT) => {}
            },
            Some(log) => tokio::select! {
                reported = log.next() => if !matches!(reported, Some(Ok(_))) {
                    self.log = None;
                    clock::sleep(WAIT).await;
                },
                _ = self.calls.called() => {}
                () = clock::sleep(LOOK_EVERY) => {}
            },
        }
        Ok(None)
    }

    /// Returns the next run that has begun already, if there is one.
    pub async fn look(&mut self) -> Result<Option<Run>> {
        let kept = self.service.kept();
        if self.after > 0 {
            self.first_event = kept.begun_before(self.thread.0, self.after).await?;
            self.after = 0;
        }
        let next = kept.next_unseen(self.thread.0, self.first_event, &self.seen).await?;
        if let Some(run) = &next {
            let first_event = run.first_event.unwrap_or_default();
            if first_event > self.first_event {
                self.seen.clear();
            }
            self.first_event = first_event;
            self.seen.push(run.id);
            self.log = None;
        }
        Ok(next)
    }
}
