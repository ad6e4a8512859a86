//! The stored rows, and how a fork finds the steps that it shares.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use super::super::{
    BlobRow, EffectRow, Error, EventPosition, EventRow, Fence, Loaded, NewThread, PendingExport,
    PendingRow, Result, RunRow, SnapshotRow, StepRow, ThreadDump, ThreadInfo, ThreadStatus, blobs,
    chain,
    limits::{moment, text},
};
use crate::clock;
use crate::ids::{RunId, ThreadId};

/// Place of an effect: step, task, key.
pub(super) type EffectPlace = (u64, u32, Vec<u8>);

pub(super) struct Kept {
    pub(super) info: ThreadInfo,
    /// Steps up to this one were dropped.
    pub(super) base: u64,
    /// Own steps; the first one has the number `start() + 1`.
    pub(super) steps: Vec<Arc<StepRow>>,
    pub(super) snapshots: BTreeMap<u64, Arc<SnapshotRow>>,
    pub(super) pending: BTreeMap<(u64, u32), PendingRow>,
    pub(super) effects: BTreeMap<EffectPlace, EffectRow>,
    pub(super) runs: Vec<RunRow>,
    pub(super) events: Vec<EventRow>,
    pub(super) position: EventPosition,
    /// Whether an answer came while it was busy.
    pub(super) woken: bool,
    pub(super) run_index: HashMap<RunId, usize>,
}

impl Kept {
    pub(super) fn new(info: ThreadInfo, base: u64) -> Self {
        Self {
            info,
            base,
            steps: Vec::new(),
            snapshots: BTreeMap::new(),
            pending: BTreeMap::new(),
            effects: BTreeMap::new(),
            runs: Vec::new(),
            events: Vec::new(),
            position: EventPosition::default(),
            woken: false,
            run_index: HashMap::new(),
        }
    }

    /// Returns the number of the last step that is not its own.
    pub(super) fn start(&self) -> u64 {
        self.info.forked_from.map_or(self.base, |(_, seq)| seq)
    }

    /// Returns own steps after `after` up to `upto`.
    pub(super) fn own(&self, after: u64, upto: u64) -> &[Arc<StepRow>] {
        let start = self.start();
        let index = |seq: u64| (seq.saturating_sub(start) as usize).min(self.steps.len());
        let from = index(after);
        let to = index(upto);
        &self.steps[from.min(to)..to]
    }
}

#[derive(Default)]
pub(super) struct State {
    pub(super) threads: HashMap<ThreadId, Kept>,
    pub(super) interrupts: HashMap<Vec<u8>, (ThreadId, EffectPlace)>,
    /// Texts by the thread at the top and their hash.
    pub(super) blobs: BTreeMap<(ThreadId, [u8; 32]), Arc<BlobRow>>,
    /// Pending exports of traces; exports of deleted threads do not count.
    pub(super) exports: HashMap<ThreadId, PendingExport>,
}

impl State {
    pub(super) fn infos(&self) -> impl Iterator<Item = &ThreadInfo> {
        self.threads.values().map(|kept| &kept.info)
    }

    pub(super) fn get(&self, thread: ThreadId) -> Result<&Kept> {
        self.threads.get(&thread).ok_or(Error::UnknownThread(thread))
    }

    pub(super) fn get_mut(&mut self, thread: ThreadId) -> Result<&mut Kept> {
        self.threads.get_mut(&thread).ok_or(Error::UnknownThread(thread))
    }

    /// Returns the thread for a writer that holds the newest fencing token.
    pub(super) fn fenced(&mut self, fence: Fence) -> Result<&mut Kept> {
        let kept = self.get_mut(fence.thread)?;
        fence.check(kept.info.fence)?;
        Ok(kept)
    }

    /// Returns the thread and those it was forked from, each with the last step that counts in it.
    pub(super) fn line(&self, thread: ThreadId, upto: u64) -> Vec<(&Kept, u64)> {
        let mut line = Vec::new();
        let mut next = Some((thread, upto));
        while let Some((id, upto)) = next {
            let Some(kept) = self.threads.get(&id) else { break };
            line.push((kept, upto));
            next = kept.info.forked_from.map(|(parent, seq)| (parent, seq.min(upto)));
        }
        line
    }

    /// Returns steps after `after` up to `upto`, oldest first, shared ones included.
    pub(super) fn steps(&self, thread: ThreadId, after: u64, upto: u64) -> Vec<StepRow> {
        let line = self.line(thread, upto);
        line.iter()
            .rev()
            .flat_map(|(kept, upto)| kept.own(after, *upto))
            .map(|step| StepRow::clone(step))
            .collect()
    }

    pub(super) fn snapshot(&self, thread: ThreadId, upto: u64) -> Option<Arc<SnapshotRow>> {
        self.line(thread, upto)
            .into_iter()
            .filter_map(|(kept, upto)| kept.snapshots.range(..=upto).next_back())
            .max_by_key(|(seq, _)| **seq)
            .map(|(_, snapshot)| Arc::clone(snapshot))
    }

    /// Returns the snapshots of a thread from a step on, shared ones included.
    pub(super) fn snapshots_from(
        &self,
        thread: ThreadId,
        seq: u64,
    ) -> BTreeMap<u64, Arc<SnapshotRow>> {
        let mut found = BTreeMap::new();
        for (kept, upto) in self.line(thread, u64::MAX) {
            for (at, row) in kept.snapshots.range(seq..).take_while(|(at, _)| **at <= upto) {
                found.entry(*at).or_insert_with(|| Arc::clone(row));
            }
        }
        found
    }

