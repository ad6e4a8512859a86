//! Ends what a process holds, whichever it is: it is asked, and its thread is taken from it only when it does not answer.
//!
//! A service hears of the runs that it keeps; a process that holds a thread and keeps no run of it, such as a worker or a
//! command line, hears of the thread ([`Stops`]). Either ends the run as its own stop would: what was sent is awaited and
//! recorded, nothing new is begun, and its teams end with it.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use perihelion_database::Database;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::Error;
use super::kept::{self, Cancel, Kept, RunStatus};
use perihelion_engine::checkpoint::ThreadInfo;
use perihelion_engine::clock;
use perihelion_engine::ids::ThreadId;
use perihelion_runtime::{Cancelled, Holder, LiveStatus, Threads};
use perihelion_settings::config::Settings;

/// How often a process looks for what it is to end.
const LOOK_EVERY: Duration = Duration::from_millis(500);

/// How what was under way on a thread has ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stopped {
    /// Who was at work on it; nobody where it waited for the workers.
    pub had: Option<Holder>,
    /// Whether the thread was taken from them: they had not ended it by themselves in time.
    pub by_force: bool,
}

/// Ends what is under way on a thread: its process is asked, and loses the thread where it has not stopped within `most`.
///
/// `None` where nothing was under way.
///
/// # Errors
/// [`Error::Rows`] when the database cannot be used, and whatever the store reports.
pub async fn stop(
    settings: &Settings,
    threads: &Threads,
    thread: ThreadId,
    most: Duration,
) -> Result<Option<Stopped>, Error> {
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

/// Has the processes that drive, keep or hold a thread end what they do; returns whether they did, within `most`.
///
/// False also where there was nobody to ask: no run of a service, and no living holder.
async fn ask_to_stop(
    url: &str,
    threads: &Threads,
    info: &ThreadInfo,
    most: Duration,
) -> Result<bool, Error> {
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
) -> Result<(), Error> {
    let has_stopped = is_heard(kept, threads, thread).await?
        && until_at_rest(kept, threads, thread, most).await?;
    if !has_stopped {
        threads.cancel(thread).await?;
    }
    Ok(())
}

/// Asks the services for the runs of a thread; returns how many of them are driven.
async fn ask_services(kept: &Kept, thread: ThreadId) -> Result<usize, Error> {
    let open = kept.open_ids(thread.0).await?;
    ask_for(kept, &open).await?;
    Ok(open.iter().filter(|(_, status)| *status == RunStatus::Running).count())
}

async fn ask_for(kept: &Kept, open: &[(Uuid, RunStatus)]) -> Result<(), Error> {
    for (run, _) in open {
        kept.ask_to_cancel(*run, Cancel::Interrupt, clock::now()).await?;
    }
    Ok(())
}

/// Asks the holder of a thread; returns whether there is one that is not known to be dead.
async fn is_heard(kept: &Kept, threads: &Threads, thread: ThreadId) -> Result<bool, Error> {
    Ok(kept.ask_holder(thread.0, clock::now()).await?
        && LiveStatus::of(&threads.info(thread).await?) != LiveStatus::Crashed)
}

async fn until_at_rest(
    kept: &Kept,
    threads: &Threads,
    thread: ThreadId,
    most: Duration,
) -> Result<bool, Error> {
    let is_at_rest = threads.is_at_rest_within(thread, most).await?;
    kept.forget_asked(thread.0).await?;
    Ok(is_at_rest)
}

/// The threads that this process holds, each with what ends its run for good.
#[derive(Debug)]
pub struct Stops {
    url: String,
    running: Mutex<HashMap<ThreadId, CancellationToken>>,
}

impl Stops {
    /// Makes the list of a process that holds threads in the database at `url`.
    pub fn new(url: &str) -> Self {
        Self { url: url.to_owned(), running: Mutex::default() }
    }

    /// Notes a thread whose run is about to begin; what it returns is cancelled when somebody wants the run ended.
    pub fn register(&self, thread: ThreadId) -> CancellationToken {
        let withdrawn = CancellationToken::new();
        self.running().insert(thread, withdrawn.clone());
        withdrawn
    }

    /// Forgets a thread whose run has ended.
    pub fn release(&self, thread: ThreadId) {
        self.running().remove(&thread);
    }

    /// Looks for what is to be ended, for as long as it is awaited; opens the database when it has something to look for.
    pub async fn keep(&self) {
        let mut kept = None;
        loop {
            clock::sleep(LOOK_EVERY).await;
            if self.running().is_empty() {
                continue;
            }
            if let Err(error) = self.look(&mut kept).await {
                tracing::debug!(%error, "could not look for stop requests; trying again");
            }
        }
    }

    async fn look(&self, kept: &mut Option<Kept>) -> Result<(), kept::Error> {
        let kept = match kept {
            Some(kept) => kept,
            // Whose it is does not matter: it looks for all.
            None => kept.insert(Kept::new(Database::open(&self.url).await?, "")),
        };
        for thread in kept.asked_of_holders().await? {
            if let Some(withdrawn) = self.running().get(&ThreadId(thread)) {
                withdrawn.cancel();
            }
        }
        Ok(())
    }

    fn running(&self) -> MutexGuard<'_, HashMap<ThreadId, CancellationToken>> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
