//! Threads in Postgres, for one machine or many.
//!
//! Enter at [`PostgresStore`]; each file is one concern behind it. Invariant: a write that needs the
//! fencing token checks it in the statement that writes, under a lock on the thread's row, and a commit
//! is one statement and one round trip, which the commits of other threads may share. Deliberately absent: `synchronous_commit` is never touched, so
//! the server's own setting decides (its default loses nothing).

mod blobs;
mod commit;
mod commit_many;
mod effects;
mod events;
mod history;
mod leases;
mod outbox;
mod parts;
mod recording;
mod refusal;
mod removal;
mod threads;
mod together;
mod transfer;

use std::time::Duration;

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use perihelion_database::{
    migrations,
    postgres::{Connections, SILENCE},
};
use sqlx::PgConnection;

use super::{
    BlobRow, Commit, EffectRow, EffectSettlement, Effects, Encoded, Error, EventMark, EventRow,
    Events, Leases, Loaded, NewThread, OpenInterrupt, Outbox, PendingRow, Questions, RunEnd,
    RunRow, SnapshotRow, StepRow, Steps, Store, ThreadDump, ThreadFilter, ThreadInfo, ThreadStatus,
    Threads, Transfer, Waiting, Wanted, retry::retry,
};
use crate::clock::Clock;
use crate::ids::{InterruptId, RunId, ThreadId};

/// A store in a Postgres database, shared by any number of processes.
pub struct PostgresStore {
    connections: Connections,
    commits: together::Group<Commit>,
    appends: together::Group<events::Append>,
}

impl PostgresStore {
    /// Connects and migrates; one query when the database is up to date.
    ///
    /// # Errors
    /// [`Error::Unreachable`] when the address or the server is no good, [`Error::Newer`] when a newer
    /// version migrated the database.
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
        let connections = Connections::new(url, silence)?.of_all_tenants();
        migrations::run_postgres(&connections).await?;
        Ok(Self { connections, commits: together::group(), appends: together::group() })
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

#[async_trait]
impl Threads for PostgresStore {
    async fn create(&self, new: NewThread) -> Result<ThreadInfo, Error> {
        threads::create(&self.connections, &new).await
    }

    async fn info(&self, thread: ThreadId) -> Result<ThreadInfo, Error> {
        Ok(threads::info(&self.connections, thread).await?.info)
    }

    async fn fork(&self, source: ThreadId, at: u64, new: NewThread) -> Result<ThreadInfo, Error> {
        threads::fork(&self.connections, source, at, &new).await
    }

    async fn list(&self, filter: &ThreadFilter) -> Result<Vec<ThreadInfo>, Error> {
        threads::list(&self.connections, filter).await
    }

    async fn count_threads(&self) -> Result<Vec<(ThreadStatus, u64)>, Error> {
        threads::count(&self.connections).await
    }

    async fn delete(&self, thread: ThreadId) -> Result<(), Error> {
        removal::delete(&self.connections, thread, None).await
    }

    async fn delete_as_seen(&self, seen: &ThreadInfo) -> Result<(), Error> {
        removal::delete(&self.connections, seen.id, Some(seen)).await
    }

    async fn truncate(&self, thread: ThreadId, seq: u64) -> Result<(), Error> {
        removal::truncate(&self.connections, thread, seq).await
    }
}

#[async_trait]
impl Leases for PostgresStore {
    async fn claim(
        &self,
        thread: ThreadId,
        owner: &str,
        ttl: Duration,
        force: bool,
    ) -> Result<ThreadInfo, Error> {
        leases::claim(&self.connections, thread, None, owner, ttl, force).await
    }

    async fn claim_at(
        &self,
        thread: ThreadId,
        fence: u64,
        owner: &str,
        ttl: Duration,
        force: bool,
    ) -> Result<ThreadInfo, Error> {
        leases::claim(&self.connections, thread, Some(fence), owner, ttl, force).await
    }

    async fn waiting(&self, wanted: &Wanted) -> Result<Vec<Waiting>, Error> {
        leases::waiting(&self.connections, wanted).await
    }

    async fn renew(&self, thread: ThreadId, fence: u64, ttl: Duration) -> Result<(), Error> {
        leases::renew(&self.connections, thread, fence, ttl).await
    }

    async fn begin_run(
        &self,
        thread: ThreadId,
        fence: u64,
        run: RunId,
        owes_trace: bool,
    ) -> Result<RunRow, Error> {
        leases::begin_run(&self.connections, thread, fence, run, owes_trace).await
    }

    async fn end_run(
        &self,
        thread: ThreadId,
        fence: u64,
        run: RunId,
        end: RunEnd<'_>,
    ) -> Result<(), Error> {
        leases::end_run(&self.connections, thread, fence, run, end).await
    }

