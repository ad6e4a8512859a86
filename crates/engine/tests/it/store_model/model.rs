//! The reference: a store as simple as it can be said. Every thread has all of its steps itself.

use std::collections::BTreeMap;

use chrono::DateTime;
use perihelion_engine::checkpoint::{
    Commit, EffectKind, EffectRow, EffectSettlement, EffectStatus, Encoded, Error, Loaded,
    NewThread, OpenInterrupt, PendingRow, RunRow, RunStatus, SnapshotRow, StepKind, StepRow,
    ThreadDump, ThreadInfo, ThreadStatus,
};
use perihelion_engine::graph::subgraph_step;
use perihelion_engine::ids::{InterruptId, RunId, ThreadId};

type Key = (u64, u32, Vec<u8>);
#[derive(Clone, Debug)]
pub struct Thread {
    pub info: ThreadInfo,
    /// Steps up to this one were dropped.
    pub(super) base: u64,
    /// All steps after `base`, those shared with an origin included.
    pub(super) steps: Vec<StepRow>,
    /// Own ones; those of an origin are looked up there.
    pub(super) snapshots: BTreeMap<u64, SnapshotRow>,
    pub(super) pending: BTreeMap<(u64, u32), PendingRow>,
    pub(super) effects: BTreeMap<Key, EffectRow>,
    pub(super) runs: Vec<RunRow>,
    /// Whether an answer came while it was busy.
    pub(super) woken: bool,
}

#[derive(Clone, Debug, Default)]
pub struct Model {
    pub threads: BTreeMap<ThreadId, Thread>,
    pub dumps: BTreeMap<usize, ThreadDump>,
}

impl Model {
    pub(super) fn get(&self, id: ThreadId) -> Result<&Thread, Error> {
        self.threads.get(&id).ok_or(Error::UnknownThread(id))
    }

    fn get_mut(&mut self, id: ThreadId) -> Result<&mut Thread, Error> {
        self.threads.get_mut(&id).ok_or(Error::UnknownThread(id))
    }

    fn fenced(&mut self, thread: ThreadId, token: u64) -> Result<&mut Thread, Error> {
        let found = self.get_mut(thread)?;
        match found.info.fence {
            current if current == token => Ok(found),
            current => Err(Error::Fenced { thread, token, current }),
        }
    }

    pub fn info(&self, id: ThreadId) -> Result<ThreadInfo, Error> {
        Ok(self.get(id)?.info.clone())
    }

    pub fn create(&mut self, new: NewThread) -> Result<ThreadInfo, Error> {
        self.add(new, None)
    }

    pub fn fork(&mut self, source: ThreadId, at: u64, new: NewThread) -> Result<ThreadInfo, Error> {
        let origin = self.get(source)?;
        if at > origin.info.head || at < origin.base {
            return Err(Error::UnknownStep { thread: source, seq: at, head: origin.info.head });
        }
        self.add(new, Some((source, at)))
    }

    fn add(
        &mut self,
        new: NewThread,
        origin: Option<(ThreadId, u64)>,
    ) -> Result<ThreadInfo, Error> {
        let id = new.id;
        if self.threads.contains_key(&id) {
            return Err(Error::ThreadExists(id));
        }
        if let Some(root) = new.root {
            self.get(root)?;
        }
        let shared = origin.and_then(|(source, at)| Some((self.threads.get(&source)?, at)));
        let base = shared.map_or(0, |(source, _)| source.base);
        let upto = |(source, at): (&Thread, u64)| {
            source.steps.iter().filter(|step| step.seq <= at).cloned().collect()
        };
        let steps = shared.map_or_else(Vec::new, upto);
        let info = ThreadInfo {
            id,
            graph: new.graph,
            title: new.title,
            root: new.root,
            namespace: new.namespace,
            tenant: new.tenant,
            head: origin.map_or(0, |(_, at)| at),
            status: ThreadStatus::Idle,
            error: None,
            fence: 0,
            owner: None,
            lease_until: None,
            forked_from: origin,
            created_at: DateTime::UNIX_EPOCH,
            updated_at: DateTime::UNIX_EPOCH,
            archived: None,
        };
        let thread = Thread {
            info: info.clone(),
            base,
            steps,
            snapshots: BTreeMap::new(),
            pending: BTreeMap::new(),
            effects: BTreeMap::new(),
            runs: Vec::new(),
            woken: false,
        };
        self.threads.insert(id, thread);
        Ok(info)
    }

