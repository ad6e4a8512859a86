//! Reads a thread's log, and waits for more of it.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use futures::StreamExt as _;
use serde_json::Value;
use tokio::sync::broadcast;

use super::{Subscription, ThreadEvent};
use crate::checkpoint::{Error, EventRow, Store};
use crate::clock;
use crate::failpoint::{Point, around};
use crate::ids::ThreadId;

/// Batches of one read.
const PAGE: u32 = 64;

/// Calls that a subscriber may be behind; one that is further behind just looks.
const CALLS: usize = 256;

/// After so many looks in vain the pause between them is not doubled again: eight times the shortest one.
const MOST_VAIN: u32 = 3;

/// How often a process drops old events.
const PRUNE_EVERY: Duration = Duration::from_secs(60);

/// Batches dropped at a time: an amount that no run's end notices.
const PRUNED: u32 = 1_000;

/// The logs of one store, and who is called when one grows.
pub(super) struct Log {
    pub(super) store: Arc<dyn Store>,
    /// Names the threads that told something, in this process or, as far as it is heard of, in others.
    pub(super) calls: broadcast::Sender<ThreadId>,
    /// How often subscribers look without being called.
    every: Duration,
    kept: Duration,
    pruned: Mutex<Option<Instant>>,
}

impl std::fmt::Debug for Log {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Log").field("store", &self.store.describe()).finish_non_exhaustive()
    }
}

impl Log {
    pub(super) fn new(store: Arc<dyn Store>, every: Duration, kept: Duration) -> Arc<Self> {
        let (calls, _) = broadcast::channel(CALLS);
        Arc::new(Self { store, calls, every, kept, pruned: Mutex::default() })
    }

    pub(super) async fn publish(
        &self,
        thread: ThreadId,
        fence: u64,
        batch: &EventRow,
    ) -> Result<(), Error> {
        around(Point::EventCommit, self.store.append_events(thread, fence, batch)).await?;
        // Nobody listening is no failure.
        let _ = self.calls.send(thread);
        Ok(())
    }

    /// Calls those who wait in this process; nobody is no failure.
    pub(super) fn call(&self, thread: ThreadId) {
        let _ = self.calls.send(thread);
    }

    pub(super) async fn read(
        &self,
        thread: ThreadId,
        after: u64,
    ) -> Result<Vec<ThreadEvent>, Error> {
        let mut told = Vec::new();
        for row in self.store.events_after(thread, after, PAGE).await? {
            let events: Vec<Value> = row.body.decode()?;
            let numbered = (row.first..).zip(events).filter(|(id, _)| *id > after);
            told.extend(numbered.map(|(id, event)| ThreadEvent { id, run: row.run, event }));
        }
        Ok(told)
    }

    pub(super) fn subscribe(self: &Arc<Self>, thread: ThreadId, after: u64) -> Subscription {
        let calls = self.calls.subscribe();
        let log = Arc::clone(self);
        let reading = Reading { log, calls, thread, after, ready: VecDeque::new(), vain: 0 };
        futures::stream::try_unfold(reading, |mut reading| async move {
            let told = reading.next().await?;
            Ok(Some((told, reading)))
        })
        .boxed()
    }

    pub(super) async fn prune(&self) {
        {
            let mut pruned = self.pruned.lock().unwrap_or_else(PoisonError::into_inner);
            let now = clock::monotonic();
            if pruned.is_some_and(|last| now.duration_since(last) < PRUNE_EVERY) {
                return;
            }
            *pruned = Some(now);
        }
        if let Err(error) = self.store.prune_events(self.kept, PRUNED).await {
            tracing::debug!(%error, "old events could not be dropped; the next time will do");
        }
    }
}

/// A subscriber's place in a log.
struct Reading {
    log: Arc<Log>,
    calls: broadcast::Receiver<ThreadId>,
    thread: ThreadId,
    /// Id of the last event that was read.
    after: u64,
    ready: VecDeque<ThreadEvent>,
    /// Looks in a row that found nothing: a silent thread is looked at less often.
    vain: u32,
}

impl Reading {
    async fn next(&mut self) -> Result<ThreadEvent, Error> {
        loop {
            if let Some(told) = self.ready.pop_front() {
                return Ok(told);
            }
            // What was called out before is read now; what is called out from here on is not missed.
            self.calls = self.calls.resubscribe();
            self.ready = self.log.read(self.thread, self.after).await?.into();
            match self.ready.back() {
                Some(newest) => (self.after, self.vain) = (newest.id, 0),
                None => self.called().await,
            }
        }
    }

    /// Returns when the thread may have told more.
    async fn called(&mut self) {
        let call = async {
            loop {
                match self.calls.recv().await {
                    Ok(thread) if thread == self.thread => return,
                    Ok(_) => {}
                    Err(broadcast::error::RecvError::Lagged(_)) => return,
                    Err(broadcast::error::RecvError::Closed) => std::future::pending().await,
                }
            }
        };
        tokio::select! {
            () = call => self.vain = 0,
            () = clock::sleep(self.log.every * (1 << self.vain)) => {
                self.vain = (self.vain + 1).min(MOST_VAIN);
            }
        }
    }
}
