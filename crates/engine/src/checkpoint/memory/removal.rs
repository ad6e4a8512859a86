//! Deleting and shortening threads without taking history from their forks.

use std::collections::HashSet;

use super::{
    super::{BlobRow, Error, StepKind, StepRow, ThreadInfo},
    state::{Kept, State},
};
use crate::ids::ThreadId;

impl State {
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

    pub(super) fn truncate(&mut self, thread: ThreadId, seq: u64) -> Result<(), Error> {
        let head = self.get(thread)?.info.head;
        let snapshot = self.snapshot(thread, seq).filter(|snapshot| snapshot.seq == seq);
        if snapshot.is_none() || seq > head {
            return Err(Error::UnknownStep { thread, seq, head });
        }
        let snapshots = self.snapshots_from(thread, seq);
        let is_bare =
            |step: &&StepRow| step.kind == StepKind::Fork && !snapshots.contains_key(&step.seq);
        if let Some(bare) = self.steps(thread, seq, head).iter().find(is_bare) {
            return Err(Error::BareReturn { thread, seq: bare.seq });
        }
        self.hand_over(&HashSet::from([thread]));
        let line = self.line(thread, head);
        let steps =
            line.iter().rev().flat_map(|(kept, upto)| kept.own(seq, *upto)).cloned().collect();
        let shared =
            self.shared_blobs(thread, line.iter().skip(1).map(|(kept, upto)| (*kept, *upto)));
        self.keep_blobs(&shared);
        let kept = self.get_mut(thread)?;
        kept.steps = steps;
        kept.base = seq;
        kept.info.forked_from = None;
        kept.snapshots = snapshots;
        kept.effects = kept.effects.split_off(&(seq + 1, 0, Vec::new()));
        self.interrupts.retain(|_, (owner, (step, ..))| *owner != thread || *step > seq);
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