    /// `is_long`: the lease outlasts the story; otherwise it has run out at once.
    pub fn claim(
        &mut self,
        thread: ThreadId,
        owner: &str,
        is_long: bool,
        force: bool,
    ) -> Result<ThreadInfo, Error> {
        let found = self.get_mut(thread)?;
        let info = &mut found.info;
        if info.lease_until == Some(lease(true)) && !force {
            let owner = info.owner.clone().unwrap_or_default();
            return Err(Error::Busy { thread, owner, until: lease(true) });
        }
        info.fence += 1;
        info.owner = Some(owner.to_owned());
        info.lease_until = Some(lease(is_long));
        info.status = ThreadStatus::Busy;
        info.error = None;
        found.woken = false;
        Ok(found.info.clone())
    }

    pub fn renew(&mut self, thread: ThreadId, fence: u64, is_long: bool) -> Result<(), Error> {
        let lease_until = &mut self.fenced(thread, fence)?.info.lease_until;
        *lease_until = lease_until.map(|_| lease(is_long));
        Ok(())
    }

    pub fn begin_run(&mut self, thread: ThreadId, fence: u64, run: RunId) -> Result<u32, Error> {
        let found = self.fenced(thread, fence)?;
        found.info.status = ThreadStatus::Busy;
        if let Some(row) = found.runs.iter_mut().find(|row| row.id == run) {
            row.status = RunStatus::Running;
            row.ended_at = None;
            return Ok(row.number);
        }
        let number = found.runs.len() as u32 + 1;
        let started_at = DateTime::UNIX_EPOCH;
        let row = RunRow {
            id: run,
            number,
            status: RunStatus::Running,
            finish_reason: None,
            started_at,
            ended_at: None,
        };
        found.runs.push(row);
        Ok(number)
    }

    pub fn end_run(
        &mut self,
        (thread, fence, run): (ThreadId, u64, RunId),
        (run_status, status): (RunStatus, ThreadStatus),
        error: Option<&str>,
    ) -> Result<(), Error> {
        let found = self.fenced(thread, fence)?;
        if let Some(row) = found.runs.iter_mut().find(|row| row.id == run) {
            // What came after its end stands.
            if row.status != RunStatus::Running {
                return Ok(());
            }
            row.status = run_status;
            row.ended_at = Some(DateTime::UNIX_EPOCH);
        }
        found.info.status = match status {
            ThreadStatus::Interrupted if found.woken => ThreadStatus::Queued,
            status => status,
        };
        found.info.error = error.map(str::to_owned);
        found.info.owner = None;
        found.info.lease_until = None;
        Ok(())
    }

    pub fn commit(&mut self, commit: &Commit) -> Result<(), Error> {
        let Commit { thread, step, .. } = commit;
        let found = self.fenced(*thread, commit.fence)?;
        if step.seq != found.info.head + 1 {
            return Err(Error::Conflict { thread: *thread, seq: step.seq, head: found.info.head });
        }
        found.steps.push(step.clone());
        found.info.head = step.seq;
        found.info.status = commit.status;
        if commit.clears_pending {
            found.pending.retain(|(at, _), _| *at > step.seq);
        }
        Ok(())
    }

    pub fn save_pending(
        &mut self,
        thread: ThreadId,
        fence: u64,
        row: PendingRow,
    ) -> Result<(), Error> {
        let found = self.fenced(thread, fence)?;
        if row.step != found.info.head + 1 {
            return Err(Error::Conflict { thread, seq: row.step, head: found.info.head });
        }
        found.pending.entry((row.step, row.task)).or_insert(row);
        Ok(())
    }

    pub fn load(&self, thread: ThreadId, at: Option<u64>) -> Result<Loaded, Error> {
        let found = self.get(thread)?;
        let head = found.info.head;
        let at = at.unwrap_or(head);
        if at > head || at < found.base {
            return Err(Error::UnknownStep { thread, seq: at, head });
        }
        let snapshot = self.snapshot(thread, at);
        let after = snapshot.as_ref().map_or(0, |row| row.seq);
        let steps = found.steps.iter().filter(|step| step.seq > after && step.seq <= at);
        let steps = steps.cloned().collect();
        let pending = if at == head { found.pending_now() } else { Vec::new() };
        Ok(Loaded { info: found.info.clone(), snapshot, steps, pending })
    }

    /// The newest snapshot up to a step, of the thread or of those it shares that step with.
    pub(super) fn snapshot(&self, thread: ThreadId, upto: u64) -> Option<SnapshotRow> {
        let found = self.threads.get(&thread)?;
        let own = found.snapshots.range(..=upto).next_back().map(|(_, row)| row.clone());
        let shared =
            found.info.forked_from.and_then(|(origin, at)| self.snapshot(origin, at.min(upto)));
        own.into_iter().chain(shared).max_by_key(|row| row.seq)
    }

