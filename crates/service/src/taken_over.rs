//! How a run stands that was taken over or lost: whether its thread has received what the run brings, and what came of it.

use serde_json::Value;

use super::ends::{RunState, why};
use super::kept::Run;
use super::{Asked, Error, Order, Service, answers};
use perihelion_engine::checkpoint::{
    EffectKind, RunStatus, StepKind, StepRow, ThreadInfo, ThreadStatus, read_delta,
};
use perihelion_engine::ids::ThreadId;
use perihelion_star::GraphState;
use perihelion_star::question::kind;

/// Steps behind the run's first one that are looked through.
const MOST: u64 = 1_024;

impl Service {
    /// Returns whether a run of a process that is gone had already moved its thread.
    pub(super) async fn has_begun(&self, run: &Run, order: &Order) -> Result<bool, Error> {
        let store = self.runtime().store();
        let info = store.info(ThreadId(run.thread)).await?;
        let base = run.base_step.unwrap_or_default();
        let since = info.head.saturating_sub(base).min(MOST) as u32;
        let steps = store.history(info.id, None, since).await?;
        let mut steps = steps.iter().filter(|step| step.seq > base);
        match &order.asked {
            Asked::Turn(turn) => self.has_heard(info.id, base, steps, turn.question.trim()).await,
            // Only runs of this service give such a thread an input.
            Asked::Input { .. } => {
                Ok(steps.any(|step| matches!(step.kind, StepKind::Input | StepKind::Edit)))
            }
            Asked::Edit { .. } => Ok(steps.any(|step| step.kind != StepKind::Fork)),
            // An answer leaves no step before the tasks that asked have ended.
            _ if matches!(info.status, ThreadStatus::Busy | ThreadStatus::Queued) => Ok(true),
            _ if steps.any(|step| step.kind != StepKind::Fork) => Ok(true),
            Asked::Resume(given) if self.is_unfinished(&info).await? => {
                let open = self.runtime().threads().view(info.id).await?.open;
                // What it answers is not open any more.
                let given = answers::still_open(given, &open);
                Ok(answers::read(&given, &open).map_or(true, |answers| answers.is_empty()))
            }
            _ => Ok(false),
        }
    }

    /// Returns how a run stands that this process drove, by its thread alone.
    pub(super) async fn run_state(&self, run: &Run) -> Result<RunState, Error> {
        let order = Order::of(run)?;
        if !self.has_begun(run, &order).await? {
            return Ok(RunState::NotBegun);
        }
        let thread = ThreadId(run.thread);
        if self.is_unfinished(&self.runtime().store().info(thread).await?).await? {
            return Ok(RunState::Unfinished);
        }
        let report = self.runtime().at_rest(thread).await?;
        Ok(RunState::Ended(report.status, why(&report)))
    }

    /// Returns whether a thread is under way or queued, or its last run was stopped or broken off rather than ended.
    pub(super) async fn is_unfinished(&self, info: &ThreadInfo) -> Result<bool, Error> {
        match info.status {
            ThreadStatus::Busy | ThreadStatus::Queued => Ok(true),
            ThreadStatus::Failed => {
                let runs = self.runtime().store().runs(info.id).await?;
                Ok(runs.last().is_some_and(|run| run.status == RunStatus::Cancelled))
            }
            _ => Ok(false),
        }
    }

    /// Returns whether a thread has heard a message: in a step, or as the answer to what was asked at `base`.
    ///
    /// Others may have been at work on the thread in the meantime, so that a step by itself says nothing.
    async fn has_heard(
        &self,
        thread: ThreadId,
        base: u64,
        steps: impl Iterator<Item = &StepRow>,
        message: &str,
    ) -> Result<bool, Error> {
        for step in steps.filter(|step| matches!(step.kind, StepKind::Input | StepKind::Edit)) {
            let written = read_delta::<GraphState>(thread, step)?;
            if written.iter().any(|one| one.update.input_request.as_deref() == Some(message)) {
                return Ok(true);
            }
        }
        let asked = self.runtime().store().effects(thread, Some(base + 1)).await?;
        let answers = asked.iter().filter(|effect| {
            effect.kind == EffectKind::Interrupt && effect.name == kind::CLARIFICATION
        });
        for answer in answers.filter_map(|effect| effect.outcome.as_ref()) {
            if let Value::String(text) = answer.decode()?
                && text.trim() == message
            {
                return Ok(true);
            }
        }
        Ok(false)
    }
}
