//! Writing, under the same rules as a database: checks first, then everything or nothing.

use std::{sync::Arc, time::Duration};

use super::{
    super::{
        BlobRow, Claim, Commit, EffectKind, EffectRow, EffectSettlement, EffectStatus, Encoded,
        Error, Fence, NewThread, PendingExport, PendingRow, RunEnd, RunRow, RunStatus, SnapshotRow,
        StepRow, ThreadDump, ThreadInfo, ThreadStatus, chain,
        limits::{lease, moment, text},
    },
    state::{Kept, State, fresh},
};
use crate::{
    clock,
    ids::{InterruptId, RunId, ThreadId},
};

impl State {
    pub(super) fn create(
        &mut self,
        new: NewThread,
        origin: Option<(ThreadId, u64)>,
    ) -> Result<ThreadInfo, Error> {
        let mut base = 0;
        if let Some((source, at)) = origin {
            let source_thread = self.get(source)?;
            let head = source_thread.info.head;
            base = source_thread.base;
            if at > head || at < base {
                return Err(Error::UnknownStep { thread: source, seq: at, head });
            }
        }
        if self.threads.contains_key(&new.id) {
            return Err(Error::ThreadExists(new.id));
        }
        if let Some(root) = new.root {
            self.get(root)?;
        }
        let info = fresh(new, origin);
        self.threads.insert(info.id, Kept::new(info.clone(), base));
        Ok(info)
    }

    pub(super) fn claim(&mut self, claim: Claim<'_>) -> Result<ThreadInfo, Error> {
        let Claim { thread, seen, owner, ttl, force } = claim;
        let now = moment(clock::now());
        let kept = self.get_mut(thread)?;
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

    pub(super) fn renew(&mut self, fence: Fence, ttl: Duration) -> Result<(), Error> {
        let lease_until = &mut self.fenced(fence)?.info.lease_until;
        // One that comes behind the end of its run would lock a thread at rest.
        *lease_until = lease_until.map(|_| moment(clock::now() + lease(ttl)));
        Ok(())
    }

    pub(super) fn begin_run(
        &mut self,
        fence: Fence,
        run: RunId,
        exports: bool,
    ) -> Result<RunRow, Error> {
        let now = moment(clock::now());
        let thread = fence.thread;
        let kept = self.fenced(fence)?;
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
            self.exports.entry(thread).or_insert(new).to_run = newest;
        }
        Ok(begun)
    }

