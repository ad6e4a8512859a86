//! Threads in Postgres, for one machine or many.
//!
//! Enter at [`PostgresStore`]; what it does as SQLite does is in [`both`](super::both), each file here is what it does in
//! a way of its own. Invariant: a write that needs the
//! fencing token checks it in the statement that writes, under a lock on the thread's row, and a commit
//! is one statement and one round trip, which the commits of other threads may share. Deliberately absent: `synchronous_commit` is never touched, so
//! the server's own setting decides (its default loses nothing).

mod blobs;
mod commit;
mod commit_many;
mod events;
mod journal;
mod leases;
mod steps;
mod together;

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use perihelion_database::{
    Database, migrations,
    postgres::{Connections, SILENCE},
    query,
};
use sqlx::PgConnection;

use super::{Commit, Error, Outbox, StateCache, Store, both::Backend};
use crate::clock::{self, Clock};

/// A store in a Postgres database, shared by any number of processes.
pub struct PostgresStore {
    connections: Arc<Connections>,
    database: Database,
    states: StateCache,
    commits: together::Group<Commit>,
    appends: together::Group<events::Append>,
}

impl PostgresStore {
    /// Connects and migrates; one query when the database is up to date.
    ///
    /// # Errors
    /// [`Error::Database`] when the address or the server is no good, or a newer version migrated the database.
    pub async fn open(url: &str) -> Result<Self, Error> {
        Self::open_within(url, SILENCE).await
    }

    /// Opens as [`PostgresStore::open`] does, with another bound than 10 s on how long the server may be silent on a
    /// statement that a run waits for.
    ///
    /// A connection that was silent for longer is given up; work on whole threads has multiples of it.
    ///
    /// # Errors
    /// As [`PostgresStore::open`].
    pub async fn open_within(url: &str, silence: Duration) -> Result<Self, Error> {
        let connections = Arc::new(Connections::new(url, silence)?.of_all_tenants());
        migrations::run_postgres(&connections).await?;
        let commits = together::group();
        let appends = together::group();
        let states = StateCache::default();
        let database = Arc::clone(&connections).into();
        Ok(Self { database, states, connections, commits, appends })
    }

    /// Lends the connection that the next commit would use to statements of the caller's own.
    ///
    /// # Errors
    /// Whatever `work` returns; a connection that broke is not used again.
    pub async fn with_connection<T>(
        &self,
        work: impl AsyncFnOnce(&mut PgConnection) -> Result<T, sqlx::Error>,
    ) -> Result<T, Error> {
        let mut connection = self.connections.take().await?;
        let result = work(&mut connection).await;
        Ok(connection.settle(result)?)
    }
}

impl Backend for PostgresStore {
    fn database(&self) -> &Database {
        &self.database
    }

    fn states(&self) -> &StateCache {
        &self.states
    }
}

#[async_trait]
impl Store for PostgresStore {
    fn outbox(&self) -> Option<&dyn Outbox> {
        Some(self)
    }

    async fn now(&self) -> Result<DateTime<Utc>, Error> {
        let now = query("SELECT now() AS now");
        Ok(self
            .database
            .fetch_short(&now)
            .await?
            .map_or_else(|| Ok(clock::now()), |row| row.get("now"))?)
    }

    fn clock(&self, given: DateTime<Utc>) -> Clock {
        Clock::set_by(given)
    }

    fn describe(&self) -> String {
        self.database.shown().to_owned()
    }

    /// A delta up to this size stays whole in its row (see the migration), where compressing it would cost
    /// a commit more time than the bytes are worth.
    fn compress_above(&self) -> usize {
        3800
    }

    async fn close(&self) {
        self.database.close().await;
    }
}