    /// The snapshots from a step on, of the thread and of those it shares their steps with.
    pub(super) fn snapshots_from(&self, thread: ThreadId, seq: u64) -> BTreeMap<u64, SnapshotRow> {
        let Some(found) = self.threads.get(&thread) else { return BTreeMap::new() };
        let mut all = found.snapshots.clone().split_off(&seq);
        if let Some((origin, at)) = found.info.forked_from {
            let shared = self.snapshots_from(origin, seq).into_iter();
            all.extend(shared.filter(|(seq, _)| *seq <= at));
        }
        all
    }

    pub fn history(
        &self,
        thread: ThreadId,
        before: Option<u64>,
        limit: u32,
    ) -> Result<Vec<StepRow>, Error> {
        let steps = self.get(thread)?.steps.iter().rev();
        let wanted = steps.filter(|step| before.is_none_or(|before| step.seq < before));
        Ok(wanted.take(limit as usize).cloned().collect())
    }

    pub fn put_snapshot(&mut self, thread: ThreadId, row: SnapshotRow) -> Result<(), Error> {
        let found = self.get_mut(thread)?;
        if row.seq > found.info.head {
            return Err(Error::UnknownStep { thread, seq: row.seq, head: found.info.head });
        }
        if row.seq >= found.base {
            found.snapshots.entry(row.seq).or_insert(row);
        }
        Ok(())
    }

    pub fn record(&mut self, thread: ThreadId, fence: u64, row: EffectRow) -> Result<(), Error> {
        self.fenced(thread, fence)?;
        let is_asked_elsewhere = row.kind == EffectKind::Interrupt
            && self.threads.values().any(|other| other.question(&row.key).is_some());
        let found = self.get_mut(thread)?;
        if !is_asked_elsewhere {
            found.effects.entry((row.step, row.task, row.key.clone())).or_insert(row);
        }
        Ok(())
    }

    pub fn settle(
        &mut self,
        thread: ThreadId,
        fence: u64,
        end: &EffectSettlement,
    ) -> Result<(), Error> {
        let unknown = Error::UnknownEffect { thread, step: end.step, task: end.task };
        let found = self.fenced(thread, fence)?;
        let Some(row) = found.effects.get_mut(&(end.step, end.task, end.key.clone())) else {
            return Err(unknown);
        };
        if row.status == EffectStatus::Done {
            let is_same = end.status == EffectStatus::Done && end.outcome == row.outcome;
            return if is_same { Ok(()) } else { Err(unknown) };
        }
        row.status = end.status;
        row.outcome.clone_from(&end.outcome);
        row.attempt = end.attempt;
        row.ended_at = (end.status != EffectStatus::Started).then_some(DateTime::UNIX_EPOCH);
        Ok(())
    }

    pub fn effects(&self, thread: ThreadId, step: Option<u64>) -> Result<Vec<EffectRow>, Error> {
        let is_wanted = |row: &EffectRow| step.is_none_or(|step| row.step == step);
        Ok(self.get(thread)?.effects_sorted(is_wanted))
    }

    pub fn effects_from(&self, thread: ThreadId, step: u64) -> Result<Vec<EffectRow>, Error> {
        Ok(self.get(thread)?.effects_sorted(|row| row.step >= step))
    }

    pub fn open_interrupts(&self, thread: ThreadId) -> Result<Vec<OpenInterrupt>, Error> {
        self.get(thread)?;
        let concerned = self
            .threads
            .values()
            .filter(|one| one.info.id == thread || one.info.root == Some(thread));
        let mut open: Vec<(ThreadId, EffectRow)> = concerned
            .flat_map(|one| one.effects.values().map(|row| (one.info.id, row.clone())))
            .filter(|(_, row)| row.kind == EffectKind::Interrupt)
            .filter(|(_, row)| row.status == EffectStatus::Started)
            .collect();
        open.sort_by_key(|(_, row)| row.started_at);
        let question = |(thread, row): (ThreadId, EffectRow)| OpenInterrupt {
            id: InterruptId(uuid::Uuid::nil()),
            thread,
            step: row.step,
            task: row.task,
            kind: row.name,
            payload: row.request,
            asked_at: row.started_at,
        };
        Ok(open.into_iter().map(question).collect())
    }

    pub fn answer(&mut self, id: InterruptId, answer: Encoded) -> Result<(), Error> {
        let key = id.0.as_bytes();
        let place = self.threads.iter().find_map(|(id, one)| Some((*id, one.question(key)?)));
        let asking = place.as_ref().and_then(|(thread, _)| self.threads.get(thread));
        let top = asking.map(|one| one.info.root.unwrap_or(one.info.id));
        let row = place
            .and_then(|(thread, key)| self.threads.get_mut(&thread)?.effects.get_mut(&key))
            .ok_or(Error::UnknownInterrupt(id))?;
        if row.status != EffectStatus::Started {
            return Err(Error::InterruptClosed(id));
        }
        row.status = EffectStatus::Done;
        row.outcome = Some(answer);
        row.ended_at = Some(DateTime::UNIX_EPOCH);
        if let Some(top) = top.and_then(|top| self.threads.get_mut(&top)) {
            match top.info.status {
                ThreadStatus::Interrupted => top.info.status = ThreadStatus::Queued,
                ThreadStatus::Busy => top.woken = true,
                _ => {}
            }
        }
        Ok(())
    }

