//! Calls between the processes of a Postgres database, with the thread whose log grew.
//!
//! One notification per batch, never per token: a commit that notifies takes a lock that all such commits
//! share. Its payload is the thread's id and that of its newest event. One connection per process listens, from the first
//! subscription on; while it is broken, subscribers look.

use std::time::Duration;

use parking_lot::Mutex;
use perihelion_database::{self as database, postgres::Server};
use tokio_util::task::AbortOnDropHandle;

use super::{Calls, Notice};
use crate::clock;
use crate::ids::ThreadId;

/// The channel that `append_events` notifies.
const CHANNEL: &str = "perihelion_events";

/// How long it is until the next attempt to listen.
const PATIENCE: Duration = Duration::from_secs(1);

/// Receives the calls of other processes and passes them on; it connects for the first subscriber.
pub(super) struct Listener {
    url: String,
    task: Mutex<Option<AbortOnDropHandle<()>>>,
}

impl Listener {
    pub(super) fn new(url: &str) -> Self {
        Self { url: url.to_owned(), task: Mutex::default() }
    }

    /// Starts to listen, if this is the first subscriber.
    pub(super) fn be_listening(&self, calls: &Calls<ThreadId, Notice>) {
        let mut task = self.task.lock();
        task.get_or_insert_with(|| {
            AbortOnDropHandle::new(tokio::spawn(listen(self.url.clone(), calls.clone())))
        });
    }

    /// Calls all processes that listen. This is rare, because events wake their subscribers.
    pub(super) async fn call(&self, thread: ThreadId) {
        let called = async { server(&self.url)?.notify(CHANNEL, &thread.to_string()).await };
        if let Err(error) = called.await {
            tracing::debug!(%error, %thread, "other processes could not be called; they look");
        }
    }

    pub(super) async fn close(&self) {
        let task = self.task.lock().take();
        if let Some(task) = task {
            task.abort();
            // Its cancellation is not a failure.
            let _ = task.await;
        }
    }
}

fn server(url: &str) -> Result<Server, database::Error> {
    Server::read(url, "perihelion bus")
}

/// Passes notifications on while there can be subscribers.
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
