//! Selects the threads that a worker continues: by wake-up calls, and by polling for threads without a call.
//!
//! Enter at [`open`], which returns the [`Dispatcher`] of a store. On Postgres, a table holds the calls; elsewhere, the status
//! of the threads is the queue. Invariant: a wake-up call is a hint without state. The store's lease and fencing token decide
//! who runs a thread, so a lost, late or duplicate call does no harm. Deliberately absent: driving a thread, and any list of
//! live workers.

mod look;
mod postgres;

use std::sync::Arc;
use std::time::Duration;

use self::look::Look;
pub use self::look::Wake;
use self::postgres::Calls;
use perihelion_engine::checkpoint::{Error, Store};
use perihelion_engine::clock;
use perihelion_engine::failpoint::{Point, wrap};

/// How often the workers of one machine poll; the poll reads only an index of active threads.
const POLL_EVERY: Duration = Duration::from_millis(100);

/// How often workers with wake-up calls poll for threads with an expired lease, a dead holder or a lost call.
///
/// A thread is taken over within its lease plus this time.
const POLL_BESIDE_CALLS: Duration = Duration::from_millis(500);

/// A call that was not received within this time counts as lost.
const LOST_AFTER: Duration = Duration::from_secs(1);

#[derive(Clone, Debug)]
pub struct Scope {
    pub graphs: Vec<String>,
    /// A tenant whose threads it never continues.
    pub except_tenant: Option<String>,
    /// Whether to poll every time, so that an empty result means that no work is left.
    pub thorough: bool,
}

pub struct Dispatcher {
    look: Look,
    /// The wake-up calls; `None` for a store in a file or in memory, whose processes share one machine.
    calls: Option<Calls>,
}

impl Dispatcher {
    /// Returns the next thread to continue, if one is known; called while the worker has capacity for it.
    ///
    /// Dropping the future loses at most a wake-up call, which the next poll makes up for.
    pub async fn next(&self) -> Result<Option<Wake>, Error> {
        // Poll first: on a busy queue, a thread without a call must not wait for the last call.
        let found = self.look.next().await?;
        let Some(calls) = self.calls.as_ref().filter(|_| found.is_none()) else { return Ok(found) };
        while let Some((thread, is_there)) = wrap(Point::QueueTake, calls.take()).await? {
            if is_there && let Some(wake) = self.look.wake(thread) {
                return Ok(Some(wake));
            }
        }
        Ok(None)
    }

    /// Returns when [`Dispatcher::next`] may find more: after a call, or at the time of the next poll.
    pub async fn called(&self) {
        let due = self.look.until_due();
        match &self.calls {
            Some(calls) => calls.called(due).await,
            None => clock::sleep(due).await,
        }
    }

    /// Skips a thread for a time, because this worker cannot continue it now.
    pub fn set_aside(&self, wake: &Wake, pause: Duration) {
        self.look.set_aside(wake, pause);
    }

    pub async fn close(&self) {
        if let Some(calls) = &self.calls {
            calls.close().await;
        }
    }
}

/// Opens the dispatcher of a database address and the store that was opened there.
///
/// # Errors
/// `database::Error::Unreachable` for an invalid address.
pub fn open(url: &str, store: Arc<dyn Store>, scope: Scope) -> Result<Arc<Dispatcher>, Error> {
    let has_calls = url.starts_with("postgres:") || url.starts_with("postgresql:");
    let calls = if has_calls { Some(Calls::new(url, scope.clone())?) } else { None };
    let queued_for = if has_calls && !scope.thorough { LOST_AFTER } else { Duration::ZERO };
    let every = if has_calls { POLL_BESIDE_CALLS } else { POLL_EVERY };
    Ok(Arc::new(Dispatcher { look: Look::new(store, scope, every, queued_for), calls }))
}
