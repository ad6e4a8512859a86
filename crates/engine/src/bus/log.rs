//! The bus of a database: its log of events, and calls to waiting tasks in this process and, if possible, in other
//! processes.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

use async_trait::async_trait;
use futures::StreamExt as _;
use parking_lot::Mutex;
use serde_json::Value;

use super::postgres::Listener;
use super::{Bus, CallReceiver, Calls, Notice, Subscription, ThreadEvent};
use crate::checkpoint::{EventRow, Fence, Result, Store};
use crate::clock;
use crate::failpoint::{Point, wrap};
use crate::ids::ThreadId;

/// How often a subscriber polls for events of other processes: one indexed read of a local file.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// How often it looks without being called, for when the connection that listens is broken.
const LOOK_BESIDE: Duration = Duration::from_millis(500);

/// Batches of one read.
const PAGE: u32 = 64;

/// After this number of polls without events, the interval is not doubled again: it is eight times the shortest one.
const MOST_VAIN: u32 = 3;

/// The interval grows by this for each thread with subscribers, so that all subscribers of a process together poll at
/// most 250 times a second.
const FOR_EACH: Duration = Duration::from_millis(4);

/// The longest interval between two polls of a silent thread, for any number of threads.
const SELDOM: Duration = Duration::from_secs(20);

/// How often a process drops old events.
const PRUNE_EVERY: Duration = Duration::from_secs(60);

/// Batches dropped in one statement, so that no other write waits for long.
const PRUNED: u32 = 1_000;

/// Bytes of a batch that is passed directly to waiting tasks; they read a longer batch from the log.
const HANDED_ON: usize = 16 << 10;

/// A bus over a store; on one machine the subscribers of other processes look, by Postgres they are called.
pub(super) struct StoreBus(Arc<Log>);

/// The logs of one store, and who is called when one grows.
struct Log {
    store: Arc<dyn Store>,
    /// Wakes the tasks that wait for a thread with new events, in this process and, if possible, in other processes.
    calls: Calls<ThreadId, Notice>,
    /// Receives the calls of other processes and passes them on.
    others: Option<Listener>,
    /// How often subscribers look without being called.
    every: Duration,
    kept: Duration,
    pruned: Mutex<Option<Instant>>,
}

impl std::fmt::Debug for StoreBus {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("StoreBus").field("store", &self.0.store.describe()).finish_non_exhaustive()
    }
}

impl StoreBus {
    /// Makes a bus over a store, which drops events of idle threads that are older than `kept`.
    pub(super) fn new(store: Arc<dyn Store>, kept: Duration, others: Option<Listener>) -> Self {
        let every = if others.is_some() { LOOK_BESIDE } else { LOOK_EVERY };
        let calls = Calls::default();
        Self(Arc::new(Log { store, calls, others, every, kept, pruned: Mutex::default() }))
    }
}

#[async_trait]
impl Bus for StoreBus {
    fn store(&self) -> &Arc<dyn Store> {
        &self.0.store
    }

    async fn publish(&self, fence: Fence, batch: &EventRow) -> Result<()> {
        let Log { store, calls, .. } = &*self.0;
        wrap(Point::EventCommit, store.append_events(fence, batch)).await?;
        let thread = fence.thread;
        if calls.is_waited_for(thread) {
            let notice = if batch.body.bytes.len() <= HANDED_ON {
                Notice::Reported(events_of(batch)?.collect())
            } else {
                Notice::UpTo(batch.last())
            };
            calls.call(thread, notice);
        }
        Ok(())
    }

    async fn read(&self, thread: ThreadId, after: u64) -> Result<Vec<ThreadEvent>> {
        self.0.read(thread, after).await
    }

    fn subscribe(&self, thread: ThreadId, after: u64) -> Subscription {
        let calls = self.calls(thread);
        let log = Arc::clone(&self.0);
        let ready = VecDeque::new();
        let reading =
            Reading { log, calls, thread, after, ready, is_read: false, is_called: false, vain: 0 };
        futures::stream::try_unfold(reading, |mut reading| async move {
            let events_of = reading.next().await?;
            Ok(Some((events_of, reading)))
        })
        .boxed()
    }

    async fn call(&self, thread: ThreadId) {
        self.0.calls.call(thread, Notice::Look);
        if let Some(others) = &self.0.others {
            others.call(thread).await;
        }
    }

    fn calls(&self, thread: ThreadId) -> CallReceiver<ThreadId, Notice> {
        if let Some(others) = &self.0.others {
            others.be_listening(&self.0.calls);
        }
        self.0.calls.wait_for(thread)
    }

    async fn prune(&self) {
        {
            let mut pruned = self.0.pruned.lock();
            let now = clock::monotonic();
            if pruned.is_some_and(|last| now.duration_since(last) < PRUNE_EVERY) {
                return;
            }
            *pruned = Some(now);
        }
        if self.0.drop_old_events().await {
            // The end of a run does not wait for more than one statement.
            let log = Arc::clone(&self.0);
            tokio::spawn(async move {
                loop {
                    let began = clock::monotonic();
                    if !log.drop_old_events().await {
                        return;
                    }
                    // Half of the time is left to other writes.
                    clock::sleep(clock::monotonic().duration_since(began)).await;
                }
            });
        }
    }

    async fn close(&self) {
        if let Some(others) = &self.0.others {
            others.close().await;
        }
    }
}

impl Log {
    /// Deletes a batch of old events; returns whether there may be more.
    async fn drop_old_events(&self) -> bool {
        let dropped = self.store.prune_events(self.kept, PRUNED).await;
        // Noted after each batch, so that no second task of this process begins.
        *self.pruned.lock() = Some(clock::monotonic());
        match dropped {
            Ok(dropped) => dropped == u64::from(PRUNED),
            Err(error) => {
                tracing::debug!(%error, "old events could not be dropped; trying again later");
                false
            }
        }
    }

    async fn read(&self, thread: ThreadId, after: u64) -> Result<Vec<ThreadEvent>> {
        let mut all = Vec::new();
        for row in self.store.events_after(thread, after, PAGE).await? {
            all.extend(events_of(&row)?.filter(|event| event.id > after));
        }
        Ok(all)
    }
}

fn events_of(batch: &EventRow) -> Result<impl Iterator<Item = ThreadEvent>> {
    let first = batch.first;
    let run = batch.run;
    let events: Vec<Value> = batch.body.decode()?;
    Ok((first..).zip(events).map(move |(id, event)| ThreadEvent { id, run, event }))
}

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
    /// Polls in a row without events: an idle thread is polled less often.
    vain: u32,
}

impl Reading {
    async fn next(&mut self) -> Result<ThreadEvent> {
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
                    // Another process publishes events for which this one receives no calls.
                    self.vain = 0;
                }
            }
        }
    }

    /// Returns whether events continue the ones that were read, without a gap.
    fn joins(&self, events: &[ThreadEvent]) -> bool {
        events.first().is_some_and(|first| first.id <= self.after + 1)
    }

    /// Returns when the thread may have new events.
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
