//! Threads in one SQLite file, the default for one machine.
//!
//! Enter at [`SqliteStore`]; each file is one concern behind it. Invariant: one connection writes, every
//! write is one transaction that checks the fencing token, and it is on disk when the call returns
//! (write-ahead log, `synchronous = FULL`). Deliberately absent: any lock of our own between processes;
//! SQLite's does, and a writer waits for it.

mod blobs;
mod commit;
mod effects;
mod events;
mod history;
mod leases;
mod outbox;
mod refusal;
mod removal;
mod threads;
mod transfer;

use std::time::Duration;

use async_trait::async_trait;
use perihelion_database::{
    address::path_of,
    migrations,
    sqlite::{Deleted, File},
};
use sqlx::SqliteConnection;

use super::{
    BlobRow, Commit, EffectRow, EffectSettlement, Effects, Encoded, Error, EventMark, EventRow,
    Events, Leases, Loaded, NewThread, OpenInterrupt, Outbox, PendingRow, Questions, RunEnd,
    RunRow, SnapshotRow, StepRow, Steps, Store, ThreadDump, ThreadFilter, ThreadInfo, ThreadStatus,
    Threads, Transfer, Waiting, Wanted, retry::retry,
};
use crate::ids::{InterruptId, RunId, ThreadId};

/// A store in one SQLite file, shared by the processes of one machine.
pub struct SqliteStore {
    file: File,
}