    pub fn runs(&self, thread: ThreadId) -> Result<Vec<RunRow>, Error> {
        Ok(self.get(thread)?.runs.clone())
    }

    pub fn delete(&mut self, thread: ThreadId) -> Result<(), Error> {
        self.get(thread)?;
        self.remove(|info| info.id == thread || info.root == Some(thread));
        Ok(())
    }

    fn remove(&mut self, is_doomed: impl Fn(&ThreadInfo) -> bool) {
        let infos = self.threads.values().map(|one| &one.info);
        let doomed: Vec<ThreadId> =
            infos.filter(|info| is_doomed(info)).map(|info| info.id).collect();
        self.hand_over(&doomed);
        self.threads.retain(|id, _| !doomed.contains(id));
    }

    pub fn truncate(&mut self, thread: ThreadId, seq: u64) -> Result<(), Error> {
        let head = self.get(thread)?.info.head;
        let snapshots = self.snapshots_from(thread, seq);
        if seq > head || !snapshots.contains_key(&seq) {
            return Err(Error::UnknownStep { thread, seq, head });
        }
        let is_bare = |step: &&StepRow| step.seq > seq && !snapshots.contains_key(&step.seq);
        if let Some(bare) = self.get(thread)?.returns().find(is_bare) {
            return Err(Error::BareReturn { thread, seq: bare.seq });
        }
        self.hand_over(&[thread]);
        let found = self.get_mut(thread)?;
        found.base = seq;
        found.steps.retain(|step| step.seq > seq);
        found.snapshots = snapshots;
        found.effects.retain(|(step, ..), _| *step > seq);
        found.info.forked_from = None;
        let info = found.info.clone();
        self.remove(|child| {
            let step = subgraph_step(&child.namespace, &info.namespace);
            child.root == Some(info.top()) && step.is_some_and(|step| step <= seq)
        });
        Ok(())
    }

    /// Forks keep what they see of threads that are about to lose it, and become forks of what lies before.
    fn hand_over(&mut self, doomed: &[ThreadId]) {
        let of_doomed = |one: &&Thread| {
            let id = one.info.id;
            let origin = one.info.forked_from;
            !doomed.contains(&id) && origin.is_some_and(|(origin, _)| doomed.contains(&origin))
        };
        let forks: Vec<ThreadId> =
            self.threads.values().filter(of_doomed).map(|one| one.info.id).collect();
        for fork in forks {
            let mut inherited = BTreeMap::new();
            let mut origin = self.threads[&fork].info.forked_from;
            while let Some((id, upto)) = origin.filter(|(id, _)| doomed.contains(id)) {
                let from = &self.threads[&id];
                for (seq, row) in from.snapshots.range(..=upto) {
                    inherited.entry(*seq).or_insert_with(|| row.clone());
                }
                origin = from.info.forked_from.map(|(id, at)| (id, at.min(upto)));
            }
            if let Some(fork) = self.threads.get_mut(&fork) {
                fork.info.forked_from = origin;
                for (seq, row) in inherited {
                    fork.snapshots.entry(seq).or_insert(row);
                }
            }
        }
    }
}

impl Thread {
    /// The steps that return to earlier ones.
    pub(super) fn returns(&self) -> impl Iterator<Item = &StepRow> {
        self.steps.iter().filter(|step| step.kind == StepKind::Fork)
    }

    pub(super) fn pending_now(&self) -> Vec<PendingRow> {
        self.pending.values().filter(|row| row.step == self.info.head + 1).cloned().collect()
    }

    pub(super) fn effects_sorted(&self, is_wanted: impl Fn(&EffectRow) -> bool) -> Vec<EffectRow> {
        let mut rows = self.effects.values().cloned().collect::<Vec<_>>();
        rows.retain(is_wanted);
        rows.sort_by_key(|row| (row.step, row.task, row.number));
        rows
    }
    fn question(&self, key: &[u8]) -> Option<Key> {
        let asked = |row: &&EffectRow| row.kind == EffectKind::Interrupt && row.key == key;
        self.effects.values().find(asked).map(|row| (row.step, row.task, row.key.clone()))
    }
}

fn lease(is_long: bool) -> DateTime<chrono::Utc> {
    if is_long { DateTime::<chrono::Utc>::MAX_UTC } else { DateTime::UNIX_EPOCH }
}
