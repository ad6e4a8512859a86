//! The traits of a store, each value encrypted on its way in and decrypted on its way out.
//!
//! Effects and questions are found by blinded keys; a fork names in its label whose texts it shares; whole threads leave
//! in the open and come in encrypted.

use std::time::Duration;

use async_trait::async_trait;
use chrono::{DateTime, Utc};

use super::super::chain::{self, verified};
use super::super::{
    Archiving, BlobRow, Claim, Commit, EffectRow, EffectSettlement, EffectStatus, Effects, Encoded,
    Error, EventPosition, EventRow, Events, Fence, Leases, Loaded, NewThread, OpenInterrupt,
    PendingRow, Questions, Result, RunEnd, RunRow, SnapshotRow, StateCache, StepRow, Steps,
    ThreadDump, ThreadFilter, ThreadInfo, ThreadStatus, Threads, Transfer, Waiting, WorkFilter,
    blobs, family,
};
use super::SealedStore;
use super::keyring::Keyring;
use super::label::{Label, key_of, open_info, read_label, seal_error, seal_label};
use super::values::Values;
use crate::ids::{InterruptId, RunId, ThreadId};

#[async_trait]
impl Threads for SealedStore {
    async fn create(&self, mut new: NewThread) -> Result<ThreadInfo> {
        let label = Label { title: new.title.take(), origins: Vec::new() };
        new.title = Some(seal_label(&self.keys, new.id, &label)?);
        Ok(open_info(&self.keys, self.inner.create(new).await?))
    }

    async fn info(&self, thread: ThreadId) -> Result<ThreadInfo> {
        Ok(open_info(&self.keys, self.inner.info(thread).await?))
    }

    async fn fork(&self, source: ThreadId, at: u64, mut new: NewThread) -> Result<ThreadInfo> {
        let info = self.inner.info(source).await?;
        let of_source = read_label(&self.keys, &info)?.unwrap_or_default();
        let mut label = of_source.of_fork(source, at, new.title.take());
        // Texts that a subgraph's steps name are those of the thread at the top; of its steps none are shared.
        label.origins.extend(info.root.map(|top| (top, 0)));
        new.title = Some(seal_label(&self.keys, new.id, &label)?);
        Ok(open_info(&self.keys, self.inner.fork(source, at, new).await?))
    }

    async fn list(&self, filter: &ThreadFilter) -> Result<Vec<ThreadInfo>> {
        let threads = self.inner.list(filter).await?;
        Ok(threads.into_iter().map(|info| open_info(&self.keys, info)).collect())
    }

    async fn count_threads(&self) -> Result<Vec<(ThreadStatus, u64)>> {
        self.inner.count_threads().await
    }

    async fn delete(&self, thread: ThreadId) -> Result<()> {
        self.states.forget(thread);
        self.inner.delete(thread).await
    }

    async fn delete_as_seen(&self, seen: &ThreadInfo) -> Result<()> {
        self.states.forget(seen.id);
        self.inner.delete_as_seen(seen).await
    }

    async fn truncate(&self, thread: ThreadId, seq: u64) -> Result<()> {
        self.inner.truncate(thread, seq).await
    }
}

#[async_trait]
impl Leases for SealedStore {
    async fn claim(&self, claim: Claim<'_>) -> Result<ThreadInfo> {
        Ok(open_info(&self.keys, self.inner.claim(claim).await?))
    }

    async fn waiting(&self, wanted: &WorkFilter) -> Result<Vec<Waiting>> {
        self.inner.waiting(wanted).await
    }

    async fn renew(&self, fence: Fence, ttl: Duration) -> Result<()> {
        self.inner.renew(fence, ttl).await
    }

    async fn begin_run(&self, fence: Fence, run: RunId, exports: bool) -> Result<RunRow> {
        self.inner.begin_run(fence, run, exports).await
    }

    async fn end_run(&self, fence: Fence, run: RunId, end: RunEnd<'_>) -> Result<()> {
        let seal = |error| seal_error(&self.keys, fence.thread, error);
        let error = end.error.map(seal).transpose()?;
        self.inner.end_run(fence, run, RunEnd { error: error.as_deref(), ..end }).await
    }