    /// Returns the threads whose texts a thread may reference: the thread, the one at the top, and their origins.
    pub(super) fn owners(&self, thread: ThreadId) -> Vec<ThreadId> {
        let mut owners = vec![thread];
        let mut next = 0;
        while let Some(kept) = owners.get(next).map(|id| self.threads.get(id)) {
            let info = kept.map(|kept| &kept.info);
            let origin = info.and_then(|info| info.forked_from).map(|(parent, _)| parent);
            for id in info.and_then(|info| info.root).into_iter().chain(origin) {
                if !owners.contains(&id) {
                    owners.push(id);
                }
            }
            next += 1;
        }
        owners
    }

    pub(super) fn blobs_of(&self, owner: ThreadId) -> impl Iterator<Item = &Arc<BlobRow>> {
        self.blobs.range((owner, [0; 32])..=(owner, [u8::MAX; 32])).map(|(_, row)| row)
    }

    pub(super) fn load(
        &self,
        thread: ThreadId,
        at: Option<u64>,
        since: Option<u64>,
    ) -> Result<Loaded> {
        let kept = self.get(thread)?;
        let head = kept.info.head;
        let at = at.unwrap_or(head);
        chain::has_step(&kept.info, kept.base, at)?;
        let snapshot = since.is_none().then(|| self.snapshot(thread, at)).flatten();
        let snapshot = snapshot.map(|snapshot| SnapshotRow::clone(&snapshot));
        let after = since.map(|since| since.saturating_sub(1));
        let after = after.or(snapshot.as_ref().map(|snapshot| snapshot.seq)).unwrap_or_default();
        Ok(Loaded {
            info: kept.info.clone(),
            snapshot,
            steps: self.steps(thread, after, at),
            pending: if at == head { kept.pending_of(head + 1) } else { Vec::new() },
        })
    }

    pub(super) fn export(&self, thread: ThreadId) -> Result<ThreadDump> {
        let mut dump = self.export_one(thread)?;
        let mut children: Vec<&ThreadInfo> =
            self.infos().filter(|info| info.root == Some(thread)).collect();
        children.sort_unstable_by(|a, b| (&a.namespace, a.id).cmp(&(&b.namespace, b.id)));
        for child in children {
            dump.children.push(self.export_one(child.id)?);
        }
        let owners = self.owners(thread);
        let kept = owners.iter().flat_map(|owner| self.blobs_of(*owner));
        dump.blobs = kept.map(|row| BlobRow::clone(row)).collect();
        blobs::keep_named(&mut dump)?;
        chain::verify(&dump)?;
        Ok(dump)
    }

    fn export_one(&self, thread: ThreadId) -> Result<ThreadDump> {
        let kept = self.get(thread)?;
        let base = (kept.base > 0).then(|| self.snapshot(thread, kept.base)).flatten();
        let steps = self.steps(thread, kept.base, kept.info.head);
        let mut returned = Vec::new();
        if base.is_some() {
            let there = self.snapshots_from(thread, kept.base + 1);
            let seqs: Vec<u64> = there.keys().copied().collect();
            let of_returns = chain::of_returns(&steps, &seqs).into_iter();
            returned.extend(of_returns.map(|seq| SnapshotRow::clone(&there[&seq])));
        }
        Ok(ThreadDump {
            info: kept.info.clone(),
            snapshot: base.map(|snapshot| SnapshotRow::clone(&snapshot)),
            returned,
            steps,
            pending: kept.pending_of(kept.info.head + 1),
            effects: kept.effects_between(0, u64::MAX),
            runs: kept.runs.clone(),
            blobs: Vec::new(),
            children: Vec::new(),
        })
    }
}

impl Kept {
    pub(super) fn pending_of(&self, step: u64) -> Vec<PendingRow> {
        self.pending.range((step, 0)..=(step, u32::MAX)).map(|(_, row)| row.clone()).collect()
    }

    /// Returns the effects of a range of steps, in order of step, task and number.
    pub(super) fn effects_between(&self, first: u64, last: u64) -> Vec<EffectRow> {
        let from = self.effects.range((first, 0, Vec::new())..);
        let mut found: Vec<EffectRow> = from
            .take_while(|((at, ..), _)| *at <= last)
            .map(|(_, effect)| effect.clone())
            .collect();
        found.sort_by_key(|effect| (effect.step, effect.task, effect.number));
        found
    }
}

pub(super) fn fresh(new: NewThread, origin: Option<(ThreadId, u64)>) -> ThreadInfo {
    let now = moment(clock::now());
    ThreadInfo {
        id: new.id,
        graph: text(&new.graph).into_owned(),
        title: new.title.as_deref().map(|title| text(title).into_owned()),
        root: new.root,
        namespace: text(&new.namespace).into_owned(),
        tenant: text(&new.tenant).into_owned(),
        head: origin.map_or(0, |(_, seq)| seq),
        status: ThreadStatus::Idle,
        error: None,
        fence: 0,
        owner: None,
        lease_until: None,
        forked_from: origin,
        created_at: now,
        updated_at: now,
        archived: None,
    }
}
