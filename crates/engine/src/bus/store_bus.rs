//! The bus of a database: its log of events, and calls to those who wait, in this process and in others as far as they hear them.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;

use super::log::{Log, Notice};
use super::postgres::Listener;
use super::{Bus, CallReceiver, Subscription, ThreadEvent};
use crate::checkpoint::{Error, EventRow, Fence, Store};
use crate::ids::ThreadId;

/// How often a subscriber looks for what other processes told: one indexed read of a local file.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// How often it looks without being called, for when the connection that listens is broken.
const LOOK_BESIDE: Duration = Duration::from_millis(500);

/// A bus over a store; on one machine the subscribers of other processes look, by Postgres they are called.
#[derive(Debug)]
pub(super) struct StoreBus {
    log: Arc<Log>,
    /// Hears the calls of other processes, and calls them.
    others: Option<Listener>,
}

impl StoreBus {
    /// Makes a bus over a store, which drops events of threads at rest that are older than `kept`.
    pub(super) fn new(store: Arc<dyn Store>, kept: Duration, others: Option<Listener>) -> Self {
        let every = if others.is_some() { LOOK_BESIDE } else { LOOK_EVERY };
        Self { log: Log::new(store, every, kept), others }
    }

    fn be_listening(&self) {
        if let Some(others) = &self.others {
            others.be_listening(&self.log.calls);
        }
    }
}

#[async_trait]
impl Bus for StoreBus {
    fn store(&self) -> &Arc<dyn Store> {
        &self.log.store
    }

    async fn publish(&self, fence: Fence, batch: &EventRow) -> Result<(), Error> {
        self.log.publish(fence, batch).await
    }

    async fn read(&self, thread: ThreadId, after: u64) -> Result<Vec<ThreadEvent>, Error> {
        self.log.read(thread, after).await
    }

    fn subscribe(&self, thread: ThreadId, after: u64) -> Subscription {
        self.be_listening();
        self.log.subscribe(thread, after)
    }

    async fn call(&self, thread: ThreadId) {
        self.log.calls.call(thread, Notice::Look);
        if let Some(others) = &self.others {
            others.call(thread).await;
        }
    }

    fn calls(&self, thread: ThreadId) -> CallReceiver<ThreadId, Notice> {
        self.be_listening();
        self.log.calls.wait_for(thread)
    }

    async fn prune(&self) {
        self.log.prune().await;
    }

    async fn close(&self) {
        if let Some(others) = &self.others {
            others.close().await;
        }
    }
}
