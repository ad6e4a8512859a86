//! Who hears what happened: the events of runs, durable and in order, for any process of the database.
//!
//! Enter at [`open`], which gives the [`Bus`] of a store, and at [`Publisher`], which tells a run on it.
//! Invariants: a thread's events are numbered from 1 without a gap, under the fencing token and in the statement
//! that writes them, so a process that lost the thread tells nothing; a step's end is told once, whichever
//! processes died, because it is told by the step's row where nobody told it in time; no step waits for its
//! events. Deliberately absent: states and updates, which the steps themselves hold, and any account of
//! subscribers: each knows the id up to which it has heard.

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

/// An event as heard.
#[derive(Clone, Debug, PartialEq)]
pub struct ThreadEvent {
    /// Its number in the thread, from 1.
    pub id: u64,
    /// The run that told it.
    pub run: RunId,
    /// The JSON form of a [`RunEvent`](crate::graph::RunEvent).
    pub event: Value,
}

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

/// Events as they come; it ends after an error, and a new subscription continues from the last id heard.
pub type Subscription = BoxStream<'static, Result<ThreadEvent, Error>>;

/// Carries events of threads from the one who runs them to the one who wants to hear them.
#[async_trait]
pub trait Bus: std::fmt::Debug + Send + Sync {
    /// Returns the store whose threads it tells of.
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

    /// Hears a thread's events with ids above `after`, those that are there and those to come.
    ///
    /// Each comes once and in order. Events that retention dropped are left out; otherwise ids have no gap.
    fn subscribe(&self, thread: ThreadId, after: u64) -> Subscription;

    /// Calls anyone who waits for a thread of which nothing was told, on every process that hears calls.
    async fn call(&self, thread: ThreadId);

    /// Waits for a thread to tell something or to be called.
    ///
    /// On one machine calls are heard within a process alone; by Postgres on all, while the connection that listens
    /// stands.
    fn calls(&self, thread: ThreadId) -> CallReceiver<ThreadId, Notice>;

    /// Drops events that are older than the retention allows, now and then; a bounded number of them.
    async fn prune(&self);

    /// Closes connections of its own.
    async fn close(&self);
}

/// Opens the bus that goes with a database address and the store that was opened there.
///
/// Events of threads at rest are dropped when they are older than `kept`. Nothing is connected before
/// somebody subscribes.
pub fn open(url: &str, store: Arc<dyn Store>, kept: Duration) -> Arc<dyn Bus> {
    let is_shared = url.starts_with("postgres:") || url.starts_with("postgresql:");
    Arc::new(StoreBus::new(store, kept, is_shared.then(|| Listener::new(url))))
}
