//! The status of a lost or taken over run: whether its thread contains the run's request, and the result.

use serde_json::Value;

use super::ends::{RunState, why};
use super::kept::Run;
use super::{Asked, Order, Result, Service, answers};
use perihelion_engine::checkpoint::{
    EffectKind, RunStatus, StepKind, StepRow, ThreadInfo, ThreadStatus, read_delta,
};
use perihelion_engine::ids::ThreadId;
use perihelion_star::GraphState;
use perihelion_star::question::kind;

/// The first steps of a run that are searched.
const MOST: u64 = 1_024;

impl Service {
    /// Returns whether a run of a process that is gone had already moved its thread.
    pub(super) async fn has_begun(&self, run: &Run, order: &Order) -> Result<bool> {
        let store = self.runtime().store();
        let info = store.info(ThreadId(run.thread)).await?;
        let base = run.base_step.unwrap_or_default();
        let count = info.head.saturating_sub(base).min(MOST);
        let steps = store.history(info.id, Some(base + count + 1), count as u32).await?;
        let mut steps = steps.iter().filter(|step| step.seq > base && !step.is_filler());
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

    /// Returns the status of a run that this process drove, from its thread alone.
    pub(super) async fn run_state(&self, run: &Run) -> Result<RunState> {
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
    pub(super) async fn is_unfinished(&self, info: &ThreadInfo) -> Result<bool> {
        match info.status {
            ThreadStatus::Busy | ThreadStatus::Queued => Ok(true),
            ThreadStatus::Failed => {
                let runs = self.runtime().store().runs(info.id).await?;
                Ok(runs.last().is_some_and(|run| run.status == RunStatus::Cancelled))
            }
            _ => Ok(false),
        }
    }

    /// Returns whether a thread contains a message: in a step, or as the answer to the question at `base`.
    ///
    /// Other processes may have worked on the thread since, so a step alone proves no origin.
    async fn has_heard(
        &self,
        thread: ThreadId,
        base: u64,
        steps: impl Iterator<Item = &StepRow>,
        message: &str,
    ) -> Result<bool> {
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
