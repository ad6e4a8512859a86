//! One process's view of the store: the real one, behind the scheduler, the faults and the flaws.
//!
//! A write waits twice: before it takes hold, and before its writer hears of it. A crash at either place is a
//! crash before or after the write; a reply that is lost there leaves the writer in doubt.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use perihelion_engine::checkpoint::{
    Archiving, BlobRow, Claim, Commit, EffectKind, EffectRow, EffectSettlement, EffectStatus,
    Effects, Encoded, Error, EventPosition, EventRow, Events, Fence, Leases, Loaded, NewThread,
    OpenInterrupt, PendingRow, Questions, RunEnd, RunRow, SnapshotRow, StateCache, StepRow, Steps,
    Store, ThreadDump, ThreadFilter, ThreadInfo, ThreadStatus, Threads, Transfer, Waiting,
    WorkFilter,
};
use perihelion_engine::ids::{InterruptId, RunId, ThreadId};
use serde_json::{Value, json};

use super::flaw::Flaw;
use super::record::{Ack, Kept, OfModel, Orphan, Stale};
use super::sim::{Sim, Verdict};

pub struct Watched {
    pub sim: Arc<Sim>,
    pub process: usize,
    pub truth: Arc<dyn Store>,
    pub states: StateCache,
}

fn unreachable() -> Error {
    sqlx::Error::Io(std::io::Error::other("the connection broke")).into()
}

impl Watched {
    async fn write<T: Send>(
        &self,
        label: &'static str,
        work: impl Future<Output = Result<T, Error>> + Send,
    ) -> Result<T, Error> {
        let verdict = self.sim.gate(self.process, label).await;
        if matches!(verdict, Verdict::Refuse | Verdict::Dead) {
            return Err(unreachable());
        }
        let result = work.await;
        if verdict == Verdict::Lose {
            return result.and(Err(unreachable()));
        }
        match self.sim.gate(self.process, label).await {
            Verdict::Go => result,
            _ => Err(unreachable()),
        }
    }

    /// A write under a token: what one that is no longer the newest may not do is looked at closely.
    async fn fenced<T: Send + std::fmt::Debug>(
        &self,
        label: &'static str,
        fence: Fence,
        work: impl AsyncFnOnce(Fence) -> Result<T, Error>,
    ) -> Result<T, Error> {
        let thread = fence.thread;
        let current = Fence::from(&self.truth.info(thread).await?);
        if fence == current {
            return work(fence).await;
        }
        let used = if self.sim.has(Flaw::IgnoresFences) { current } else { fence };
        let before = self.content(thread).await;
        let result = work(used).await;
        let changed = before != self.content(thread).await;
        let is_fenced = matches!(result, Err(Error::Fenced { .. }));
        let stale = Stale { what: label, result: format!("{result:?}"), is_fenced, changed };
        self.sim.board().record.stale.push(stale);
        result
    }

    async fn content(&self, thread: ThreadId) -> String {
        format!("{:?}", self.truth.export(thread).await)
    }

    /// Reads wait less often: a crash there is one before the next write.
    async fn read<T>(&self, work: impl Future<Output = Result<T, Error>>) -> Result<T, Error> {
        let is_looked_at = self.sim.board().rng.chance(15);
        if is_looked_at {
            match self.sim.gate(self.process, "read").await {
                Verdict::Go | Verdict::Lose => {}
                _ => return Err(unreachable()),
            }
        }
        work.await
    }

    /// Reads what a state is restored from, as the flaw of this store has it.
    async fn seen(
        &self,
        thread: ThreadId,
        work: impl Future<Output = Result<Loaded, Error>>,
    ) -> Result<Loaded, Error> {
        let mut loaded = self.read(work).await?;
        self.see_head(self.truth.info(thread).await?.head);
        if self.sim.has(Flaw::ForgetsPending) {
            loaded.pending.clear();
        }
        Ok(loaded)
    }

    fn see_head(&self, head: u64) {
        let mut board = self.sim.board();
        let acked = board.record.acks.last().map_or(0, |ack| ack.seq);
        if acked > head {
            board.record.rewinds.push((head, acked));
        }
    }

