//! Reads a thread's log, and waits for more of it.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use futures::StreamExt as _;
use serde_json::Value;

use super::{CallReceiver, Calls, Subscription, ThreadEvent};
use crate::checkpoint::{Error, EventRow, Fence, Store};
use crate::clock;
use crate::failpoint::{Point, wrap};
use crate::ids::ThreadId;

/// Batches of one read.
const PAGE: u32 = 64;

/// After so many looks in vain the pause between them is not doubled again: eight times the shortest one.
const MOST_VAIN: u32 = 3;

/// For each of the threads that are waited for, the pause between two looks at a silent one is longer by this: all of a
/// process's subscribers together look 250 times a second, and not the more often the more they are.
const FOR_EACH: Duration = Duration::from_millis(4);

/// How seldom a silent thread is looked at, however many are waited for.
const SELDOM: Duration = Duration::from_secs(20);

/// How often a process drops old events.
const PRUNE_EVERY: Duration = Duration::from_secs(60);

/// Batches dropped at a time: an amount that no run's end notices.
const PRUNED: u32 = 1_000;

/// Bytes of a batch that is handed on to those who wait for it, beside the log: what is longer, they read there.
const HANDED_ON: usize = 16 << 10;

/// What those hear who wait for a thread.
#[derive(Clone, Debug, Default)]
pub enum Notice {
    /// It may have told something, or changed otherwise.
    #[default]
    Look,
    /// Its log reaches up to this event.
    UpTo(u64),
    /// What this process just wrote to its log.
    Reported(Arc<[ThreadEvent]>),
}

/// The logs of one store, and who is called when one grows.
pub(super) struct Log {
    pub(super) store: Arc<dyn Store>,
    /// Calls those who wait for a thread that told something, in this process or, as far as it is heard of, in others.
    pub(super) calls: Calls<ThreadId, Notice>,
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
        Arc::new(Self { store, calls: Calls::default(), every, kept, pruned: Mutex::default() })
    }

    pub(super) async fn publish(&self, fence: Fence, batch: &EventRow) -> Result<(), Error> {
        wrap(Point::EventCommit, self.store.append_events(fence, batch)).await?;
        let thread = fence.thread;
        if self.calls.is_waited_for(thread) {
            let notice = if batch.body.bytes.len() <= HANDED_ON {
                Notice::Reported(events_of(batch)?.collect())
            } else {
                Notice::UpTo(batch.last())
            };
            self.calls.call(thread, notice);
        }
        Ok(())
    }

    pub(super) async fn read(
        &self,
        thread: ThreadId,
        after: u64,
    ) -> Result<Vec<ThreadEvent>, Error> {
        let mut all = Vec::new();
        for row in self.store.events_after(thread, after, PAGE).await? {
            all.extend(events_of(&row)?.filter(|event| event.id > after));
        }
        Ok(all)
    }

    pub(super) fn subscribe(self: &Arc<Self>, thread: ThreadId, after: u64) -> Subscription {
        let calls = self.calls.wait_for(thread);
        let log = Arc::clone(self);
        let ready = VecDeque::new();
        let reading =
            Reading { log, calls, thread, after, ready, is_read: false, is_called: false, vain: 0 };
        futures::stream::try_unfold(reading, |mut reading| async move {
            let events_of = reading.next().await?;
            Ok(Some((events_of, reading)))
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

/// Returns the events of a batch.
fn events_of(batch: &EventRow) -> Result<impl Iterator<Item = ThreadEvent>, Error> {
    let first = batch.first;
    let run = batch.run;
    let events: Vec<Value> = batch.body.decode()?;
    Ok((first..).zip(events).map(move |(id, event)| ThreadEvent { id, run, event }))
}

/// A subscriber's place in a log.
struct Reading {
    log: Arc<Log>,
    calls: CallReceiver<ThreadId, Notice>,
    thread: ThreadId,
    /// Id of the last event that was read.
    after: u64,
    ready: VecDeque<ThreadEvent>,
    /// The last look read to the end: there is more once there is another call.
    is_read: bool,
    /// The last look was called for.
    is_called: bool,
    /// Looks in a row that found nothing: a silent thread is looked at less often.
    vain: u32,
}

impl Reading {
    async fn next(&mut self) -> Result<ThreadEvent, Error> {
        loop {
            if let Some(events_of) = self.ready.pop_front() {
                return Ok(events_of);
            }
            if self.is_read {
                match self.called().await {
                    Notice::UpTo(last) if last <= self.after => continue,
                    Notice::Reported(events) if self.joins(&events) => {
                        let fresh = events.iter().filter(|event| event.id > self.after);
                        self.ready = fresh.cloned().collect();
                        self.after = self.ready.back().map_or(self.after, |newest| newest.id);
                        continue;
                    }
                    _ => self.is_read = false,
                }
            }
            // What was called out before is read now; what is called out from here on is not missed.
            self.calls.forget();
            self.ready = self.log.read(self.thread, self.after).await?.into();
            self.is_read = self.ready.len() < PAGE as usize;
            if let Some(newest) = self.ready.back() {
                self.after = newest.id;
                if !self.is_called {
                    // Another process tells what this one does not hear of.
                    self.vain = 0;
                }
            }
        }
    }

    /// Returns whether events continue from what was read, with none left out between.
    fn joins(&self, events: &[ThreadEvent]) -> bool {
        events.first().is_some_and(|first| first.id <= self.after + 1)
    }

    /// Returns when the thread may have told more.
    async fn called(&mut self) -> Notice {
        let mut pause = self.log.every * (1 << self.vain);
        if self.vain == MOST_VAIN {
            let many = u32::try_from(self.log.calls.len()).unwrap_or(u32::MAX);
            pause = pause.max(FOR_EACH.saturating_mul(many).min(SELDOM));
        }
        tokio::select! {
            notice = self.calls.called() => {
                (self.is_called, self.vain) = (true, MOST_VAIN);
                notice
            }
            () = clock::sleep(pause) => {
                self.is_called = false;
                self.vain = (self.vain + 1).min(MOST_VAIN);
                Notice::Look
            }
        }
    }
}
