//! Threads as files.

use super::Threads;
use crate::Error;
use perihelion_engine::checkpoint::{ThreadDump, ThreadInfo};
use perihelion_engine::ids::ThreadId;
use perihelion_engine::journal;

impl Threads {
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