    /// Notes the actions that a process which just took the thread finds without an outcome.
    async fn see_orphans(&self, info: &ThreadInfo) {
        let effects = self.truth.effects_from(info.id, info.head + 1).await.unwrap_or_default();
        let open = effects.into_iter().filter(|row| {
            row.kind == EffectKind::Tool
                && row.status == EffectStatus::Started
                && row.name == "once"
        });
        let orphans = open.map(|row| Orphan { key: hex(&row.key), attempt: row.attempt });
        self.sim.board().record.orphans.extend(orphans);
    }

    /// Notes the answers of models whose record was acknowledged.
    fn see_answers(&self, thread: ThreadId, effects: &[EffectRow]) {
        let mut board = self.sim.board();
        for row in effects {
            if row.kind == EffectKind::Model && row.status == EffectStatus::Done {
                let at = board.tick();
                let step = row.step;
                let task = row.task;
                let key = hex(&row.key);
                let process = self.process;
                let answered = OfModel { at, process, thread, step, task, key };
                board.record.answered_by_models.push(answered);
            }
        }
    }

    /// Reads the journal as the flaw of this store has it.
    fn flawed(&self, mut rows: Vec<EffectRow>) -> Vec<EffectRow> {
        for row in &mut rows {
            match (self.sim.flaw, row.kind, row.status) {
                (Some(Flaw::AssumesOutcomes), EffectKind::Tool, EffectStatus::Started) => {
                    row.status = EffectStatus::Done;
                    row.outcome = Encoded::json(&Value::Null, usize::MAX).ok();
                }
                (Some(Flaw::AltersOutcomes), EffectKind::Model, EffectStatus::Done) => {
                    row.outcome = Encoded::json(&json!("altered"), usize::MAX).ok();
                }
                _ => {}
            }
        }
        match self.sim.flaw {
            Some(Flaw::ForgetsEffects) => rows.clear(),
            Some(Flaw::ForgetsAnswers) => rows.retain(|row| row.kind != EffectKind::Model),
            Some(Flaw::Redraws) => rows.retain(|row| row.kind != EffectKind::Random),
            _ => {}
        }
        rows
    }
}

pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[async_trait]
impl Threads for Watched {
    async fn create(&self, new: NewThread) -> Result<ThreadInfo, Error> {
        self.write("create", self.truth.create(new)).await
    }

    async fn info(&self, thread: ThreadId) -> Result<ThreadInfo, Error> {
        self.read(self.truth.info(thread)).await
    }

    async fn fork(&self, source: ThreadId, at: u64, new: NewThread) -> Result<ThreadInfo, Error> {
        let at = if self.sim.has(Flaw::SpoilsForks) { at.saturating_sub(1) } else { at };
        self.truth.fork(source, at, new).await
    }

    async fn list(&self, filter: &ThreadFilter) -> Result<Vec<ThreadInfo>, Error> {
        self.truth.list(filter).await
    }

    async fn count_threads(&self) -> Result<Vec<(ThreadStatus, u64)>, Error> {
        self.truth.count_threads().await
    }

    async fn delete(&self, thread: ThreadId) -> Result<(), Error> {
        self.truth.delete(thread).await
    }

    async fn delete_as_seen(&self, seen: &ThreadInfo) -> Result<(), Error> {
        self.truth.delete_as_seen(seen).await
    }

    async fn truncate(&self, thread: ThreadId, seq: u64) -> Result<(), Error> {
        self.truth.truncate(thread, seq).await
    }
}

#[async_trait]
impl Leases for Watched {
    /// A lease that somebody else holds may have run out by now, whatever he believes.
    /// The runners of the simulation seize a thread whose holder is dead; here nobody is known to be.
    async fn claim(&self, claim: Claim<'_>) -> Result<ThreadInfo, Error> {
        let is_first_look = claim.seen.is_none();
        if is_first_look && self.sim.has(Flaw::RefusesClaims) && self.sim.board().is_calm {
            let until = chrono::DateTime::UNIX_EPOCH;
            let owner = claim.owner.to_owned();
            return Err(Error::Busy { thread: claim.thread, owner, until });
        }
        let work = async {
            let runs_out = is_first_look && {
                let mut board = self.sim.board();
                board.is_calm || board.lives[self.process].is_quick || board.rng.chance(70)
            };
            let force = claim.force || runs_out;
            let info = self.truth.claim(Claim { force, ..claim }).await?;
            self.sim.board().take(self.process);
            self.see_head(info.head);
            self.see_orphans(&info).await;
            Ok(info)
        };
        self.write("claim", work).await
    }

