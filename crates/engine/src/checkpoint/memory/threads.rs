//! Threads as such: made, forked, listed, shortened and deleted without taking history from their forks.

use std::collections::{BTreeMap, HashSet};

use async_trait::async_trait;

use super::super::chain::has_step;
use super::super::{
    BlobRow, Error, NewThread, Result, StepKind, StepRow, ThreadFilter, ThreadInfo, ThreadStatus,
    Threads,
};
use super::MemoryStore;
use super::state::{Kept, State, fresh};
use crate::graph::subgraph_step;
use crate::ids::ThreadId;

#[async_trait]
impl Threads for MemoryStore {
    async fn create(&self, new: NewThread) -> Result<ThreadInfo> {
        self.state.lock().create(new, None)
    }

    async fn info(&self, thread: ThreadId) -> Result<ThreadInfo> {
        Ok(self.state.lock().get(thread)?.info.clone())
    }

    async fn fork(&self, source: ThreadId, at: u64, new: NewThread) -> Result<ThreadInfo> {
        self.state.lock().create(new, Some((source, at)))
    }

    async fn list(&self, filter: &ThreadFilter) -> Result<Vec<ThreadInfo>> {
        let state = self.state.lock();
        let mut found: Vec<&ThreadInfo> = state
            .infos()
            .filter(|info| filter.status.is_none_or(|status| info.overall_status() == status))
            .filter(|info| match filter.root {
                Some(root) => info.root == Some(root),
                None => filter.with_children || info.root.is_none(),
            })
            .filter(|info| filter.updated_before.is_none_or(|before| info.updated_at < before))
            .collect();
        found.sort_unstable_by_key(|info| std::cmp::Reverse((info.updated_at, info.id)));
        let limit = filter.limit.map_or(usize::MAX, |limit| limit as usize);
        Ok(found.into_iter().take(limit).cloned().collect())
    }

    async fn count_threads(&self) -> Result<Vec<(ThreadStatus, u64)>> {
        let state = self.state.lock();
        let mut counts = BTreeMap::new();
        for info in state.infos().filter(|info| info.root.is_none()) {
            *counts.entry(info.overall_status()).or_insert(0) += 1;
        }
        Ok(counts.into_iter().collect())
    }

    async fn delete(&self, thread: ThreadId) -> Result<()> {
        self.states.forget(thread);
        self.state.lock().delete(thread, None)
    }

    async fn delete_as_seen(&self, seen: &ThreadInfo) -> Result<()> {
        self.states.forget(seen.id);
        self.state.lock().delete(seen.id, Some(seen))
    }

    async fn truncate(&self, thread: ThreadId, seq: u64) -> Result<()> {
        let state = &mut *self.state.lock();
        let head = state.get(thread)?.info.head;
        let snapshot = state.snapshot(thread, seq).filter(|snapshot| snapshot.seq == seq);
        if snapshot.is_none() || seq > head {
            return Err(Error::UnknownStep { thread, seq, head });
        }
        let snapshots = state.snapshots_from(thread, seq);
        let is_bare =
            |step: &&StepRow| step.kind == StepKind::Fork && !snapshots.contains_key(&step.seq);
        if let Some(bare) = state.steps(thread, seq, head).iter().find(is_bare) {
            return Err(Error::BareReturn { thread, seq: bare.seq });
        }
        state.hand_over(&HashSet::from([thread]));
        let line = state.line(thread, head);
        let steps =
            line.iter().rev().flat_map(|(kept, upto)| kept.own(seq, *upto)).cloned().collect();
        let shared =
            state.shared_blobs(thread, line.iter().skip(1).map(|(kept, upto)| (*kept, *upto)));
        state.keep_blobs(&shared);
        let kept = state.get_mut(thread)?;
        kept.steps = steps;
        kept.base = seq;
        kept.info.forked_from = None;
        kept.snapshots = snapshots;
        kept.effects = kept.effects.split_off(&(seq + 1, 0, Vec::new()));
        let info = kept.info.clone();
        state.interrupts.retain(|_, (owner, (step, ..))| *owner != thread || *step > seq);
        let is_dropped = |child: &ThreadInfo| {
            let step = subgraph_step(&child.namespace, &info.namespace);
            child.root == Some(info.top()) && step.is_some_and(|step| step <= seq)
        };
        state.remove(is_dropped);
        Ok(())
    }
}