    async fn runs(&self, thread: ThreadId) -> Result<Vec<RunRow>> {
        self.inner.runs(thread).await
    }
}

#[async_trait]
impl Steps for SealedStore {
    async fn commit(&self, commit: &Commit) -> Result<()> {
        let step = self.of(commit.thread).seal_step(&commit.step)?;
        let blobs = self.of(commit.thread).seal_blobs(&commit.blobs)?;
        let Commit { thread, fence, status, clears_pending, .. } = *commit;
        self.inner.commit(&Commit { thread, fence, step, status, clears_pending, blobs }).await
    }

    async fn save_pending(&self, fence: Fence, row: &PendingRow, blobs: &[BlobRow]) -> Result<()> {
        let row = self.of(fence.thread).seal_pending(row)?;
        self.inner.save_pending(fence, &row, &self.of(fence.thread).seal_blobs(blobs)?).await
    }

    async fn load(&self, thread: ThreadId, at: Option<u64>) -> Result<Loaded> {
        self.open_loaded(self.inner.load(thread, at).await?).await
    }

    async fn load_since(&self, thread: ThreadId, since: u64, at: Option<u64>) -> Result<Loaded> {
        self.open_loaded(self.inner.load_since(thread, since, at).await?).await
    }

    fn state_cache(&self) -> &StateCache {
        &self.states
    }

    async fn history(
        &self,
        thread: ThreadId,
        before: Option<u64>,
        limit: u32,
    ) -> Result<Vec<StepRow>> {
        let rows = self.inner.history(thread, before, limit.saturating_add(1)).await?;
        verified(thread, self.open_each(thread, rows, Values::open_step).await?, limit)
    }

    async fn put_snapshot(&self, thread: ThreadId, snapshot: &SnapshotRow) -> Result<()> {
        let snapshot = self.of(thread).seal_snapshot(snapshot)?;
        self.inner.put_snapshot(thread, &snapshot).await
    }

    async fn blob(&self, thread: ThreadId, hash: &[u8; 32]) -> Result<Option<BlobRow>> {
        match self.find_blob(thread, hash).await? {
            Some(row) => self.of(thread).open_blob(row).map(Some),
            None => Ok(None),
        }
    }
}

#[async_trait]
impl Effects for SealedStore {
    async fn record_effects(&self, fence: Fence, effects: &[EffectRow]) -> Result<()> {
        let seal = |effect| self.of(fence.thread).seal_effect(effect);
        let sealed = effects.iter().map(seal).collect::<Result<Vec<_>, _>>()?;
        self.inner.record_effects(fence, &sealed).await
    }

    async fn settle_effect(&self, fence: Fence, end: &EffectSettlement) -> Result<()> {
        let thread = fence.thread;
        let seal = |outcome| self.of(thread).seal_outcome(&end.key, end.status, outcome);
        let outcome = end.outcome.as_ref().map(seal).transpose()?;
        for key in self.stored_keys(&end.key) {
            let stored = EffectSettlement { key, outcome: outcome.clone(), ..end.clone() };
            match self.inner.settle_effect(fence, &stored).await {
                Err(Error::UnknownEffect { .. }) => {}
                other => return other,
            }
        }
        if self.is_settled(thread, end).await? {
            Ok(())
        } else {
            Err(Error::UnknownEffect { thread, step: end.step, task: end.task })
        }
    }

    async fn effects(&self, thread: ThreadId, step: Option<u64>) -> Result<Vec<EffectRow>> {
        let rows = self.inner.effects(thread, step).await?;
        self.open_each(thread, rows, Values::open_effect).await
    }

    async fn effects_from(&self, thread: ThreadId, step: u64) -> Result<Vec<EffectRow>> {
        let rows = self.inner.effects_from(thread, step).await?;
        self.open_each(thread, rows, Values::open_effect).await
    }
}