    async fn waiting(&self, wanted: &WorkFilter) -> Result<Vec<Waiting>, Error> {
        self.read(self.truth.waiting(wanted)).await
    }

    async fn renew(&self, fence: Fence, ttl: Duration) -> Result<(), Error> {
        let work = async |fence: Fence| self.truth.renew(fence, ttl).await;
        self.write("renew", self.fenced("renew", fence, work)).await
    }

    async fn begin_run(&self, fence: Fence, run: RunId, exports: bool) -> Result<RunRow, Error> {
        let work = async |fence: Fence| self.truth.begin_run(fence, run, exports).await;
        self.write("begin_run", self.fenced("begin_run", fence, work)).await
    }

    async fn end_run(&self, fence: Fence, run: RunId, end: RunEnd<'_>) -> Result<(), Error> {
        let work = async |fence: Fence| self.truth.end_run(fence, run, end).await;
        self.write("end_run", self.fenced("end_run", fence, work)).await
    }

    async fn runs(&self, thread: ThreadId) -> Result<Vec<RunRow>, Error> {
        self.truth.runs(thread).await
    }
}

#[async_trait]
impl Steps for Watched {
    async fn commit(&self, commit: &Commit) -> Result<(), Error> {
        let seq = commit.step.seq;
        let hash = commit.step.hash;
        let is_lost = self.sim.has(Flaw::LosesSteps) && self.sim.board().rng.chance(20);
        let work = async |fence: Fence| {
            if is_lost {
                Ok(())
            } else {
                self.truth.commit(&Commit { fence: fence.token, ..commit.clone() }).await
            }
        };
        let fenced = self.fenced("commit", Fence::new(commit.thread, commit.fence), work);
        let result = self.write("commit", fenced).await;
        if result.is_ok() {
            self.sim.board().record.acks.push(Ack { seq, hash });
        }
        result
    }

    async fn save_pending(
        &self,
        fence: Fence,
        row: &PendingRow,
        blobs: &[BlobRow],
    ) -> Result<(), Error> {
        let work = async |fence: Fence| self.truth.save_pending(fence, row, blobs).await;
        let fenced = self.fenced("save_pending", fence, work);
        let result = self.write("save_pending", fenced).await;
        if result.is_ok() {
            let mut board = self.sim.board();
            let at = board.tick();
            board.record.kept.push(Kept { at, step: row.step, task: row.task });
        }
        result
    }

    async fn load(&self, thread: ThreadId, at: Option<u64>) -> Result<Loaded, Error> {
        self.seen(thread, self.truth.load(thread, at)).await
    }

    async fn load_since(
        &self,
        thread: ThreadId,
        since: u64,
        at: Option<u64>,
    ) -> Result<Loaded, Error> {
        self.seen(thread, self.truth.load_since(thread, since, at)).await
    }

    fn state_cache(&self) -> &StateCache {
        &self.states
    }

    async fn history(
        &self,
        thread: ThreadId,
        before: Option<u64>,
        limit: u32,
    ) -> Result<Vec<StepRow>, Error> {
        let mut rows = self.read(self.truth.history(thread, before, limit)).await?;
        if rows.len() > 2 && self.sim.has(Flaw::HidesSteps) {
            rows.remove(1);
        }
        if rows.len() > 2 && self.sim.has(Flaw::AltersSteps) {
            rows[1].delta = Encoded::json(&json!([]), usize::MAX)?;
        }
        Ok(rows)
    }

