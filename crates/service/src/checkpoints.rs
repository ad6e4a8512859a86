//! The steps of a thread as clients look at them: each with the state after it.

use std::sync::Arc;

use super::{Error, Service};
use perihelion_engine::checkpoint::{StepRow, forked_to, read_delta};
use perihelion_engine::graph::{State as _, Written};
use perihelion_engine::ids::ThreadId;
use perihelion_star::GraphState;

/// A step of a thread with the state after it.
#[derive(Clone, Debug)]
pub struct Checkpoint {
    pub row: StepRow,
    pub state: Arc<GraphState>,
    pub next: Vec<String>,
    /// What its tasks wrote.
    pub written: Vec<Written<GraphState>>,
    /// The step that it follows: the one before it, or the one that was returned to.
    pub parent: Option<u64>,
}

impl Service {
    /// Returns the state of a thread at a step.
    ///
    /// # Errors
    /// [`Error::UnknownCheckpoint`].
    pub async fn checkpoint(&self, thread: ThreadId, at: u64) -> Result<Checkpoint, Error> {
        let unknown = || Error::UnknownCheckpoint(at.to_string());
        let rows = self.runtime().store().history(thread, Some(at.saturating_add(1)), 1).await?;
        let found = self.folded(thread, rows).await?.pop();
        found.filter(|found| found.row.seq == at).ok_or_else(unknown)
    }

    /// Makes the checkpoints of steps that follow each other; newest first, as the steps are.
    ///
    /// # Errors
    /// Whatever the store reports.
    pub async fn folded(
        &self,
        thread: ThreadId,
        mut rows: Vec<StepRow>,
    ) -> Result<Vec<Checkpoint>, Error> {
        rows.reverse();
        let Some(first) = rows.first() else { return Ok(Vec::new()) };
        let mut state = match first.seq {
            1 => Arc::default(),
            seq => self.runtime().threads().state(thread, Some(seq - 1)).await?.state,
        };
        let mut checkpoints = Vec::with_capacity(rows.len());
        for row in rows {
            let next = self.fold(thread, &state, row).await?;
            state = Arc::clone(&next.state);
            checkpoints.push(next);
        }
        checkpoints.reverse();
        Ok(checkpoints)
    }

    /// Makes the next checkpoint of a state and the step after it.
    pub(super) async fn fold(
        &self,
        thread: ThreadId,
        before: &Arc<GraphState>,
        row: StepRow,
    ) -> Result<Checkpoint, Error> {
        let written = read_delta::<GraphState>(thread, &row)?;
        let mut state = Arc::clone(before);
        let mut parent = row.seq.checked_sub(1).filter(|seq| *seq > 0);
        if let Some(to) = forked_to(&row, &written) {
            parent = Some(to).filter(|to| *to > 0);
            state = match to {
                0 => Arc::default(),
                to => self.runtime().threads().state(thread, Some(to)).await?.state,
            };
        }
        if !written.is_empty() {
            let merged = Arc::make_mut(&mut state);
            written.iter().for_each(|one| merged.apply(one.update.clone()));
        }
        let next = row.frontier()?.tasks.into_iter().map(|task| task.node).collect();
        Ok(Checkpoint { row, state, next, written, parent })
    }
}
