//! Encrypts what threads hold before any store sees it.
//!
//! Enter at [`SealedStore`], a store over any other. Invariants: what people, models and tools said, and
//! what follows from it, leaves this room as ciphertext only; each value fits its own place in its own
//! thread, so that one that was altered, moved or replaced by a plain one is refused. Readable stay: ids,
//! times, sizes, counts, the kind and status of rows, names of models' roles and tools, graph, tenant,
//! namespace, who holds the lease. Deliberately absent: compression, which comes before, and any
//! rewriting of rows: what was written under an older key stays under it.

mod beside;
mod keyring;
mod label;
mod seal;
mod using;
mod values;
mod whole;

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use chrono::{DateTime, Utc};

pub use self::keyring::Keyring;
pub(super) use self::label::shown;
use self::label::{Label, open_info, read_label, seal_error, seal_label};
pub(super) use self::seal::key_name;
pub(super) use self::using::check;
use super::{
    BlobRow, Commit, EffectRow, EffectSettlement, EffectStatus, Effects, Encoded, Error, EventMark,
    EventRow, Events, Leases, Loaded, NewThread, OpenInterrupt, Outbox, PendingRow, Questions,
    RunEnd, RunRow, SnapshotRow, StepRow, Steps, Store, ThreadDump, ThreadFilter, ThreadInfo,
    ThreadStatus, Threads, Transfer, Waiting, Wanted, blobs, chain,
};
use crate::clock::Clock;
use crate::ids::{InterruptId, RunId, ThreadId};

/// A store whose contents are encrypted; threads from before the first key was set open as they are.
pub struct SealedStore {
    inner: Arc<dyn Store>,
    keys: Keyring,
}

impl SealedStore {
    /// Puts encryption in front of a store.
    pub fn new(inner: Arc<dyn Store>, keys: Keyring) -> Self {
        Self { inner, keys }
    }

    /// Returns the names under which a row may stand in the database, the likeliest first.
    fn stored_keys(&self, key: &[u8]) -> impl Iterator<Item = Vec<u8>> {
        let blinded: Vec<_> = self.keys.keys().iter().map(|one| one.blind(key)).collect();
        blinded.into_iter().chain([key.to_vec()])
    }

    fn seal_blobs(&self, rows: &[BlobRow]) -> Result<Vec<BlobRow>, Error> {
        rows.iter().map(|row| values::seal_blob(&self.keys, row)).collect()
    }

    /// Returns whether an effect has ended just so; the ciphertext cannot tell, it is never the same twice.
    async fn is_settled(&self, thread: ThreadId, end: &EffectSettlement) -> Result<bool, Error> {
        let effects = self.effects(thread, Some(end.step)).await?;
        let found = effects.iter().find(|row| row.task == end.task && row.key == end.key);
        Ok(found.is_some_and(|row| {
            row.status == EffectStatus::Done
                && row.status == end.status
                && row.outcome == end.outcome
        }))
    }
}

#[async_trait]
impl Threads for SealedStore {
    async fn create(&self, mut new: NewThread) -> Result<ThreadInfo, Error> {
        let label = Label { title: new.title.take(), origins: Vec::new() };
        new.title = Some(seal_label(&self.keys, new.id, &label)?);
        Ok(open_info(&self.keys, self.inner.create(new).await?))
    }

    async fn info(&self, thread: ThreadId) -> Result<ThreadInfo, Error> {
        Ok(open_info(&self.keys, self.inner.info(thread).await?))
    }

    async fn fork(
        &self,
        source: ThreadId,
        at: u64,
        mut new: NewThread,
    ) -> Result<ThreadInfo, Error> {
        let info = self.inner.info(source).await?;
        let of_source = read_label(&self.keys, &info)?.unwrap_or_default();
        let mut label = of_source.of_fork(source, at, new.title.take());
        // Texts that a subgraph's steps name are those of the thread at the top; of its steps none are shared.
        label.origins.extend(info.root.map(|top| (top, 0)));
        new.title = Some(seal_label(&self.keys, new.id, &label)?);
        Ok(open_info(&self.keys, self.inner.fork(source, at, new).await?))
    }

    async fn list(&self, filter: &ThreadFilter) -> Result<Vec<ThreadInfo>, Error> {
        let threads = self.inner.list(filter).await?;
        Ok(threads.into_iter().map(|info| open_info(&self.keys, info)).collect())
    }

    async fn count_threads(&self) -> Result<Vec<(ThreadStatus, u64)>, Error> {
        self.inner.count_threads().await
    }

    async fn delete(&self, thread: ThreadId) -> Result<(), Error> {
        self.inner.delete(thread).await
    }

