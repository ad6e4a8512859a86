//! The bus of one machine: the database is the log, this process calls its own subscribers, and those of others look.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;

use super::log::{Log, Notice};
use super::{Bus, CallReceiver, Subscription, ThreadEvent};
use crate::checkpoint::{Error, EventRow, Fence, Store};
use crate::ids::ThreadId;

/// How often a subscriber looks for what other processes told: one indexed read of a local file.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// A bus over SQLite or memory.
#[derive(Debug)]
pub struct Embedded(Arc<Log>);

impl Embedded {
    /// Makes a bus over a store, which drops events of threads at rest that are older than `kept`.
    pub fn new(store: Arc<dyn Store>, kept: Duration) -> Self {
        Self(Log::new(store, LOOK_EVERY, kept))
    }
}

#[async_trait]
impl Bus for Embedded {
    fn store(&self) -> &Arc<dyn Store> {
        &self.0.store
    }

    async fn publish(&self, fence: Fence, batch: &EventRow) -> Result<(), Error> {
        self.0.publish(fence, batch).await
    }

    async fn read(&self, thread: ThreadId, after: u64) -> Result<Vec<ThreadEvent>, Error> {
        self.0.read(thread, after).await
    }

    fn subscribe(&self, thread: ThreadId, after: u64) -> Subscription {
        self.0.subscribe(thread, after)
    }

    async fn call(&self, thread: ThreadId) {
        self.0.call(thread);
    }

    fn calls(&self, thread: ThreadId) -> CallReceiver<ThreadId, Notice> {
        self.0.calls.wait_for(thread)
    }

    async fn prune(&self) {
        self.0.prune().await;
    }

    async fn close(&self) {}
}