impl SqliteStore {
    /// Opens a file, named as `sqlite:PATH` or as a bare path, and migrates it.
    ///
    /// # Errors
    /// [`Error::Unreachable`] when the file cannot be opened or is not one of ours, [`Error::Newer`] when
    /// a newer version migrated it.
    pub async fn open(url_or_path: &str) -> Result<Self, Error> {
        let path = path_of(url_or_path)?;
        let file = File::open(&path, Deleted::Left).await?;
        migrations::run_sqlite(&file).await?;
        Ok(Self { file })
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

#[async_trait]
impl Threads for SqliteStore {
    async fn create(&self, new: NewThread) -> Result<ThreadInfo, Error> {
        threads::create(&self.file, &new, None).await
    }

    async fn info(&self, thread: ThreadId) -> Result<ThreadInfo, Error> {
        Ok(threads::info(&self.file, thread).await?.info)
    }

    async fn fork(&self, source: ThreadId, at: u64, new: NewThread) -> Result<ThreadInfo, Error> {
        threads::create(&self.file, &new, Some((source, at))).await
    }

    async fn list(&self, filter: &ThreadFilter) -> Result<Vec<ThreadInfo>, Error> {
        threads::list(&self.file, filter).await
    }

    async fn count_threads(&self) -> Result<Vec<(ThreadStatus, u64)>, Error> {
        threads::count(&self.file).await
    }

    async fn delete(&self, thread: ThreadId) -> Result<(), Error> {
        removal::delete(&self.file, thread, None).await
    }

    async fn delete_as_seen(&self, seen: &ThreadInfo) -> Result<(), Error> {
        removal::delete(&self.file, seen.id, Some(seen)).await
    }

    async fn truncate(&self, thread: ThreadId, seq: u64) -> Result<(), Error> {
        removal::truncate(&self.file, thread, seq).await
    }
}

#[async_trait]
impl Leases for SqliteStore {
    async fn claim(
        &self,
        thread: ThreadId,
        owner: &str,
        ttl: Duration,
        force: bool,
    ) -> Result<ThreadInfo, Error> {
        leases::claim(&self.file, thread, None, owner, ttl, force).await
    }

    async fn claim_at(
        &self,
        thread: ThreadId,
        fence: u64,
        owner: &str,
        ttl: Duration,
        force: bool,
    ) -> Result<ThreadInfo, Error> {
        leases::claim(&self.file, thread, Some(fence), owner, ttl, force).await
    }

    async fn waiting(&self, wanted: &Wanted) -> Result<Vec<Waiting>, Error> {
        leases::waiting(&self.file, wanted).await
    }

    async fn renew(&self, thread: ThreadId, fence: u64, ttl: Duration) -> Result<(), Error> {
        leases::renew(&self.file, thread, fence, ttl).await
    }

    async fn begin_run(
        &self,
        thread: ThreadId,
        fence: u64,
        run: RunId,
        owes_trace: bool,
    ) -> Result<RunRow, Error> {
        leases::begin_run(&self.file, thread, fence, run, owes_trace).await
    }

    async fn end_run(
        &self,
        thread: ThreadId,
        fence: u64,
        run: RunId,
        end: RunEnd<'_>,
    ) -> Result<(), Error> {
        leases::end_run(&self.file, thread, fence, run, end).await
    }

    async fn runs(&self, thread: ThreadId) -> Result<Vec<RunRow>, Error> {
        leases::runs(&self.file, thread).await
    }
}

#[async_trait]
impl Steps for SqliteStore {
    async fn commit(&self, commit: &Commit) -> Result<(), Error> {
        commit::commit(&self.file, commit).await
    }

    async fn save_pending(
        &self,
        thread: ThreadId,
        fence: u64,
        row: &PendingRow,
        blobs: &[BlobRow],
    ) -> Result<(), Error> {
        effects::save_pending(&self.file, thread, fence, row, blobs).await
    }

    async fn load(&self, thread: ThreadId, at: Option<u64>) -> Result<Loaded, Error> {
        history::load(&self.file, thread, at).await
    }

    async fn history(
        &self,
        thread: ThreadId,
        before: Option<u64>,
        limit: u32,
    ) -> Result<Vec<StepRow>, Error> {
        history::history(&self.file, thread, before, limit).await
    }

    async fn put_snapshot(&self, thread: ThreadId, snapshot: &SnapshotRow) -> Result<(), Error> {
        history::put_snapshot(&self.file, thread, snapshot).await
    }

    async fn blob(&self, thread: ThreadId, hash: &[u8; 32]) -> Result<Option<BlobRow>, Error> {
        blobs::find(&self.file, thread, hash).await
    }
}

#[async_trait]
impl Effects for SqliteStore {
    async fn record_effects(
        &self,
        thread: ThreadId,
        fence: u64,
        effects: &[EffectRow],
    ) -> Result<(), Error> {
        let write = || effects::record(&self.file, thread, fence, effects);
        retry(effects.iter().any(|effect| effect.outcome.is_some()), write).await
    }

    async fn settle_effect(
        &self,
        thread: ThreadId,
        fence: u64,
        end: &EffectSettlement,
    ) -> Result<(), Error> {
        let write = || effects::settle(&self.file, thread, fence, end);
        retry(end.outcome.is_some(), write).await
    }

    async fn effects(&self, thread: ThreadId, step: Option<u64>) -> Result<Vec<EffectRow>, Error> {
        effects::effects(&self.file, thread, step).await
    }

    async fn effects_from(&self, thread: ThreadId, step: u64) -> Result<Vec<EffectRow>, Error> {
        effects::effects_from(&self.file, thread, step).await
    }
}

#[async_trait]
impl Questions for SqliteStore {
    async fn open_interrupts(&self, thread: ThreadId) -> Result<Vec<OpenInterrupt>, Error> {
        effects::open_interrupts(&self.file, thread).await
    }

    async fn answer(&self, interrupt: InterruptId, answer: &Encoded) -> Result<(), Error> {
        effects::answer(&self.file, interrupt, answer).await
    }
}

#[async_trait]
impl Events for SqliteStore {
    async fn append_events(
        &self,
        thread: ThreadId,
        fence: u64,
        batch: &EventRow,
    ) -> Result<(), Error> {
        events::append(&self.file, thread, fence, batch).await
    }

    async fn event_mark(&self, thread: ThreadId) -> Result<EventMark, Error> {
        events::mark(&self.file, thread).await
    }

    async fn events_after(
        &self,
        thread: ThreadId,
        after: u64,
        limit: u32,
    ) -> Result<Vec<EventRow>, Error> {
        events::after(&self.file, thread, after, limit).await
    }

    async fn prune_events(&self, kept: Duration, most: u32) -> Result<u64, Error> {
        events::prune(&self.file, kept, most).await
    }
}

#[async_trait]
impl Transfer for SqliteStore {
    async fn export(&self, thread: ThreadId) -> Result<ThreadDump, Error> {
        transfer::export(&self.file, thread).await
    }

    async fn import(&self, dump: &ThreadDump) -> Result<(), Error> {
        transfer::import(&self.file, dump).await
    }
}

#[async_trait]
impl Store for SqliteStore {
    fn outbox(&self) -> Option<&dyn Outbox> {
        Some(self)
    }

    fn describe(&self) -> String {
        self.file.shown().to_owned()
    }

    async fn close(&self) {
        self.file.close().await;
    }
}
