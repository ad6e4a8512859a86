//! The steps of a thread as clients look at them: each with the state after it.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::sync::Arc;

use uuid::Uuid;

use super::{Error, Result, Service, assistant_of};
use perihelion_engine::checkpoint::{StepKind, StepRow};
use perihelion_engine::ids::ThreadId;
use perihelion_runtime::{FoldedStep, Served, ThreadState, Wrote};

#[derive(Clone, Debug)]
pub struct Checkpoint {
    pub row: StepRow,
    /// After an input, with the message that the next step takes in from it.
    pub state: ThreadState,
    /// The start state of the next step.
    pub(super) folded: ThreadState,
    pub next: Vec<String>,
    pub written: Vec<Wrote>,
    pub id: String,
    /// The ID of the step before it, or of the one that was returned to; step 0 is the start of the thread.
    pub parent_id: String,
    /// The run that made it; `None` for an edit of the state between runs.
    pub run: Option<StepRun>,
}

impl Checkpoint {
    /// Returns its number for clients: for a hosted graph that of LangGraph, which counts from -1.
    pub fn number(&self) -> i64 {
        match self.state.hosted_step() {
            Some(step) => step + i64::from(self.row.kind == StepKind::Fork),
            None => self.row.seq.cast_signed(),
        }
    }

