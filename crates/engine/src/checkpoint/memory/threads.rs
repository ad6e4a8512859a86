//! Threads as such: made, forked, listed, shortened and deleted without taking history from their forks.

use std::collections::HashSet;

use async_trait::async_trait;

use super::{
    super::{
        BlobRow, Error, NewThread, StepKind, StepRow, ThreadFilter, ThreadInfo, ThreadStatus,
        Threads,
    },
    MemoryStore,
    state::{Kept, State, fresh},
};
use crate::ids::ThreadId;

#[async_trait]
impl Threads for MemoryStore {
    async fn create(&self, new: NewThread) -> Result<ThreadInfo, Error> {
        self.state().create(new, None)
    }

    async fn info(&self, thread: ThreadId) -> Result<ThreadInfo, Error> {
        Ok(self.state().get(thread)?.info.clone())
    }

    async fn fork(&self, source: ThreadId, at: u64, new: NewThread) -> Result<ThreadInfo, Error> {
        self.state().create(new, Some((source, at)))
    }

    async fn list(&self, filter: &ThreadFilter) -> Result<Vec<ThreadInfo>, Error> {
        let state = self.state();
        let mut found: Vec<&ThreadInfo> = state
            .threads
            .values()
            .map(|kept| &kept.info)
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

    async fn count_threads(&self) -> Result<Vec<(ThreadStatus, u64)>, Error> {
        let state = self.state();
        let mut counts: Vec<(ThreadStatus, u64)> = Vec::new();
        for info in state.threads.values().map(|kept| &kept.info).filter(|one| one.root.is_none()) {
            let overall = info.overall_status();
            match counts.iter_mut().find(|(status, _)| *status == overall) {
                Some((_, count)) => *count += 1,
                None => counts.push((overall, 1)),
            }
        }
        Ok(counts)
    }

    async fn delete(&self, thread: ThreadId) -> Result<(), Error> {
        self.states.forget(thread);
        self.state().delete(thread, None)
    }

    async fn delete_as_seen(&self, seen: &ThreadInfo) -> Result<(), Error> {
        self.states.forget(seen.id);
        self.state().delete(seen.id, Some(seen))
    }

    async fn truncate(&self, thread: ThreadId, seq: u64) -> Result<(), Error> {
        let state = &mut *self.state();
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
        state.interrupts.retain(|_, (owner, (step, ..))| *owner != thread || *step > seq);
        Ok(())
    }
}

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

    /// Deletes a thread; with `seen`, only while it is as it was seen.
    pub(super) fn delete(
        &mut self,
        thread: ThreadId,
        seen: Option<&ThreadInfo>,
    ) -> Result<(), Error> {
        let info = &self.get(thread)?.info;
        if seen.is_some_and(|seen| !info.is_as_seen(seen)) {
            return Err(Error::Moved { thread });
        }
        let doomed: HashSet<ThreadId> = self
            .threads
            .values()
            .filter(|kept| kept.info.id == thread || kept.info.root == Some(thread))
            .map(|kept| kept.info.id)
            .collect();
        self.hand_over(&doomed);
        self.threads.retain(|id, _| !doomed.contains(id));
        self.blobs.retain(|(owner, _), _| !doomed.contains(owner));
        self.interrupts.retain(|_, (owner, _)| !doomed.contains(owner));
        Ok(())
    }

    /// Copies the texts that a thread shares with those it was forked from, each up to a step.
    ///
    /// Where that is a subgraph's thread, its steps have numbers of their own: then all that there are.
    fn shared_blobs<'k>(
        &self,
        thread: ThreadId,
        line: impl Iterator<Item = (&'k Kept, u64)>,
    ) -> Vec<BlobRow> {
        let owner = self.threads.get(&thread).and_then(|kept| kept.info.root).unwrap_or(thread);
        let texts = line.flat_map(|(kept, upto)| {
            let is_top = kept.info.root.is_none();
            let of = kept.info.root.unwrap_or(kept.info.id);
            self.blobs_of(of).filter(move |row| !is_top || row.step <= upto)
        });
        texts.map(|row| BlobRow { owner, ..BlobRow::clone(row) }).collect()
    }

    /// Hands every fork of the doomed threads the rows it shares with them, and makes it a fork of what
    /// lies before them, if anything does.
    fn hand_over(&mut self, doomed: &HashSet<ThreadId>) {
        let forks: Vec<(ThreadId, u64)> = self
            .threads
            .values()
            .filter(|kept| !doomed.contains(&kept.info.id))
            .filter_map(|kept| {
                let (parent, seq) = kept.info.forked_from?;
                doomed.contains(&parent).then_some((kept.info.id, seq))
            })
            .collect();
        for (fork, upto) in forks {
            let line = self.line(fork, upto);
            let gone = line.iter().skip(1).take_while(|(kept, _)| doomed.contains(&kept.info.id));
            let origin = line
                .iter()
                .skip(1)
                .find(|(kept, _)| !doomed.contains(&kept.info.id))
                .map(|(kept, upto)| (kept.info.id, *upto));
            let mut steps = Vec::new();
            let mut snapshots = Vec::new();
            let gone: Vec<(&Kept, u64)> = gone.map(|(kept, upto)| (*kept, *upto)).collect();
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