    async fn delete_as_seen(&self, seen: &ThreadInfo) -> Result<(), Error> {
        self.inner.delete_as_seen(seen).await
    }

    async fn truncate(&self, thread: ThreadId, seq: u64) -> Result<(), Error> {
        self.inner.truncate(thread, seq).await
    }
}

#[async_trait]
impl Leases for SealedStore {
    async fn claim(
        &self,
        thread: ThreadId,
        owner: &str,
        ttl: Duration,
        force: bool,
    ) -> Result<ThreadInfo, Error> {
        Ok(open_info(&self.keys, self.inner.claim(thread, owner, ttl, force).await?))
    }

    async fn claim_at(
        &self,
        thread: ThreadId,
        fence: u64,
        owner: &str,
        ttl: Duration,
        force: bool,
    ) -> Result<ThreadInfo, Error> {
        let claimed = self.inner.claim_at(thread, fence, owner, ttl, force).await?;
        Ok(open_info(&self.keys, claimed))
    }

    async fn waiting(&self, wanted: &Wanted) -> Result<Vec<Waiting>, Error> {
        self.inner.waiting(wanted).await
    }

    async fn renew(&self, thread: ThreadId, fence: u64, ttl: Duration) -> Result<(), Error> {
        self.inner.renew(thread, fence, ttl).await
    }

    async fn begin_run(
        &self,
        thread: ThreadId,
        fence: u64,
        run: RunId,
        owes_trace: bool,
    ) -> Result<RunRow, Error> {
        self.inner.begin_run(thread, fence, run, owes_trace).await
    }

    async fn end_run(
        &self,
        thread: ThreadId,
        fence: u64,
        run: RunId,
        end: RunEnd<'_>,
    ) -> Result<(), Error> {
        let error = end.error.map(|error| seal_error(&self.keys, thread, error)).transpose()?;
        self.inner.end_run(thread, fence, run, RunEnd { error: error.as_deref(), ..end }).await
    }

    async fn runs(&self, thread: ThreadId) -> Result<Vec<RunRow>, Error> {
        self.inner.runs(thread).await
    }
}

#[async_trait]
impl Steps for SealedStore {
    async fn commit(&self, commit: &Commit) -> Result<(), Error> {
        let step = values::seal_step(&self.keys, commit.thread, &commit.step)?;
        let blobs = self.seal_blobs(&commit.blobs)?;
        let Commit { thread, fence, status, clears_pending, .. } = *commit;
        self.inner.commit(&Commit { thread, fence, step, status, clears_pending, blobs }).await
    }

    async fn save_pending(
        &self,
        thread: ThreadId,
        fence: u64,
        row: &PendingRow,
        blobs: &[BlobRow],
    ) -> Result<(), Error> {
        let row = values::seal_pending(&self.keys, thread, row)?;
        self.inner.save_pending(thread, fence, &row, &self.seal_blobs(blobs)?).await
    }

    async fn load(&self, thread: ThreadId, at: Option<u64>) -> Result<Loaded, Error> {
        let loaded = self.inner.load(thread, at).await?;
        Ok(Loaded {
            snapshot: self.open_snapshot(thread, loaded.snapshot).await?,
            steps: self.open_steps(thread, loaded.steps).await?,
            pending: self.open_pending(thread, loaded.pending).await?,
            info: open_info(&self.keys, loaded.info),
        })
    }

    async fn history(
        &self,
        thread: ThreadId,
        before: Option<u64>,
        limit: u32,
    ) -> Result<Vec<StepRow>, Error> {
        let rows = self.inner.history(thread, before, limit).await?;
        self.open_steps(thread, rows).await
    }

    async fn put_snapshot(&self, thread: ThreadId, snapshot: &SnapshotRow) -> Result<(), Error> {
        let snapshot = values::seal_snapshot(&self.keys, thread, snapshot)?;
        self.inner.put_snapshot(thread, &snapshot).await
    }

    async fn blob(&self, thread: ThreadId, hash: &[u8; 32]) -> Result<Option<BlobRow>, Error> {
        match self.find_blob(thread, hash).await? {
            Some(row) => values::open_blob(&self.keys, thread, row).map(Some),
            None => Ok(None),
        }
    }
}

#[async_trait]
impl Effects for SealedStore {
    async fn record_effects(
        &self,
        thread: ThreadId,
        fence: u64,
        effects: &[EffectRow],
    ) -> Result<(), Error> {
        let seal = |effect| values::seal_effect(&self.keys, thread, effect);
        let sealed = effects.iter().map(seal).collect::<Result<Vec<_>, _>>()?;
        self.inner.record_effects(thread, fence, &sealed).await
    }

