//! Ends the work of any process on a thread: the process gets a request, and loses the thread only if it does not
//! respond.
//!
//! A service polls its own runs. A process that holds a thread without a stored run, such as a worker or a command
//! line, polls the thread ([`Stops`]). Both end the run as its own stop would: sent calls are awaited and recorded, no
//! other work starts, and its teams end with it.

use std::collections::HashMap;
use std::time::Duration;

use parking_lot::Mutex;

use perihelion_database::Database;
use tokio_util::sync::CancellationToken;

use super::Result;
use super::kept::{self, Cancel, Kept, RunStatus};
use perihelion_engine::checkpoint::ThreadInfo;
use perihelion_engine::clock;
use perihelion_engine::ids::ThreadId;
use perihelion_runtime::{Cancelled, Holder, LiveStatus, Threads};
use perihelion_settings::config::Settings;

const LOOK_EVERY: Duration = Duration::from_millis(500);

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stopped {
    /// The process that worked on it; `None` if it waited for a worker.
    pub had: Option<Holder>,
    /// Whether the thread was claimed from the process, which had not ended in time.
    pub by_force: bool,
}

/// Ends the active work on a thread: its process gets a request, and loses the thread if it has not stopped within
/// `most`.
///
/// `None` without active work.
///
/// # Errors
/// [`Error::Rows`](crate::Error::Rows) when the database cannot be used, and whatever the store reports.
pub async fn stop(
    settings: &Settings,
    threads: &Threads,
    thread: ThreadId,
    most: Duration,
) -> Result<Option<Stopped>> {
    let before = threads.info(thread).await?;
    let url = settings.store.database.expose();
    let has_stopped = ask_to_stop(url, threads, &before, most).await?;
    let by_force = !has_stopped;
    Ok(match threads.cancel(thread).await? {
        Some(Cancelled { had }) => Some(Stopped { had, by_force }),
        None if has_stopped => {
            Some(Stopped { had: before.owner.as_deref().map(Holder::of), by_force })
        }
        None => None,
    })
}

/// Requests the processes that drive, store or hold a thread to end; returns whether they did, within `most`.
///
/// Also false without such a process: no run of a service, and no live holder.
async fn ask_to_stop(
    url: &str,
    threads: &Threads,
    info: &ThreadInfo,
    most: Duration,
) -> Result<bool> {
    let database = Database::open(url).await.map_err(kept::Error::from)?;
    let kept = Kept::new(database, &info.tenant);
    let stopped = async {
        let driven = ask_services(&kept, info.id).await?;
        if driven > 0 || is_heard(&kept, threads, info.id).await? {
            until_at_rest(&kept, threads, info.id, most).await
        } else {
            Ok(false)
        }
    };
    let stopped = stopped.await;
    kept.close().await;
    stopped
}

/// Has the process that holds a thread end its run, and takes the thread from it when it has not done so within `most`.
pub(super) async fn end_elsewhere(
    kept: &Kept,
    threads: &Threads,
    thread: ThreadId,
    most: Duration,
) -> Result<()> {
    let has_stopped = is_heard(kept, threads, thread).await?
        && until_at_rest(kept, threads, thread, most).await?;
    if !has_stopped {
        threads.cancel(thread).await?;
    }
    Ok(())
}

/// Asks the services for the runs of a thread; returns how many of them are driven.
async fn ask_services(kept: &Kept, thread: ThreadId) -> Result<usize> {
    let open = kept.open_ids(thread.0).await?;
    for (run, _) in &open {
        kept.ask_to_cancel(thread.0, *run, Cancel::Interrupt, clock::now()).await?;
    }
    Ok(open.iter().filter(|(_, status)| *status == RunStatus::Running).count())
}

/// Sends a request to the holder of a thread; returns whether there is one that is not known to be dead.
async fn is_heard(kept: &Kept, threads: &Threads, thread: ThreadId) -> Result<bool> {
    Ok(kept.ask_holder(thread.0, clock::now()).await?
        && LiveStatus::of(&threads.info(thread).await?) != LiveStatus::Crashed)
}

async fn until_at_rest(
    kept: &Kept,
    threads: &Threads,
    thread: ThreadId,
    most: Duration,
) -> Result<bool> {
    let is_at_rest = threads.is_at_rest_within(thread, most).await?;
    kept.forget_asked(thread.0).await?;
    Ok(is_at_rest)
}

/// The threads that this process holds, each with the token that ends its run.
pub struct Stops {
    /// The rows of the requests; `None` if there can be none.
    kept: Option<Kept>,
    running: Mutex<HashMap<ThreadId, CancellationToken>>,
}

impl Stops {
    pub fn new(database: Option<&Database>) -> Self {
        // Whose it is does not matter: it looks for all.
        let kept = database.map(|database| Kept::new(database.clone(), ""));
        Self { kept, running: Mutex::default() }
    }

    /// Registers a thread whose run is about to begin; the returned token is cancelled when the run must end.
    pub fn register(&self, thread: ThreadId) -> CancellationToken {
        let withdrawn = CancellationToken::new();
        self.running.lock().insert(thread, withdrawn.clone());
        withdrawn
    }

    pub fn release(&self, thread: ThreadId) {
        self.running.lock().remove(&thread);
    }

    /// Polls for stop requests while it is awaited.
    pub async fn keep(&self) {
        let Some(kept) = &self.kept else { return };
        loop {
            clock::sleep(LOOK_EVERY).await;
            if self.running.lock().is_empty() {
                continue;
            }
            if let Err(error) = self.look(kept).await {
                tracing::debug!(%error, "could not look for stop requests; trying again");
            }
        }
    }

    async fn look(&self, kept: &Kept) -> Result<(), kept::Error> {
        for thread in kept.asked_of_holders().await? {
            if let Some(withdrawn) = self.running.lock().get(&ThreadId(thread)) {
                withdrawn.cancel();
            }
        }
        Ok(())
    }
}