    async fn put_snapshot(&self, thread: ThreadId, snapshot: &SnapshotRow) -> Result<(), Error> {
        let mut snapshot = snapshot.clone();
        if self.sim.has(Flaw::SpoilsSnapshots) {
            snapshot.state = Encoded::json(&json!({}), usize::MAX)?;
        }
        self.write("put_snapshot", self.truth.put_snapshot(thread, &snapshot)).await
    }

    async fn blob(&self, thread: ThreadId, hash: &[u8; 32]) -> Result<Option<BlobRow>, Error> {
        self.read(self.truth.blob(thread, hash)).await
    }
}

#[async_trait]
impl Effects for Watched {
    async fn record_effects(&self, fence: Fence, effects: &[EffectRow]) -> Result<(), Error> {
        let work = async |fence: Fence| self.truth.record_effects(fence, effects).await;
        let fenced = self.fenced("record_effects", fence, work);
        let result = self.write("record_effects", fenced).await;
        if result.is_ok() {
            self.see_answers(fence.thread, effects);
        }
        result
    }

    async fn settle_effect(&self, fence: Fence, end: &EffectSettlement) -> Result<(), Error> {
        if self.sim.has(Flaw::FailsAtRandom) && self.sim.board().rng.chance(10) {
            return Err(Error::damaged("at random"));
        }
        let work = async |fence: Fence| self.truth.settle_effect(fence, end).await;
        self.write("settle_effect", self.fenced("settle_effect", fence, work)).await
    }

    async fn effects(&self, thread: ThreadId, step: Option<u64>) -> Result<Vec<EffectRow>, Error> {
        let mut rows = self.read(self.truth.effects(thread, step)).await?;
        if step.is_some() && self.sim.has(Flaw::ForgetsPastEffects) {
            rows.clear();
        }
        Ok(rows)
    }

    async fn effects_from(&self, thread: ThreadId, step: u64) -> Result<Vec<EffectRow>, Error> {
        Ok(self.flawed(self.read(self.truth.effects_from(thread, step)).await?))
    }
}

#[async_trait]
impl Questions for Watched {
    async fn open_interrupts(&self, thread: ThreadId) -> Result<Vec<OpenInterrupt>, Error> {
        self.truth.open_interrupts(thread).await
    }

    async fn asked_below(&self, interrupt: InterruptId) -> Result<Option<ThreadId>, Error> {
        self.truth.asked_below(interrupt).await
    }

    async fn answer(&self, interrupt: InterruptId, answer: &Encoded) -> Result<(), Error> {
        match self.truth.answer(interrupt, answer).await {
            Err(Error::InterruptClosed(_)) if self.sim.has(Flaw::AnswersTwice) => Ok(()),
            other => other,
        }
    }
}

#[async_trait]
impl Events for Watched {
    async fn append_events(&self, fence: Fence, batch: &EventRow) -> Result<(), Error> {
        let work = async |fence: Fence| self.truth.append_events(fence, batch).await;
        self.write("append_events", self.fenced("append_events", fence, work)).await
    }

    async fn event_position(&self, thread: ThreadId) -> Result<EventPosition, Error> {
        self.read(self.truth.event_position(thread)).await
    }

    async fn events_after(
        &self,
        thread: ThreadId,
        after: u64,
        limit: u32,
    ) -> Result<Vec<EventRow>, Error> {
        self.read(self.truth.events_after(thread, after, limit)).await
    }

    async fn prune_events(&self, kept: Duration, most: u32) -> Result<u64, Error> {
        self.truth.prune_events(kept, most).await
    }
}

#[async_trait]
impl Transfer for Watched {
    async fn export(&self, thread: ThreadId) -> Result<ThreadDump, Error> {
        self.truth.export(thread).await
    }

    async fn import(&self, dump: &ThreadDump) -> Result<(), Error> {
        self.truth.import(dump).await
    }
}

impl Archiving for Watched {}

#[async_trait]
impl Store for Watched {
    fn describe(&self) -> String {
        "the simulated store".to_owned()
    }

    fn compress_above(&self) -> usize {
        self.truth.compress_above()
    }

    fn snapshot_above(&self) -> usize {
        self.truth.snapshot_above()
    }

    async fn close(&self) {}
}
