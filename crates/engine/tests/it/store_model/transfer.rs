//! Whole threads, out of the model and in.

use perihelion_engine::checkpoint::{EffectRow, Error, StepRow, ThreadDump, ThreadStatus};
use perihelion_engine::ids::ThreadId;

use super::{
    model::{Model, Thread},
    rows,
};

const EXPORTED: &str = "it was exported in the middle of its run; resume it to continue from there";

impl Model {
    pub fn export(&self, thread: ThreadId) -> Result<ThreadDump, Error> {
        let mut dump = self.export_one(self.get(thread)?);
        let children = self.threads.values().filter(|one| one.info.root == Some(thread));
        let mut children: Vec<&Thread> = children.collect();
        children.sort_by(|one, other| one.info.namespace.cmp(&other.info.namespace));
        dump.children = children.into_iter().map(|child| self.export_one(child)).collect();
        dump.blobs = rows::texts_of(&dump);
        Ok(dump)
    }

    fn export_one(&self, one: &Thread) -> ThreadDump {
        let base = (one.base > 0).then(|| self.snapshot(one.info.id, one.base)).flatten();
        let later = self.snapshots_from(one.info.id, one.base + 1);
        let next = |step: &StepRow| later.range(step.seq..).next().map(|(seq, _)| *seq);
        let mut returned: Vec<u64> =
            one.returns().filter(|_| base.is_some()).filter_map(next).collect();
        returned.dedup();
        ThreadDump {
            info: one.info.clone(),
            snapshot: base,
            returned: returned.iter().map(|seq| later[seq].clone()).collect(),
            steps: one.steps.clone(),
            pending: one.pending_now(),
            effects: one.effects_sorted(|_| true),
            runs: one.runs.clone(),
            blobs: Vec::new(),
            children: Vec::new(),
        }
    }

    pub fn import(&mut self, dump: &ThreadDump) -> Result<(), Error> {
        let top = &dump.info;
        let is_placed = |one: &ThreadDump| one.info.id == top.id.child(&one.info.namespace);
        if top.root.is_some() || !dump.children.iter().all(is_placed) {
            return Err(Error::Import(String::new()));
        }
        let all = || std::iter::once(dump).chain(&dump.children);
        if let Some(taken) = all().find(|one| self.threads.contains_key(&one.info.id)) {
            return Err(Error::ThreadExists(taken.info.id));
        }
        for one in all() {
            let mut info = one.info.clone();
            (info.owner, info.lease_until, info.forked_from) = (None, None, None);
            if matches!(info.status, ThreadStatus::Busy | ThreadStatus::Queued) {
                (info.status, info.error) = (ThreadStatus::Failed, Some(EXPORTED.to_owned()));
            }
            let base = one.snapshot.as_ref().map_or(0, |row| row.seq);
            let place = |row: &EffectRow| (row.step, row.task, row.key.clone());
            let snapshots = one.snapshot.iter().chain(&one.returned);
            let thread = Thread {
                base,
                steps: one.steps.clone(),
                snapshots: snapshots.map(|row| (row.seq, row.clone())).collect(),
                pending: one
                    .pending
                    .iter()
                    .map(|row| ((row.step, row.task), row.clone()))
                    .collect(),
                effects: one.effects.iter().map(|row| (place(row), row.clone())).collect(),
                runs: one.runs.clone(),
                woken: false,
                info,
            };
            self.threads.insert(thread.info.id, thread);
        }
        Ok(())
    }
}
