//! The events of runs, durable and in order, for any process of the database.
//!
//! Enter at [`open`], which returns the [`Bus`] of a store, and at [`Publisher`], which publishes a run on it.
//! Invariants: the events of a thread are numbered from 1 without a gap. The statement that writes them checks the
//! fencing token, so a process that lost the thread publishes no events. The end of a step is published once, by a
//! later process from the step's row if necessary. Steps never wait for their events. Deliberately absent: states and
//! updates, which are in the steps, and a list of subscribers: each one knows its last event ID.

mod calls;
mod event_queue;
mod log;
mod postgres;
mod publisher;

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use futures::stream::BoxStream;
use serde_json::Value;

pub use calls::{CallReceiver, Calls};
pub use event_queue::EventSender;
pub use publisher::{Publisher, RunToPublish};

use self::{log::StoreBus, postgres::Listener};
use crate::checkpoint::{Error, EventRow, Fence, Store};
use crate::ids::{RunId, ThreadId};

/// An event as subscribers receive it.
#[derive(Clone, Debug, PartialEq)]
pub struct ThreadEvent {
    /// Its number in the thread, from 1.
    pub id: u64,
    /// The run of the events.
    pub run: RunId,
    /// The JSON form of a [`RunEvent`](crate::graph::RunEvent).
    pub event: Value,
}

/// The calls that a subscriber of a thread receives.
#[derive(Clone, Debug, Default)]
pub enum Notice {
    /// The thread may have new events, or it changed in another way.
    #[default]
    Look,
    /// Its log reaches up to this event.
    UpTo(u64),
    /// The events that this process just wrote to the log.
    Reported(Arc<[ThreadEvent]>),
}

/// A stream of events; it ends after an error, and a new subscription continues from the last ID.
pub type Subscription = BoxStream<'static, Result<ThreadEvent, Error>>;

/// Carries the events of threads from the process that runs them to their subscribers.
#[async_trait]
pub trait Bus: std::fmt::Debug + Send + Sync {
    /// Returns the store of its threads.
    fn store(&self) -> &Arc<dyn Store>;

    /// Appends a batch to a thread's log and calls the subscribers.
    ///
    /// # Errors
    /// As [`Events::append_events`](crate::checkpoint::Events::append_events), whose crash contract is this one's.
    async fn publish(&self, fence: Fence, batch: &EventRow) -> Result<(), Error>;

    /// Returns events with ids above `after` that are there already, oldest first; at most some hundreds.
    ///
    /// # Errors
    /// [`Error::UnknownThread`], and whatever the store reports.
    async fn read(&self, thread: ThreadId, after: u64) -> Result<Vec<ThreadEvent>, Error>;

    /// Subscribes to a thread's events with IDs above `after`, stored and future.
    ///
    /// Each comes once and in order. Events that retention dropped are left out; otherwise ids have no gap.
    fn subscribe(&self, thread: ThreadId, after: u64) -> Subscription;

    /// Wakes the subscribers of a thread that changed without an event, on every process that receives calls.
    async fn call(&self, thread: ThreadId);

    /// Waits for new events of a thread, or for a call.
    ///
    /// SQLite calls reach subscribers of the same process only; Postgres calls reach all processes while their
    /// connection listens.
    fn calls(&self, thread: ThreadId) -> CallReceiver<ThreadId, Notice>;

    /// Deletes all events that are older than the retention allows, unless this was done in the last minute. Returns
    /// after the first batch; a background task deletes the rest.
    async fn prune(&self);

    /// Closes its own connections.
    async fn close(&self);
}

/// Opens the bus that goes with a database address and the store that was opened there.
///
/// Events of idle threads are dropped when they are older than `kept`. It connects when the first subscriber appears.
pub fn open(url: &str, store: Arc<dyn Store>, kept: Duration) -> Arc<dyn Bus> {
    let is_shared = url.starts_with("postgres:") || url.starts_with("postgresql:");
    Arc::new(StoreBus::new(store, kept, is_shared.then(|| Listener::new(url))))
}