#[async_trait]
impl Questions for SealedStore {
    async fn open_interrupts(&self, thread: ThreadId) -> Result<Vec<OpenInterrupt>> {
        let rows = self.inner.open_interrupts(thread).await?;
        rows.into_iter().map(|row| self.of(row.thread).open_question(row)).collect()
    }

    async fn asked_below(&self, interrupt: InterruptId) -> Result<Option<ThreadId>> {
        for stored in self.stored_interrupts(interrupt) {
            if let Some(thread) = self.inner.asked_below(stored).await? {
                return Ok(Some(thread));
            }
        }
        Ok(None)
    }

    async fn answer(&self, interrupt: InterruptId, answer: &Encoded) -> Result<()> {
        // The question's id is 16 bytes, so the thread named here is never looked at.
        let answer = self.of(ThreadId(interrupt.0)).seal_outcome(
            interrupt.0.as_bytes(),
            EffectStatus::Done,
            answer,
        )?;
        for stored in self.stored_interrupts(interrupt) {
            match self.inner.answer(stored, &answer).await {
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
    async fn append_events(&self, fence: Fence, batch: &EventRow) -> Result<()> {
        let batch = self.of(fence.thread).seal_event(batch)?;
        self.inner.append_events(fence, &batch).await
    }

    async fn event_position(&self, thread: ThreadId) -> Result<EventPosition> {
        self.inner.event_position(thread).await
    }

    async fn events_after(
        &self,
        thread: ThreadId,
        after: u64,
        limit: u32,
    ) -> Result<Vec<EventRow>> {
        let rows = self.inner.events_after(thread, after, limit).await?;
        rows.into_iter().map(|row| self.of(thread).open_event(row)).collect()
    }

    async fn prune_events(&self, kept: Duration, most: u32) -> Result<u64> {
        self.inner.prune_events(kept, most).await
    }
}

#[async_trait]
impl Transfer for SealedStore {
    async fn export(&self, thread: ThreadId) -> Result<ThreadDump> {
        let mut dump = self.inner.export(thread).await?;
        let children = std::mem::take(&mut dump.children);
        let mut dump = self.open_dump(dump).await?;
        for child in children {
            dump.children.push(self.open_dump(child).await?);
        }
        family::check_family(self.inner.as_ref(), &family::members(&dump)).await?;
        // Of what is encrypted the store itself could see the order only.
        blobs::keep_named(&mut dump)?;
        chain::verify(&dump)?;
        Ok(dump)
    }

    async fn import(&self, dump: &ThreadDump) -> Result<()> {
        chain::verify(dump)?;
        self.inner.import(&self.seal_dump(dump)?).await
    }
}

/// Files have encrypted values as the database has them.
#[async_trait]
impl Archiving for SealedStore {
    async fn archivable(
        &self,
        before: DateTime<Utc>,
        after: (DateTime<Utc>, ThreadId),
        limit: u32,
    ) -> Result<Vec<(DateTime<Utc>, ThreadId)>> {
        self.inner.archivable(before, after, limit).await
    }

    async fn archive(&self, thread: ThreadId, before: DateTime<Utc>) -> Result<bool> {
        self.states.forget(thread);
        self.inner.archive(thread, before).await
    }

    async fn sweep_archive(&self) -> Result<u64> {
        self.inner.sweep_archive().await
    }
}

/// Threads that are looked at: where encryption is in use, every new one is encrypted.
const LOOKED_AT: u32 = 200;

/// Refuses to write to a database whose newest threads are encrypted, unless a key fits one of them.
pub(in super::super) async fn check(
    store: &(impl Threads + ?Sized),
    keys: Option<&Keyring>,
) -> Result<()> {
    let filter = ThreadFilter { limit: Some(LOOKED_AT), ..ThreadFilter::default() };
    let mut refused = None;
    for info in store.list(&filter).await? {
        let Some(key) = key_of(&info) else { continue };
        if keys.is_some_and(|keys| read_label(keys, &info).is_ok()) {
            return Ok(());
        }
        refused.get_or_insert(key);
    }
    refused.map_or(Ok(()), |key| Err(Error::Unsealed { key }))
}
