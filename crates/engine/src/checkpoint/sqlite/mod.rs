//! Threads in one SQLite file, the default for one machine.
//!
//! Enter at [`SqliteStore`]; what it does as Postgres does is in [`both`](super::both), each file here is what it does in
//! a way of its own. Invariant: one connection writes, every write is one transaction that checks the fencing token, and
//! it is on disk when the call returns (write-ahead log, `synchronous = FULL`). Deliberately absent: any lock of our own
//! between processes; SQLite's does, and a writer waits for it.

mod journal;
mod leases;
mod steps;

use std::sync::Arc;

use async_trait::async_trait;
use perihelion_database::{
    Database,
    address::path_of,
    migrations,
    sqlite::{Deleted, File},
};
use sqlx::SqliteConnection;

use super::{Error, Outbox, StateCache, Store, both::Backend};

/// A store in one SQLite file, shared by the processes of one machine.
pub struct SqliteStore {
    file: Arc<File>,
    database: Database,
    states: StateCache,
}

impl SqliteStore {
    /// Opens a file, named as `sqlite:PATH` or as a bare path, and migrates it.
    ///
    /// # Errors
    /// [`Error::Database`] when the file cannot be opened, is not one of ours, or a newer version migrated it.
    pub async fn open(url_or_path: &str) -> Result<Self, Error> {
        let path = path_of(url_or_path)?;
        let file = Arc::new(File::open(&path, Deleted::Left).await?);
        migrations::run_sqlite(&file).await?;
        Ok(Self { database: Arc::clone(&file).into(), file, states: StateCache::default() })
    }

    /// Lends the writing connection to statements of the caller's own; commits wait until it is back.
    ///
    /// # Errors
    /// Whatever `work` returns.
    pub async fn with_connection<T>(
        &self,
        work: impl AsyncFnOnce(&mut SqliteConnection) -> Result<T, sqlx::Error>,
    ) -> Result<T, Error> {
        let mut writer = self.file.writer().await?;
        Ok(work(writer.connection()?).await.map_err(|error| self.file.refine(error))?)
    }
}

impl Backend for SqliteStore {
    fn database(&self) -> &Database {
        &self.database
    }

    fn states(&self) -> &StateCache {
        &self.states
    }
}

#[async_trait]
impl Store for SqliteStore {
    fn outbox(&self) -> Option<&dyn Outbox> {
        Some(self)
    }

    fn describe(&self) -> String {
        self.database.shown().to_owned()
    }

    async fn close(&self) {
        self.database.close().await;
    }
}
