//! Threads as people look after them: found, read, listed, forked, changed, cancelled, moved and removed.
//!
//! Enter at [`Threads`]; it needs a store, but no servers and no model. Invariant: decisions about a thread (its name,
//! its status, whether it can be deleted) are made here, and only shown elsewhere.

mod approvals;
mod archive;
mod cancel;
mod live_status;
mod naming;
mod prune;
mod state;
mod steps;
mod view;

use std::sync::Arc;

pub use self::approvals::WaitingApproval;
pub use self::archive::ArchiveReport;
pub use self::cancel::Cancelled;
pub use self::live_status::{Listing, LiveStatus};
pub use self::naming::Holder;
pub use self::prune::{PruneOptions, PruneReport, Pruned};
pub use self::state::RawState;
pub use self::steps::StepView;
pub(super) use self::steps::next_nodes;
pub use self::view::{ThreadView, is_abandoned};

use crate::{Error, Runtime, Served, open_store, open_store_to_read};
use perihelion_engine::checkpoint::{Store, ThreadDump, ThreadInfo, ThreadStatus};
use perihelion_engine::ids::ThreadId;
use perihelion_engine::{journal, runner};
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
    pub fn of(store: Arc<dyn Store>) -> Self {
        Self(store)
    }

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

impl Threads {
    /// Makes a thread whose history up to `at` is shared with `source`; `graph` is that of the source, if it is known.
    pub async fn fork(
        &self,
        source: ThreadId,
        at: u64,
        id: ThreadId,
        title: Option<String>,
        graph: Option<&dyn Served>,
    ) -> Result<ThreadInfo, Error> {
        let store = self.0.as_ref();
        store.check_keys().await?;
        let info = store.info(source).await?;
        if let Some(graph) = graph {
            // A damaged thread leaves no fork behind that cannot be continued.
            graph.state(source, Some(at)).await?;
        }
        Ok(runner::fork(store, info, at, id, title).await?)
    }

    /// Returns everything of a thread, after a check of the keys of all calls in its journal.
    ///
    /// # Errors
    /// [`checkpoint::Error::Corrupt`](perihelion_engine::checkpoint::Error::Corrupt) for a journal that was altered; whatever the
    /// store reports.
    pub async fn export(&self, thread: ThreadId) -> Result<ThreadDump, Error> {
        let dump = self.0.export(thread).await?;
        journal::verify_dump(&dump)?;
        Ok(dump)
    }

    /// Keeps a thread that was exported, with its teams' threads, for the tenant that it is of or for another one.
    ///
    /// # Errors
    /// As [`Threads::export`]; [`checkpoint::Error::ThreadExists`](perihelion_engine::checkpoint::Error::ThreadExists).
    pub async fn import(
        &self,
        mut dump: ThreadDump,
        tenant: Option<&str>,
    ) -> Result<ThreadInfo, Error> {
        journal::verify_dump(&dump)?;
        if let Some(tenant) = tenant {
            give(&mut dump, tenant);
        }
        self.0.check_keys().await?;
        self.0.import(&dump).await?;
        self.info(dump.info.id).await
    }
}

fn give(dump: &mut ThreadDump, tenant: &str) {
    tenant.clone_into(&mut dump.info.tenant);
    dump.children.iter_mut().for_each(|child| give(child, tenant));
}

/// Whether a thread goes that is under way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Removal {
    /// It stays, also if another process claimed it since it was read.
    AtRest,
    /// It is deleted: its run loses its unfinished work, and fails.
    Forced,
}

impl Threads {
    /// Refuses to delete a thread that is under way, unless that is wanted.
    ///
    /// # Errors
    /// [`Error::UnderWay`] naming who is at work on it.
    pub fn check_removal(info: &ThreadInfo, removal: Removal) -> Result<(), Error> {
        match under_way(info).filter(|_| removal == Removal::AtRest) {
            Some(how) => Err(Error::UnderWay { thread: info.id, how }),
            None => Ok(()),
        }
    }

    /// Deletes a thread and everything of it; forks keep the history that they share.
    ///
    /// # Errors
    /// As [`Threads::check_removal`], and whatever the store reports.
    pub async fn remove(&self, info: &ThreadInfo, removal: Removal) -> Result<(), Error> {
        Self::check_removal(info, removal)?;
        match removal {
            Removal::AtRest => self.0.delete_as_seen(info).await?,
            Removal::Forced => self.0.delete(info.id).await?,
        }
        Ok(())
    }
}

/// Names the process that works on a thread; `None` if it is known to be dead.
fn under_way(info: &ThreadInfo) -> Option<String> {
    match info.status {
        ThreadStatus::Busy if !is_abandoned(info) => {
            let owner = Holder::of(info.owner.as_deref().unwrap_or_default());
            Some(format!("being run by {owner}"))
        }
        ThreadStatus::Queued => Some("queued for the workers".to_owned()),
        _ => None,
    }
}
