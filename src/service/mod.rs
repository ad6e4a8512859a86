//! Runs that clients ask for: kept, driven one at a time per thread, followed and cancelled from any process.
//!
//! Enter at [`Service::open`]. Invariants: what was accepted is a row before the client hears of it; a run whose
//! process died is continued by another one; a run's status is durable before its stream ends. Deliberately
//! absent: HTTP and the shapes of any protocol; those are `api`'s.

mod answers;
mod cancel;
mod drive;
mod error;
mod happening;
mod keeper;
mod listen;
mod order;
mod runs;
mod threads;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use perihelion_database::Database;
use tokio::sync::broadcast;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use uuid::Uuid;

pub use error::Error;
pub use happening::{Happening, Heard};
pub use listen::{From, Listener, Next};
pub use order::{Asked, Order, Turn};
pub use perihelion_service_rows as kept;
pub use runs::Accept;
pub use threads::{Checkpoint, Standing, ThreadView};

use self::kept::Kept;
use crate::runner::owner_name;
use crate::runtime::Runtime;

/// Names of runs that may end unheard by one that waits; it then looks.
const ENDED: usize = 1_024;

/// The runs of one process, on a runtime and the rows beside its threads; cheap to clone.
#[derive(Clone)]
pub struct Service(Arc<Parts>);

struct Parts {
    runtime: Arc<Runtime>,
    kept: Kept,
    /// Name under which this process drives runs.
    owner: String,
    /// The runs that this process drives, with what stops each.
    driven: Mutex<HashMap<Uuid, CancellationToken>>,
    /// Names runs that ended in this process.
    ended: broadcast::Sender<Uuid>,
    /// Cancelled when this process is to end.
    stop: CancellationToken,
    tasks: TaskTracker,
}

impl Service {
    /// Opens the rows beside the threads of a runtime.
    ///
    /// # Errors
    /// [`Error::Rows`] when the database cannot be opened, [`Error::NoDatabase`] when the threads are in memory alone.
    pub async fn open(runtime: Arc<Runtime>, stop: CancellationToken) -> Result<Self, Error> {
        let url = runtime.settings().store.database.expose().to_owned();
        if url.starts_with("memory:") {
            return Err(Error::NoDatabase);
        }
        let database = Database::open(&url).await.map_err(kept::Error::from)?;
        let tenant = runtime.runner().tenant().to_owned();
        let (ended, _) = broadcast::channel(ENDED);
        Ok(Self(Arc::new(Parts {
            runtime,
            kept: Kept::new(database, &tenant),
            owner: owner_name(),
            driven: Mutex::default(),
            ended,
            stop,
            tasks: TaskTracker::new(),
        })))
    }

    /// Returns the runtime.
    pub fn runtime(&self) -> &Arc<Runtime> {
        &self.0.runtime
    }

    /// Returns the rows.
    pub fn kept(&self) -> &Kept {
        &self.0.kept
    }

    /// Returns what is cancelled when the process is to end.
    pub fn stop(&self) -> &CancellationToken {
        &self.0.stop
    }

    /// Waits for runs under way to be left to other processes, after a stop, and closes the rows.
    pub async fn close(self) {
        self.0.tasks.close();
        self.0.tasks.wait().await;
        if let Err(error) = self.0.kept.leave_runs(&self.0.owner).await {
            tracing::warn!(%error, "runs could not be left to other processes; they find them by themselves");
        }
        self.0.kept.close().await;
    }

    fn driven(&self) -> std::sync::MutexGuard<'_, HashMap<Uuid, CancellationToken>> {
        self.0.driven.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