    async fn settle_effect(
        &self,
        thread: ThreadId,
        fence: u64,
        end: &EffectSettlement,
    ) -> Result<(), Error> {
        let seal = |outcome: &Encoded| {
            values::seal_outcome(&self.keys, thread, &end.key, end.status, outcome)
        };
        let outcome = end.outcome.as_ref().map(seal).transpose()?;
        for key in self.stored_keys(&end.key) {
            let stored = EffectSettlement { key, outcome: outcome.clone(), ..end.clone() };
            match self.inner.settle_effect(thread, fence, &stored).await {
                Err(Error::UnknownEffect { .. }) => {}
                other => return other,
            }
        }
        match self.is_settled(thread, end).await? {
            true => Ok(()),
            false => Err(Error::UnknownEffect { thread, step: end.step, task: end.task }),
        }
    }

    async fn effects(&self, thread: ThreadId, step: Option<u64>) -> Result<Vec<EffectRow>, Error> {
        let rows = self.inner.effects(thread, step).await?;
        self.open_effects(thread, rows).await
    }

    async fn effects_from(&self, thread: ThreadId, step: u64) -> Result<Vec<EffectRow>, Error> {
        let rows = self.inner.effects_from(thread, step).await?;
        self.open_effects(thread, rows).await
    }
}

#[async_trait]
impl Questions for SealedStore {
    async fn open_interrupts(&self, thread: ThreadId) -> Result<Vec<OpenInterrupt>, Error> {
        let rows = self.inner.open_interrupts(thread).await?;
        rows.into_iter().map(|row| values::open_question(&self.keys, row)).collect()
    }

    async fn answer(&self, interrupt: InterruptId, answer: &Encoded) -> Result<(), Error> {
        let answer = values::seal_answer(&self.keys, interrupt, answer)?;
        for key in self.stored_keys(interrupt.0.as_bytes()) {
            let stored = uuid::Uuid::from_slice(&key).map(InterruptId);
            match self.inner.answer(stored.unwrap_or(interrupt), &answer).await {
                Err(Error::UnknownInterrupt(_)) => {}
                Err(Error::InterruptClosed(_)) => return Err(Error::InterruptClosed(interrupt)),
                other => return other,
            }
        }
        Err(Error::UnknownInterrupt(interrupt))
    }
}

#[async_trait]
impl Events for SealedStore {
    async fn append_events(
        &self,
        thread: ThreadId,
        fence: u64,
        batch: &EventRow,
    ) -> Result<(), Error> {
        let batch = values::seal_event(&self.keys, thread, batch)?;
        self.inner.append_events(thread, fence, &batch).await
    }

    async fn event_mark(&self, thread: ThreadId) -> Result<EventMark, Error> {
        self.inner.event_mark(thread).await
    }

    async fn events_after(
        &self,
        thread: ThreadId,
        after: u64,
        limit: u32,
    ) -> Result<Vec<EventRow>, Error> {
        let rows = self.inner.events_after(thread, after, limit).await?;
        rows.into_iter().map(|row| values::open_event(&self.keys, thread, row)).collect()
    }

    async fn prune_events(&self, kept: Duration, most: u32) -> Result<u64, Error> {
        self.inner.prune_events(kept, most).await
    }
}

#[async_trait]
impl Transfer for SealedStore {
    async fn export(&self, thread: ThreadId) -> Result<ThreadDump, Error> {
        let mut dump = self.inner.export(thread).await?;
        let children = std::mem::take(&mut dump.children);
        let mut dump = self.open_dump(dump).await?;
        for child in children {
            dump.children.push(self.open_dump(child).await?);
        }
        // Of what is encrypted the store itself could see the order only.
        blobs::keep_named(&mut dump)?;
        chain::verify(&dump)?;
        Ok(dump)
    }

    async fn import(&self, dump: &ThreadDump) -> Result<(), Error> {
        chain::verify(dump)?;
        self.inner.import(&self.seal_dump(dump)?).await
    }
}

#[async_trait]
impl Store for SealedStore {
    async fn check_keys(&self) -> Result<(), Error> {
        check(self.inner.as_ref(), Some(&self.keys)).await
    }

    fn outbox(&self) -> Option<&dyn Outbox> {
        self.inner.outbox()
    }

    async fn now(&self) -> Result<DateTime<Utc>, Error> {
        self.inner.now().await
    }

    fn clock(&self, told: DateTime<Utc>) -> Clock {
        self.inner.clock(told)
    }

    fn describe(&self) -> String {
        let key = &self.keys.first().name;
        format!("{}, encrypted with the key {key}", self.inner.describe())
    }

    fn compress_above(&self) -> usize {
        self.inner.compress_above()
    }

    fn snapshot_above(&self) -> usize {
        self.inner.snapshot_above()
    }

    async fn close(&self) {
        self.inner.close().await;
    }
}