    /// Returns the updates for clients: those of a super-step, unless the process of its graph streams them itself.
    pub fn updates(&self) -> &[Wrote] {
        let is_shown = self.row.kind == StepKind::Loop && !self.state.about().is_hosted;
        if is_shown { &self.written } else { &[] }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StepRun {
    pub id: Uuid,
    pub assistant: Uuid,
}

impl Service {
    /// Returns the state of a thread at a step.
    ///
    /// # Errors
    /// [`Error::UnknownCheckpoint`].
    pub async fn checkpoint(&self, thread: ThreadId, at: u64) -> Result<Checkpoint> {
        let unknown = || Error::UnknownCheckpoint(at.to_string());
        let rows = self.runtime().store().history(thread, Some(at.saturating_add(1)), 1).await?;
        let found = self.folded(thread, rows).await?.pop();
        found.filter(|found| found.row.seq == at).ok_or_else(unknown)
    }

    /// Makes the checkpoints of steps that follow each other; newest first, as the steps are.
    pub async fn folded(
        &self,
        thread: ThreadId,
        mut rows: Vec<StepRow>,
    ) -> Result<Vec<Checkpoint>> {
        rows.reverse();
        let Some(first) = rows.first() else { return Ok(Vec::new()) };
        let graph = self.runtime().graph_of(thread).await?;
        let mut state = graph.state(thread, Some(first.seq - 1)).await?;
        let mut checkpoints = Vec::with_capacity(rows.len());
        let ids = self.checkpoint_ids(thread).await?;
        let runs = self.runs_of_steps(&ids, &rows).await?;
        for (row, run) in rows.into_iter().zip(runs) {
            let next = self.fold(graph, &ids, &state, row, run).await?;
            state = next.folded.clone();
            checkpoints.push(next);
        }
        checkpoints.reverse();
        Ok(checkpoints)
    }

    pub async fn runs_of_steps(
        &self,
        ids: &CheckpointIds,
        rows: &[StepRow],
    ) -> Result<Vec<Option<StepRun>>> {
        let mut known = BTreeMap::new();
        let mut runs = Vec::with_capacity(rows.len());
        for row in rows {
            let origin = ids.origin(row.seq);
            if let Entry::Vacant(place) = known.entry(origin) {
                let seqs = || rows.iter().map(|row| row.seq);
                let first = seqs().min().unwrap_or_default();
                let last = seqs().max().unwrap_or_default();
                place.insert(self.kept().runs_of_steps(origin.0, first, last).await?);
            }
            let made = known[&origin].iter().rev().find(|run| run.steps.contains(&row.seq));
            let made = made.map(|run| StepRun { id: run.id, assistant: run.assistant });
            // A run of the command line is known to its thread alone.
            let own = StepRun { id: row.run.0, assistant: assistant_of(ids.graph()) };
            runs.push(made.or_else(|| (row.kind != StepKind::Edit).then_some(own)));
        }
        Ok(runs)
    }

    pub(super) async fn fold(
        &self,
        graph: &Arc<dyn Served>,
        ids: &CheckpointIds,
        before: &ThreadState,
        row: StepRow,
        run: Option<StepRun>,
    ) -> Result<Checkpoint> {
        let folded = graph.fold(ids.thread(), before, &row).await?;
        let FoldedStep { shown: state, state: folded, written, parent } = folded;
        let next = match state.next() {
            Some(_) if row.kind == StepKind::Input => vec!["__start__".to_owned()],
            Some(next) => next.to_vec(),
            None => row.frontier()?.tasks.into_iter().map(|task| task.node).collect(),
        };
        let id = ids.id(row.seq);
        let parent_id = ids.id(parent);
        Ok(Checkpoint { row, state, folded, next, written, id, parent_id, run })
    }
}

/// Bits of a step's number in an ID.
const BITS: u32 = 48;

#[derive(Clone, Debug)]
pub struct CheckpointIds {
    thread: ThreadId,
    graph: String,
    /// The threads that it was copied from, each with the last step that it shares; oldest first.
    origins: Vec<(Uuid, u64)>,
}

impl CheckpointIds {
    /// Returns the thread that made a step: this one, or the one from which it was copied.
    pub(super) fn origin(&self, step: u64) -> ThreadId {
        let shared = self.origins.iter().find(|(_, last)| step <= *last);
        shared.map_or(self.thread, |(origin, _)| ThreadId(*origin))
    }

    pub(super) fn thread(&self) -> ThreadId {
        self.thread
    }

    pub(super) fn graph(&self) -> &str {
        &self.graph
    }

    pub fn id(&self, step: u64) -> String {
        id_in(self.origin(step), step)
    }

    /// Returns the step of an ID; `None` when it belongs to another thread.
    pub fn step(&self, id: &str) -> Option<u64> {
        let found = Uuid::parse_str(id).ok()?;
        let step = u64::try_from(found.as_u128() >> (128 - BITS)).ok()?;
        // Earlier versions gave the steps of a copy IDs of its own.
        let ids = [self.id(step), id_in(self.thread, step)];
        ids.contains(&found.to_string()).then_some(step)
    }
}

fn id_in(thread: ThreadId, step: u64) -> String {
    let tail = Uuid::new_v5(&thread.0, b"checkpoint").as_u128() & ((1 << 76) - 1);
    let bits = (u128::from(step) << (128 - BITS)) | tail;
    let version = (bits & !(0xf << 76)) | (0x8 << 76);
    let variant = (version & !(0x3 << 62)) | (0x2 << 62);
    Uuid::from_u128(variant).to_string()
}

impl Service {
    pub async fn checkpoint_ids(&self, thread: ThreadId) -> Result<CheckpointIds> {
        let graph = self.runtime().store().info(thread).await?.graph;
        self.ids_of(thread, &graph).await
    }

    pub(super) async fn ids_of(&self, thread: ThreadId, graph: &str) -> Result<CheckpointIds> {
        let origins = self.kept().thread_meta(thread.0).await?.origins;
        Ok(CheckpointIds { thread, graph: graph.to_owned(), origins })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ids(origins: Vec<(Uuid, u64)>) -> CheckpointIds {
        CheckpointIds { thread: ThreadId::new(), graph: String::new(), origins }
    }

    #[test]
    fn an_id_names_its_step_and_thread_and_sorts_as_steps_do() {
        let one = ids(Vec::new());
        let all: Vec<String> = [1, 2, 255, 65_536].map(|step| one.id(step)).into();
        assert!(all.is_sorted(), "{all:?}");
        assert_eq!(one.step(&all[2]), Some(255));
        assert_eq!(ids(Vec::new()).step(&all[2]), None, "another thread's");
        assert_eq!(one.step("x"), None);
    }

    #[test]
    fn a_copy_keeps_the_ids_of_what_it_shares() {
        let first = ids(Vec::new());
        let copy = ids(vec![(first.thread.0, 3)]);
        let second = ids(vec![(first.thread.0, 3), (copy.thread.0, 5)]);
        assert_eq!((copy.id(3), second.id(3)), (first.id(3), first.id(3)));
        assert_eq!(second.id(4), copy.id(4));
        assert_ne!(copy.id(4), first.id(4));
        assert_eq!(second.step(&first.id(2)), Some(2));
        assert_eq!(second.step(&first.id(4)), None);
        assert_eq!(copy.step(&id_in(copy.thread, 2)), Some(2), "as an earlier version named it");
    }
}
