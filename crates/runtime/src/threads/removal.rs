//! Threads that are deleted.

use super::{Holder, Threads, is_abandoned};
use crate::Error;
use perihelion_engine::checkpoint::{ThreadInfo, ThreadStatus};

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
