//! The right to write, the runs under a claim, and their commits: steps, pending writes, and texts.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;

use super::super::limits::{lease, moment, text};
use super::super::{
    BlobRow, Claim, Commit, Error, Fence, Leases, Loaded, PendingExport, PendingRow, Result,
    RunEnd, RunRow, RunStatus, SnapshotRow, StateCache, StepRow, Steps, ThreadInfo, ThreadStatus,
    Waiting, WorkFilter,
};
use super::MemoryStore;
use super::state::State;
use crate::clock;
use crate::ids::{RunId, ThreadId};

#[async_trait]
impl Steps for MemoryStore {
    async fn commit(&self, commit: &Commit) -> Result<()> {
        let state = &mut *self.state.lock();
        let seq = commit.step.seq;
        let kept = state.fenced(Fence::new(commit.thread, commit.fence))?;
        if seq != kept.info.head + 1 {
            return Err(Error::Conflict { thread: commit.thread, seq, head: kept.info.head });
        }
        let now = moment(clock::now());
        kept.steps.push(Arc::new(StepRow { at: now, ..commit.step.clone() }));
        kept.info.head = seq;
        kept.info.status = commit.status;
        kept.info.updated_at = now;
        if commit.clears_pending {
            kept.pending = kept.pending.split_off(&(seq + 1, 0));
        }
        state.keep_blobs(&commit.blobs);
        Ok(())
    }

    async fn save_pending(&self, fence: Fence, row: &PendingRow, blobs: &[BlobRow]) -> Result<()> {
        let state = &mut *self.state.lock();
        let kept = state.fenced(fence)?;
        if row.step != kept.info.head + 1 {
            return Err(Error::Conflict {
                thread: fence.thread,
                seq: row.step,
                head: kept.info.head,
            });
        }
        kept.pending.entry((row.step, row.task)).or_insert_with(|| row.clone());
        state.keep_blobs(blobs);
        Ok(())
    }

    async fn load(&self, thread: ThreadId, at: Option<u64>) -> Result<Loaded> {
        self.state.lock().load(thread, at, None)
    }

    async fn load_since(&self, thread: ThreadId, since: u64, at: Option<u64>) -> Result<Loaded> {
        self.state.lock().load(thread, at, Some(since))
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
        let state = self.state.lock();
        let head = state.get(thread)?.info.head;
        let upto = before.map_or(head, |before| before.saturating_sub(1).min(head));
        let mut steps = state.steps(thread, upto.saturating_sub(u64::from(limit)), upto);
        steps.reverse();
        Ok(steps)
    }

    async fn put_snapshot(&self, thread: ThreadId, snapshot: &SnapshotRow) -> Result<()> {
        let state = &mut *self.state.lock();
        let kept = state.get_mut(thread)?;
        if snapshot.seq > kept.info.head {
            let head = kept.info.head;
            return Err(Error::UnknownStep { thread, seq: snapshot.seq, head });
        }
        if snapshot.seq >= kept.base {
            kept.snapshots.entry(snapshot.seq).or_insert_with(|| Arc::new(snapshot.clone()));
        }
        Ok(())
    }

    async fn blob(&self, thread: ThreadId, hash: &[u8; 32]) -> Result<Option<BlobRow>> {
        let state = self.state.lock();
        state.get(thread)?;
        let mut owners = state.owners(thread).into_iter();
        let found = owners.find_map(|owner| state.blobs.get(&(owner, *hash)));
        Ok(found.map(|row| BlobRow::clone(row)))
    }
}

#[async_trait]
impl Leases for MemoryStore {
    async fn claim(&self, claim: Claim<'_>) -> Result<ThreadInfo> {
        let state = &mut *self.state.lock();
        let Claim { thread, seen, owner, ttl, force } = claim;
        let now = moment(clock::now());
        let kept = state.get_mut(thread)?;
        let info = &mut kept.info;
        let is_claimed = !force && info.lease_until.is_some_and(|until| until > now);
        let may_continue = matches!(info.status, ThreadStatus::Queued | ThreadStatus::Busy);
        if is_claimed || seen.is_some_and(|seen| seen != info.fence || !may_continue) {
            return Err(info.clone().busy());
        }
        kept.woken = false;
        info.fence += 1;
        info.owner = Some(text(owner).into_owned());
        info.lease_until = Some(moment(now + lease(ttl)));
        info.status = ThreadStatus::Busy;
        info.error = None;
        info.updated_at = now;
        Ok(info.clone())
    }

