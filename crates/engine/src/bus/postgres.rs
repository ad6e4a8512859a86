//! The bus of many machines: the database is the log, and tells anyone who listens which thread's log grew.
//!
//! One notification per batch, never per token: a commit that notifies takes a lock that all such commits
//! share. Its payload is the thread's id and that of its newest event. One connection per process listens, from the first subscription on;
//! while it is broken, subscribers look.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use perihelion_database::{self as database, postgres::Server};
use tokio_util::task::AbortOnDropHandle;

use super::log::{Log, Notice};
use super::{Bus, CallReceiver, Calls, Subscription, ThreadEvent};
use crate::checkpoint::{Error, EventRow, Fence, Store};
use crate::clock;
use crate::ids::ThreadId;

/// The channel that `append_events` notifies.
const CHANNEL: &str = "perihelion_events";

/// How often a subscriber looks without being called, for when the connection that listens is broken.
const LOOK_EVERY: Duration = Duration::from_millis(500);

/// How long it is until the next attempt to listen.
const PATIENCE: Duration = Duration::from_secs(1);

/// A bus over a Postgres database that any number of machines share.
pub struct Postgres {
    log: Arc<Log>,
    url: String,
    listener: Mutex<Option<AbortOnDropHandle<()>>>,
}

impl std::fmt::Debug for Postgres {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // The address may hold a password.
        f.debug_tuple("Postgres").field(&self.log).finish()
    }
}

impl Postgres {
    /// Makes a bus over a store that was opened at `url`; it connects with the first subscription.
    pub fn new(url: &str, store: Arc<dyn Store>, kept: Duration) -> Self {
        let log = Log::new(store, LOOK_EVERY, kept);
        Self { log, url: url.to_owned(), listener: Mutex::default() }
    }
}

impl Postgres {
    /// Begins to hear calls, where nobody wanted to before.
    fn be_listening(&self) {
        let mut listener = self.listener.lock().unwrap_or_else(PoisonError::into_inner);
        listener.get_or_insert_with(|| {
            let listening = listen(self.url.clone(), self.log.calls.clone());
            AbortOnDropHandle::new(tokio::spawn(listening))
        });
    }
}

#[async_trait]
impl Bus for Postgres {
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
        self.log.call(thread);
        // It is rare: what is told calls by itself.
        if let Err(error) = notify(&self.url, thread).await {
            tracing::debug!(%error, %thread, "other processes could not be called; they look");
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
        let listener = self.listener.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(listener) = listener {
            listener.abort();
            // It has been told to end; that it was is no failure.
            let _ = listener.await;
        }
    }
}

/// Calls all processes that listen.
async fn notify(url: &str, thread: ThreadId) -> Result<(), database::Error> {
    server(url)?.notify(CHANNEL, &thread.to_string()).await
}

fn server(url: &str) -> Result<Server, database::Error> {
    Server::read(url, "perihelion bus")
}

/// Passes notifications on for as long as somebody may want them.
async fn listen(url: String, calls: Calls<ThreadId, Notice>) {
    loop {
        let Err(error) = pass_on(&url, &calls).await;
        tracing::debug!(%error, "events cannot be listened to; looking for them");
        clock::sleep(PATIENCE).await;
    }
}

async fn pass_on(
    url: &str,
    calls: &Calls<ThreadId, Notice>,
) -> Result<std::convert::Infallible, database::Error> {
    let mut listener = server(url)?.listen(CHANNEL).await?;
    loop {
        let call = listener.next().await?;
        // A thread, and behind it how far its log reaches where that is what was written.
        let (thread, last) = match call.split_once(' ') {
            Some((thread, last)) => (thread, last.parse().ok()),
            None => (call.as_str(), None),
        };
        let notice = last.map_or(Notice::Look, Notice::UpTo);
        if let Ok(thread) = uuid::Uuid::parse_str(thread) {
            calls.call(ThreadId(thread), notice);
        }
    }
}