    async fn runs(&self, thread: ThreadId) -> Result<Vec<RunRow>, Error> {
        leases::runs(&self.connections, thread).await
    }
}

#[async_trait]
impl Steps for PostgresStore {
    async fn commit(&self, commit: &Commit) -> Result<(), Error> {
        commit_many::commit(&self.connections, &self.commits, commit).await
    }

    async fn save_pending(
        &self,
        thread: ThreadId,
        fence: u64,
        row: &PendingRow,
        blobs: &[BlobRow],
    ) -> Result<(), Error> {
        effects::save_pending(&self.connections, thread, fence, row, blobs).await
    }

    async fn load(&self, thread: ThreadId, at: Option<u64>) -> Result<Loaded, Error> {
        history::load(&self.connections, thread, at).await
    }

    async fn history(
        &self,
        thread: ThreadId,
        before: Option<u64>,
        limit: u32,
    ) -> Result<Vec<StepRow>, Error> {
        history::history(&self.connections, thread, before, limit).await
    }

    async fn put_snapshot(&self, thread: ThreadId, snapshot: &SnapshotRow) -> Result<(), Error> {
        history::put_snapshot(&self.connections, thread, snapshot).await
    }

    async fn blob(&self, thread: ThreadId, hash: &[u8; 32]) -> Result<Option<BlobRow>, Error> {
        blobs::find(&self.connections, thread, hash).await
    }
}

#[async_trait]
impl Effects for PostgresStore {
    async fn record_effects(
        &self,
        thread: ThreadId,
        fence: u64,
        effects: &[EffectRow],
    ) -> Result<(), Error> {
        let write = || recording::record(&self.connections, thread, fence, effects);
        retry(effects.iter().any(|effect| effect.outcome.is_some()), write).await
    }

    async fn settle_effect(
        &self,
        thread: ThreadId,
        fence: u64,
        end: &EffectSettlement,
    ) -> Result<(), Error> {
        let write = || effects::settle(&self.connections, thread, fence, end);
        retry(end.outcome.is_some(), write).await
    }

    async fn effects(&self, thread: ThreadId, step: Option<u64>) -> Result<Vec<EffectRow>, Error> {
        effects::effects(&self.connections, thread, step).await
    }

    async fn effects_from(&self, thread: ThreadId, step: u64) -> Result<Vec<EffectRow>, Error> {
        effects::effects_from(&self.connections, thread, step).await
    }
}

#[async_trait]
impl Questions for PostgresStore {
    async fn open_interrupts(&self, thread: ThreadId) -> Result<Vec<OpenInterrupt>, Error> {
        effects::open_interrupts(&self.connections, thread).await
    }

    async fn answer(&self, interrupt: InterruptId, answer: &Encoded) -> Result<(), Error> {
        effects::answer(&self.connections, interrupt, answer).await
    }
}

#[async_trait]
impl Events for PostgresStore {
    async fn append_events(
        &self,
        thread: ThreadId,
        fence: u64,
        batch: &EventRow,
    ) -> Result<(), Error> {
        let append = events::Append { thread, fence, batch: batch.clone() };
        together::write(&self.connections, &self.appends, &append).await
    }

    async fn event_mark(&self, thread: ThreadId) -> Result<EventMark, Error> {
        events::mark(&self.connections, thread).await
    }

    async fn events_after(
        &self,
        thread: ThreadId,
        after: u64,
        limit: u32,
    ) -> Result<Vec<EventRow>, Error> {
        events::after(&self.connections, thread, after, limit).await
    }

    async fn prune_events(&self, kept: Duration, most: u32) -> Result<u64, Error> {
        events::prune(&self.connections, kept, most).await
    }
}

#[async_trait]
impl Transfer for PostgresStore {
    async fn export(&self, thread: ThreadId) -> Result<ThreadDump, Error> {
        transfer::export(&self.connections, thread).await
    }

    async fn import(&self, dump: &ThreadDump) -> Result<(), Error> {
        transfer::import(&self.connections, dump).await
    }
}

#[async_trait]
impl Store for PostgresStore {
    fn outbox(&self) -> Option<&dyn Outbox> {
        Some(self)
    }

    async fn now(&self) -> Result<DateTime<Utc>, Error> {
        threads::now(&self.connections).await
    }

    fn clock(&self, told: DateTime<Utc>) -> Clock {
        Clock::set_by(told)
    }

    fn describe(&self) -> String {
        self.connections.shown().to_owned()
    }

    /// A delta up to this size stays whole in its row (see the migration), where compressing it would cost
    /// a commit more time than the bytes are worth.
    fn compress_above(&self) -> usize {
        3800
    }

    async fn close(&self) {
        self.connections.close().await;
    }
}