    pub(super) fn end_run(
        &mut self,
        fence: Fence,
        run: RunId,
        end: RunEnd<'_>,
    ) -> Result<(), Error> {
        let now = moment(clock::now());
        let kept = self.fenced(fence)?;
        if let Some(row) = kept.run_index.get(&run).and_then(|place| kept.runs.get_mut(*place)) {
            // What came after its end stands.
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

    pub(super) fn commit(&mut self, commit: &Commit) -> Result<(), Error> {
        let seq = commit.step.seq;
        let kept = self.fenced(Fence::new(commit.thread, commit.fence))?;
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
        self.keep_blobs(&commit.blobs);
        Ok(())
    }

    /// Keeps texts; of one that is there already the earlier step counts.
    pub(super) fn keep_blobs(&mut self, rows: &[BlobRow]) {
        for row in rows {
            let place = (row.owner, row.hash);
            let kept = self.blobs.entry(place).or_insert_with(|| Arc::new(row.clone()));
            if row.step < kept.step {
                Arc::make_mut(kept).step = row.step;
            }
        }
    }

    pub(super) fn save_pending(
        &mut self,
        fence: Fence,
        row: &PendingRow,
        blobs: &[BlobRow],
    ) -> Result<(), Error> {
        let kept = self.fenced(fence)?;
        if row.step != kept.info.head + 1 {
            return Err(Error::Conflict {
                thread: fence.thread,
                seq: row.step,
                head: kept.info.head,
            });
        }
        kept.pending.entry((row.step, row.task)).or_insert_with(|| row.clone());
        self.keep_blobs(blobs);
        Ok(())
    }

    pub(super) fn put_snapshot(
        &mut self,
        thread: ThreadId,
        snapshot: &SnapshotRow,
    ) -> Result<(), Error> {
        let kept = self.get_mut(thread)?;
        if snapshot.seq > kept.info.head {
            let head = kept.info.head;
            return Err(Error::UnknownStep { thread, seq: snapshot.seq, head });
        }
        if snapshot.seq >= kept.base {
            kept.snapshots.entry(snapshot.seq).or_insert_with(|| Arc::new(snapshot.clone()));
        }
        Ok(())
    }

    pub(super) fn record(&mut self, fence: Fence, effects: &[EffectRow]) -> Result<(), Error> {
        self.fenced(fence)?;
        effects.iter().try_for_each(|effect| self.keep_effect(fence.thread, effect))
    }

    /// Keeps the first record under a key; a repetition is ignored, a question's wherever it stands.
    fn keep_effect(&mut self, thread: ThreadId, effect: &EffectRow) -> Result<(), Error> {
        if effect.kind == EffectKind::Interrupt && self.interrupts.contains_key(&effect.key) {
            return Ok(());
        }
        let place = (effect.step, effect.task, effect.key.clone());
        let row = EffectRow {
            name: text(&effect.name).into_owned(),
            started_at: moment(effect.started_at),
            ended_at: effect.ended_at.map(moment),
            ..effect.clone()
        };
        self.get_mut(thread)?.effects.entry(place.clone()).or_insert(row);
        if effect.kind == EffectKind::Interrupt {
            self.interrupts.insert(effect.key.clone(), (thread, place));
        }
        Ok(())
    }

    pub(super) fn settle(&mut self, fence: Fence, end: &EffectSettlement) -> Result<(), Error> {
        let thread = fence.thread;
        let unknown = Error::UnknownEffect { thread, step: end.step, task: end.task };
        let kept = self.fenced(fence)?;
        let Some(effect) = kept.effects.get_mut(&(end.step, end.task, end.key.clone())) else {
            return Err(unknown);
        };
        if effect.status == EffectStatus::Done {
            let repeated = effect.status == end.status && effect.outcome == end.outcome;
            return if repeated { Ok(()) } else { Err(unknown) };
        }
        effect.status = end.status;
        effect.outcome = end.outcome.clone();
        effect.attempt = end.attempt;
        effect.ended_at = (end.status != EffectStatus::Started).then(|| moment(clock::now()));
        Ok(())
    }

    pub(super) fn answer(&mut self, interrupt: InterruptId, answer: &Encoded) -> Result<(), Error> {
        let unknown = Error::UnknownInterrupt(interrupt);
        let Some((asking, place)) = self.interrupts.get(interrupt.0.as_bytes().as_slice()) else {
            return Err(unknown);
        };
        let asking = self.threads.get_mut(asking).ok_or(Error::UnknownThread(*asking))?;
        let top = asking.info.root.unwrap_or(asking.info.id);
        let effect = asking.effects.get_mut(place).ok_or(unknown)?;
        if effect.status != EffectStatus::Started {
            return Err(Error::InterruptClosed(interrupt));
        }
        effect.status = EffectStatus::Done;
        effect.outcome = Some(answer.clone());
        effect.ended_at = Some(moment(clock::now()));
        let top = self.get_mut(top)?;
        match top.info.status {
            ThreadStatus::Interrupted => top.info.status = ThreadStatus::Queued,
            ThreadStatus::Busy => top.woken = true,
            _ => {}
        }
        Ok(())
    }

    pub(super) fn import(&mut self, dump: &ThreadDump) -> Result<(), Error> {
        chain::verify(dump)?;
        for one in std::iter::once(dump).chain(&dump.children) {
            if self.threads.contains_key(&one.info.id) {
                return Err(Error::ThreadExists(one.info.id));
            }
        }
        for one in std::iter::once(dump).chain(&dump.children) {
            let (status, error) = one.info.imported();
            let info = ThreadInfo {
                status,
                error: error.map(str::to_owned),
                owner: None,
                lease_until: None,
                forked_from: None,
                ..one.info.clone()
            };
            let thread = info.id;
            let mut kept = Kept::new(info, one.snapshot.as_ref().map_or(0, |it| it.seq));
            kept.steps = one.steps.iter().cloned().map(Arc::new).collect();
            let snapshots = one.snapshot.iter().chain(&one.returned);
            kept.snapshots = snapshots.map(|it| (it.seq, Arc::new(it.clone()))).collect();
            kept.pending =
                one.pending.iter().map(|row| ((row.step, row.task), row.clone())).collect();
            kept.runs = one.runs.clone();
            kept.run_index = one.runs.iter().enumerate().map(|(at, run)| (run.id, at)).collect();
            self.threads.insert(thread, kept);
            for effect in &one.effects {
                self.keep_effect(thread, effect)?;
            }
        }
        self.keep_blobs(&dump.blobs);
        Ok(())
    }
}
