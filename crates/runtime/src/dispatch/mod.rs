//! Who continues with which thread: wake-up calls, and the look for threads that nobody was called to.
//!
//! Enter at [`open`], which gives the [`Dispatcher`] of a store: embedded, where the threads' status is
//! the queue, or Postgres, where `graphile_worker` calls. Invariant: a wake-up call is a hint without
//! state; the store's lease and fencing token decide who runs a thread, so a call that is lost, late or
//! doubled does no harm. Deliberately absent: driving a thread, and any account of which worker lives.

mod embedded;
mod error;
mod graphile;
mod look;

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;

pub use embedded::Embedded;
pub use error::Error;
pub use graphile::Graphile;
pub use look::{Look, Wake};

use perihelion_engine::checkpoint::Store;

/// Which threads a worker continues with.
#[derive(Clone, Debug)]
pub struct Scope {
    /// Name of the graph that it runs.
    pub graph: String,
    /// A tenant whose threads are none of its business.
    pub except_tenant: Option<String>,
    /// Whether to look at every turn, so that an empty answer means that nothing is left to do.
    pub thorough: bool,
}

/// Tells a worker which threads to continue with.
#[async_trait]
pub trait Dispatcher: Send + Sync {
    /// Returns the next thread to be woken, if one is known; called while the worker has room for it.
    ///
    /// Dropping the future loses at most a wake-up call, which the next look makes up for.
    async fn next(&self) -> Result<Option<Wake>, Error>;

    /// Returns when [`Dispatcher::next`] may know more: after a call, or when it is time to look.
    async fn called(&self);

    /// Leaves a thread alone for so long: this worker cannot continue with it now.
    fn set_aside(&self, wake: &Wake, pause: Duration);

    /// Closes connections of its own.
    async fn close(&self);
}

/// Opens the dispatcher that goes with a database address and the store that was opened there.
///
/// # Errors
/// [`Error`] when the queue in the database cannot be set up.
pub async fn open(
    url: &str,
    store: Arc<dyn Store>,
    scope: Scope,
) -> Result<Arc<dyn Dispatcher>, Error> {
    if url.starts_with("postgres:") || url.starts_with("postgresql:") {
        Ok(Arc::new(Graphile::open(url, store, scope).await?))
    } else {
        Ok(Arc::new(Embedded::new(store, scope)))
    }
}
