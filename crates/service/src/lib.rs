//! Runs that clients ask for: kept, driven one at a time per thread, followed and cancelled from any process.
//!
//! Enter at [`Service::open`]. Invariants: an accepted run is stored before the client gets the response. A run whose
//! process died is continued by another process. A run's status is durable before its stream ends. Deliberately absent:
//! HTTP and the shapes of any protocol; those are `api`'s.

mod answering;
mod answers;
mod approvals;
mod checkpoints;
mod claims;
mod crons;
mod daily_budget;
mod drive;
mod edits;
mod ends;
mod error;
mod imports;
mod listen;
mod monitor;
mod order;
mod owners;
mod pending_run;
mod pieces;
mod run_result;
mod runs;
mod schedule;
mod search;
mod stops;
mod sweep;
mod taken_over;
mod thread_runs;
mod threads;
mod turn_question;
mod words;
pub mod worker;

use std::collections::HashMap;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, OnceLock};

use chrono::{DateTime, Utc};
use parking_lot::Mutex;
use perihelion_people::{People, Principal, Scope};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use uuid::Uuid;

pub use checkpoints::{Checkpoint, CheckpointIds, StepRun};
pub use crons::Work;
pub use daily_budget::Limit;
pub use edits::Edits;
pub use error::{Error, Result};
pub use listen::{Listener, Next, StartAt};
pub use order::{Along, Approvals, Asked, Order, assistant_of};
pub use perihelion_service_rows as kept;
pub use pieces::{LoggedChange, ThreadChange};
pub use run_result::RunSummary;
pub use runs::{Accept, Finished, Followers};
pub use schedule::Schedule;
pub use stops::{Stopped, Stops, stop};
pub use thread_runs::BegunRuns;
pub use threads::{ClientStatus, StatesOf, ThreadView};

use self::claims::Stop;
use self::kept::Kept;
use perihelion_engine::bus::Calls;
use perihelion_engine::clock;
use perihelion_engine::runner::owner_name;
use perihelion_runtime::{Audit, Runtime, keyring};

/// The runs of a process, on a runtime and the rows next to its threads, as visible to a caller; cheap to clone.
///
/// Unless a method says otherwise, it fails with [`Error::Rows`] or [`Error::Runtime`] when the database or the store
/// does, with [`Error::UnknownThread`] for a thread that the tenant does not have, and with [`Error::OthersThread`] for a
/// change of another user's thread.
#[derive(Clone)]
pub struct Service {
    parts: Arc<Parts>,
    seen: Arc<Seen>,
}

struct Seen {
    who: Principal,
    kept: Kept,
}

struct Parts {
    runtime: Arc<Runtime>,
    people: People,
    since: DateTime<Utc>,
    /// Name under which this process drives runs.
    owner: String,
    /// The runs that a task of this process drives or is about to, with what stops each.
    driven: Mutex<HashMap<Uuid, Stop>>,
    /// Wakes the followers of a run that ended in this process.
    ended: Calls<Uuid, Option<Arc<Finished>>>,
    /// Sets the followers of runs that they did not start.
    followers: OnceLock<Arc<dyn Followers>>,
    /// Whether old requests for approval were looked at, which have expired rather than been withdrawn.
    are_stale_expired: AtomicBool,
    /// Locked while this process deletes threads that were created for one run each.
    sweeping: Arc<tokio::sync::Mutex<()>>,
    /// Locked while this process archives threads.
    archiving: Arc<tokio::sync::Mutex<()>>,
    /// Cancelled when this process is to end.
    stop: CancellationToken,
    tasks: TaskTracker,
}

impl Service {
    /// Uses the rows next to the threads of a runtime, in its database.
    ///
    /// # Errors
    /// [`Error::NoDatabase`] when the threads are in memory alone.
    pub fn open(runtime: Arc<Runtime>, stop: CancellationToken) -> Result<Self> {
        let database = runtime.database().filter(|database| database.shown() != "memory:");
        let database = database.cloned().ok_or(Error::NoDatabase)?;
        let who = Principal::loopback(&runtime.runner().tenant);
        let people = People::new(database.clone());
        runtime.keep_audit(Audit::new(people.clone(), &who.user));
        let parts = Parts {
            runtime,
            people,
            since: clock::now(),
            owner: owner_name(),
            driven: Mutex::default(),
            ended: Calls::default(),
            followers: OnceLock::new(),
            are_stale_expired: AtomicBool::new(false),
            sweeping: Arc::default(),
            archiving: Arc::default(),
            stop,
            tasks: TaskTracker::new(),
        };
        let mut kept = Kept::new(database, &who.tenant);
        if let Some(keys) = keyring(parts.runtime.settings())? {
            kept = kept.sealed_by(keys);
        }
        Ok(Self { parts: Arc::new(parts), seen: Arc::new(Seen { who, kept }) })
    }

    /// Returns the service for a caller, limited to the threads of their tenant.
    #[must_use]
    pub fn seen_by(&self, who: Principal) -> Self {
        let kept = self.kept().for_tenant(&who.tenant);
        Self { parts: Arc::clone(&self.parts), seen: Arc::new(Seen { who, kept }) }
    }

    /// Returns the service as this process sees the runs of a tenant that it drives.
    fn driving_for(&self, tenant: &str) -> Self {
        self.seen_by(Principal::loopback(tenant))
    }

    pub fn who(&self) -> &Principal {
        &self.seen.who
    }

    pub fn tenant(&self) -> &str {
        &self.seen.who.tenant
    }

    /// Refuses what anyone who sees the service may not do.
    ///
    /// # Errors
    /// [`Error::Forbidden`].
    pub fn permit(&self, scope: Scope) -> Result<()> {
        if self.seen.who.may(scope) { Ok(()) } else { Err(Error::Forbidden(scope.as_str())) }
    }

    pub fn people(&self) -> &People {
        &self.parts.people
    }

    pub fn since(&self) -> DateTime<Utc> {
        self.parts.since
    }

    pub fn runtime(&self) -> &Arc<Runtime> {
        &self.parts.runtime
    }

    pub fn kept(&self) -> &Kept {
        &self.seen.kept
    }

    /// Returns the token that is cancelled when the process must end.
    pub fn stop(&self) -> &CancellationToken {
        &self.parts.stop
    }

    /// Waits for runs under way to be left to other processes, after a stop; then the runtime can be closed.
    pub async fn close(self) {
        self.parts.tasks.close();
        self.parts.tasks.wait().await;
        if let Err(error) = self.seen.kept.leave_runs(&self.parts.owner).await {
            tracing::warn!(%error, "could not release runs; other processes take them over later");
        }
    }
}