    async fn waiting(&self, wanted: &WorkFilter) -> Result<Vec<Waiting>> {
        let state = self.state.lock();
        let now = moment(clock::now());
        let is_due = |info: &ThreadInfo| match info.status {
            ThreadStatus::Queued => info.updated_at <= now - lease(wanted.queued_for),
            ThreadStatus::Busy => {
                let on_machine = info.owner.as_ref().is_some_and(|o| o.contains(&wanted.machine));
                info.lease_until.is_none_or(|until| until <= now) || on_machine
            }
            _ => false,
        };
        let mut found: Vec<&ThreadInfo> = state
            .infos()
            .filter(|info| info.root.is_none() && info.graph == wanted.graph)
            .filter(|info| Some(&info.tenant) != wanted.except_tenant.as_ref())
            .filter(|info| is_due(info))
            .collect();
        found.sort_unstable_by_key(|info| info.updated_at);
        let holder = |info: &ThreadInfo| {
            info.owner.clone().filter(|_| info.lease_until.is_some_and(|until| until > now))
        };
        let waiting = |info: &ThreadInfo| Waiting { thread: info.id, holder: holder(info) };
        Ok(found
            .into_iter()
            .skip(wanted.skip as usize)
            .take(wanted.limit as usize)
            .map(waiting)
            .collect())
    }

    async fn renew(&self, fence: Fence, ttl: Duration) -> Result<()> {
        let state = &mut *self.state.lock();
        let lease_until = &mut state.fenced(fence)?.info.lease_until;
        // One that comes behind the end of its run would lock a thread at rest.
        *lease_until = lease_until.map(|_| moment(clock::now() + lease(ttl)));
        Ok(())
    }

    async fn begin_run(&self, fence: Fence, run: RunId, exports: bool) -> Result<RunRow> {
        let state = &mut *self.state.lock();
        let now = moment(clock::now());
        let thread = fence.thread;
        let kept = state.fenced(fence)?;
        kept.info.status = ThreadStatus::Busy;
        kept.info.updated_at = now;
        let place = *kept.run_index.entry(run).or_insert(kept.runs.len());
        let begun = match kept.runs.get_mut(place) {
            Some(known) => {
                known.status = RunStatus::Running;
                (known.ended_at, known.finish_reason) = (None, None);
                known.clone()
            }
            None => {
                let number = kept.runs.last().map_or(0, |last| last.number) + 1;
                let status = RunStatus::Running;
                let started_at = now;
                let ended_at = None;
                let finish_reason = None;
                let new = RunRow { id: run, number, status, finish_reason, started_at, ended_at };
                kept.runs.push(new.clone());
                new
            }
        };
        if exports {
            let newest = kept.runs.last().map_or(begun.number, |last| last.number);
            let new = PendingExport { thread, from_run: newest, to_run: newest, since: now };
            state.exports.entry(thread).or_insert(new).to_run = newest;
        }
        Ok(begun)
    }

    async fn end_run(&self, fence: Fence, run: RunId, end: RunEnd<'_>) -> Result<()> {
        let state = &mut *self.state.lock();
        let now = moment(clock::now());
        let kept = state.fenced(fence)?;
        if let Some(row) = kept.run_index.get(&run).and_then(|place| kept.runs.get_mut(*place)) {
            // Later changes of the thread stay.
            if row.status != RunStatus::Running {
                return Ok(());
            }
            row.status = end.run;
            row.finish_reason = end.finish_reason.map(str::to_owned);
            row.ended_at = Some(now);
        }
        kept.info.status = match end.thread {
            ThreadStatus::Interrupted if kept.woken => ThreadStatus::Queued,
            status => status,
        };
        kept.info.error = end.error.map(|error| text(error).into_owned());
        kept.info.owner = None;
        kept.info.lease_until = None;
        kept.info.updated_at = now;
        Ok(())
    }

    async fn runs(&self, thread: ThreadId) -> Result<Vec<RunRow>> {
        Ok(self.state.lock().get(thread)?.runs.clone())
    }
}

impl State {
    /// Stores texts; for a text that exists, the earlier step counts.
    pub(super) fn keep_blobs(&mut self, rows: &[BlobRow]) {
        for row in rows {
            let place = (row.owner, row.hash);
            let kept = self.blobs.entry(place).or_insert_with(|| Arc::new(row.clone()));
            if row.step < kept.step {
                Arc::make_mut(kept).step = row.step;
            }
        }
    }
}