impl State {
    pub(super) fn create(
        &mut self,
        new: NewThread,
        origin: Option<(ThreadId, u64)>,
    ) -> Result<ThreadInfo> {
        let mut base = 0;
        if let Some((source, at)) = origin {
            let source = self.get(source)?;
            base = source.base;
            has_step(&source.info, base, at)?;
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

    pub(super) fn delete(&mut self, thread: ThreadId, seen: Option<&ThreadInfo>) -> Result<()> {
        let info = &self.get(thread)?.info;
        if seen.is_some_and(|seen| !info.is_as_seen(seen)) {
            return Err(Error::Moved { thread });
        }
        self.remove(|info| info.id == thread || info.root == Some(thread));
        Ok(())
    }

    fn remove(&mut self, is_doomed: impl Fn(&ThreadInfo) -> bool) {
        let doomed: HashSet<ThreadId> =
            self.infos().filter(|info| is_doomed(info)).map(|info| info.id).collect();
        self.hand_over(&doomed);
        self.threads.retain(|id, _| !doomed.contains(id));
        self.blobs.retain(|(owner, _), _| !doomed.contains(owner));
        self.interrupts.retain(|_, (owner, _)| !doomed.contains(owner));
    }

    /// Copies the texts that a thread shares with those it was forked from, each up to a step.
    ///
    /// The thread of a subgraph has separate step numbers: then all of its effects.
    fn shared_blobs<'k>(
        &self,
        thread: ThreadId,
        line: impl Iterator<Item = (&'k Kept, u64)>,
    ) -> Vec<BlobRow> {
        let owner = self.threads.get(&thread).and_then(|kept| kept.info.root).unwrap_or(thread);
        let texts = line.flat_map(|(kept, upto)| {
            let is_top = kept.info.root.is_none();
            let of = kept.info.top();
            self.blobs_of(of).filter(move |row| !is_top || row.step <= upto)
        });
        texts.map(|row| BlobRow { owner, ..BlobRow::clone(row) }).collect()
    }

    /// Transfers to every fork of the deleted threads the rows that it shares, and makes it a fork of their own origin,
    /// if there is one.
    fn hand_over(&mut self, doomed: &HashSet<ThreadId>) {
        let fork = |info: &ThreadInfo| {
            let (parent, seq) = info.forked_from.filter(|_| !doomed.contains(&info.id))?;
            doomed.contains(&parent).then_some((info.id, seq))
        };
        let forks: Vec<(ThreadId, u64)> = self.infos().filter_map(fork).collect();
        for (fork, upto) in forks {
            let mut gone = self.line(fork, upto).split_off(1);
            let is_left = |(kept, _): &(&Kept, u64)| !doomed.contains(&kept.info.id);
            let left = gone.iter().position(is_left).unwrap_or(gone.len());
            let origin = gone.get(left).map(|(kept, upto)| (kept.info.id, *upto));
            gone.truncate(left);
            let mut steps = Vec::new();
            let mut snapshots = Vec::new();
            let texts = self.shared_blobs(fork, gone.iter().copied());
            for (kept, upto) in gone.into_iter().rev() {
                steps.extend_from_slice(kept.own(0, upto));
                snapshots.extend(kept.snapshots.range(..=upto).map(|(seq, it)| (*seq, it.clone())));
            }
            self.keep_blobs(&texts);
            let Some(kept) = self.threads.get_mut(&fork) else { continue };
            steps.append(&mut kept.steps);
            kept.steps = steps;
            for (seq, snapshot) in snapshots {
                kept.snapshots.entry(seq).or_insert(snapshot);
            }
            kept.info.forked_from = origin;
        }
    }
}
