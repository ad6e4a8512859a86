//! Threads as people look after them: found, read, listed, forked, changed, cancelled, moved and removed.
//!
//! Enter at [`Threads`]; it needs a store, but no servers and no model. Invariant: decisions about a thread (its name,
//! its status, whether it can be deleted) are made here, and only shown elsewhere.

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
mod view;

use std::sync::Arc;

pub use self::approvals::WaitingApproval;
pub use self::cancel::Cancelled;
pub use self::live_status::{Listing, LiveStatus};
pub use self::naming::Holder;
pub use self::opening::{keyring, open_store, open_store_to_read};
pub use self::prune::{PruneOptions, PruneReport, Pruned};
pub use self::removal::Removal;
pub use self::state::RawState;
pub use self::steps::StepView;
pub(super) use self::steps::next_nodes;
pub use self::view::{ThreadView, is_abandoned};

use super::{Error, Runtime};
use perihelion_engine::checkpoint::{Store, ThreadInfo};
use perihelion_engine::ids::ThreadId;
use perihelion_settings::config::Settings;

/// The threads of a store; cheap to clone.
#[derive(Clone)]
pub struct Threads(Arc<dyn Store>);

impl Runtime {
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
    pub async fn open(settings: &Settings) -> Result<Self, Error> {
        Ok(Self(open_store(settings).await?))
    }

    /// Opens threads to read existing ones; creates no database.
    pub async fn open_to_read(settings: &Settings) -> Result<Self, Error> {
        Ok(Self(open_store_to_read(settings).await?))
    }

    pub fn store(&self) -> &Arc<dyn Store> {
        &self.0
    }

    /// Closes the store, for all who have it.
    pub async fn close(&self) {
        self.0.close().await;
    }

    pub async fn info(&self, thread: ThreadId) -> Result<ThreadInfo, Error> {
        Ok(self.0.info(thread).await?)
    }
}

#[cfg(test)]
mod tests;
