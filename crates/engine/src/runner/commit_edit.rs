//! Commits an edit or a return to an earlier step, and gives the thread back.

use std::sync::Arc;

use super::claimed::ClaimedThread;
use super::edit::StateView;
use super::input::encoded;
use super::outcome::{Durability, Result};
use super::run::Runner;
use super::writer::Step;
use crate::checkpoint::{
    RunEnd, RunStatus, StepKind, StepRow, ThreadFilter, ThreadInfo, ThreadStatus,
};
use crate::graph::{Frontier, Limits, State, subgraph_step};

impl<S: State> Runner<S> {
    /// Commits an edit, and returns the number of its step.
    pub(super) async fn write_edit(&self, claimed: &ClaimedThread<S>, step: Step) -> Result<u64> {
        match self.write_after_lost(claimed, step).await {
            Ok(seq) => Ok(seq),
            Err(error) => Err(self.break_off(claimed, error).await),
        }
    }

    /// Commits an edit after the numbers of the steps that a crash lost: a later step with such a number would find
    /// their effects and subgraphs.
    async fn write_after_lost(&self, claimed: &ClaimedThread<S>, step: Step) -> Result<u64> {
        let now = &claimed.restored;
        let mut writer = self.writer(claimed, Durability::Sync);
        let last = match claimed.was {
            // Its last run ended with all of its steps.
            ThreadStatus::Idle => step.seq,
            _ => self.last_begun(&now.info, step.seq).await?,
        };
        for seq in step.seq..last {
            let kind = StepKind::Edit;
            let (_, frontier) = encoded(now.frontier.clone())?;
            let delta = StepRow::FILLER.to_vec();
            let texts = Vec::new();
            writer.write(Step { seq, kind, delta, frontier, clears_pending: true, texts }).await?;
        }
        writer.write(Step { seq: last, ..step }).await?;
        Ok(last)
    }

    /// Returns the number of the last step that began: `from`, or a later one that has effects or subgraphs.
    async fn last_begun(&self, info: &ThreadInfo, from: u64) -> Result<u64> {
        let effects = self.store().effects_from(info.id, from + 1).await?;
        let filter = ThreadFilter { root: Some(info.top()), ..ThreadFilter::default() };
        let children = self.store().list(&filter).await?;
        let step_of = |child: &ThreadInfo| subgraph_step(&child.namespace, &info.namespace);
        let begun = effects.iter().map(|row| row.step).chain(children.iter().filter_map(step_of));
        // An imported file can name any number.
        Ok(begun.fold(from, u64::max).min(from + Limits::default().max_steps))
    }

    /// Ends the run of a written edit. If nodes are next, `error` explains why they do not run by themselves; without it,
    /// the thread waits for its editor.
    pub(super) async fn end_edit(
        &self,
        claimed: &ClaimedThread<S>,
        seq: u64,
        state: Arc<S>,
        frontier: &Frontier,
        error: Option<&str>,
    ) -> Result<StateView<S>> {
        let next = frontier.names();
        let error = error.filter(|_| !next.is_empty());
        let status = if next.is_empty() {
            ThreadStatus::Idle
        } else if error.is_none() {
            ThreadStatus::Interrupted
        } else {
            ThreadStatus::Failed
        };
        self.release(claimed, RunEnd { error, ..RunEnd::new(RunStatus::Done, status) }).await?;
        let info = self.store().info(claimed.restored.info.id).await?;
        Ok(StateView { info, seq, state, next })
    }
}
