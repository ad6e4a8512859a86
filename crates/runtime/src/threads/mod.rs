//! Threads as people look after them: found, read, listed, forked, changed, cancelled, moved and removed.
//!
//! Enter at [`Threads`]; it needs a store and nothing else, no servers and no model. Invariant: what is decided about a
//! thread (which one a name means, how it stands, whether it may go) is decided here, and only shown elsewhere.

mod approvals;
mod cancel;
mod fork;
mod live_status;
mod naming;
mod opening;
mod prune;
mod removal;
mod state;
mod steps;
mod transfer;
mod update;
mod view;

use std::sync::Arc;

pub use self::approvals::WaitingApproval;
pub use self::cancel::Cancelled;
pub use self::live_status::{Listing, LiveStatus};
pub use self::naming::Holder;
pub use self::opening::{keyring, open_store, open_store_to_read};
pub use self::prune::{PruneOptions, PruneReport, Pruned};
pub use self::removal::Removal;
pub use self::state::{RawState, read_state};
pub use self::steps::StepView;
pub use self::view::{ThreadView, is_abandoned};

use super::{Error, Runtime};
use perihelion_engine::checkpoint::{Store, ThreadInfo};
use perihelion_engine::ids::ThreadId;
use perihelion_settings::config::Settings;

/// The threads of a store; cheap to clone.
#[derive(Clone)]
pub struct Threads(Arc<dyn Store>);

impl Runtime {
    /// Returns the threads of the runtime's store.
    pub fn threads(&self) -> Threads {
        Threads::of(Arc::clone(self.store()))
    }
}

impl Threads {
    /// Looks after the threads of a store that is open.
    pub fn of(store: Arc<dyn Store>) -> Self {
        Self(store)
    }

    /// Opens the threads of the database that the settings name.
    ///
    /// # Errors
    /// As [`open_store`].
    pub async fn open(settings: &Settings) -> Result<Self, Error> {
        Ok(Self(open_store(settings).await?))
    }

    /// Opens threads to read what is there; no database is made.
    ///
    /// # Errors
    /// As [`open_store_to_read`].
    pub async fn open_to_read(settings: &Settings) -> Result<Self, Error> {
        Ok(Self(open_store_to_read(settings).await?))
    }

    /// Returns the store.
    pub fn store(&self) -> &Arc<dyn Store> {
        &self.0
    }

    /// Closes the store, for all who have it.
    pub async fn close(&self) {
        self.0.close().await;
    }

    /// Returns a thread's row.
    ///
    /// # Errors
    /// [`checkpoint::Error::UnknownThread`](perihelion_engine::checkpoint::Error::UnknownThread).
    pub async fn info(&self, thread: ThreadId) -> Result<ThreadInfo, Error> {
        Ok(self.0.info(thread).await?)
    }
}
