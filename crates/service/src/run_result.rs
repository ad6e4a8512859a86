//! The results of runs from permanent rows, steps and questions, and not from the event log, which is dropped after a
//! while.

use std::borrow::Cow;
use std::sync::Arc;

use chrono::{DateTime, TimeDelta, Utc};
use uuid::Uuid;

use super::kept::Run;
use super::{ClientStatus, Order, Result, Service};
use perihelion_engine::checkpoint::{
    self, EffectKind, EffectRow, StepKind, ThreadInfo, ThreadStatus,
};
use perihelion_engine::ids::{InterruptId, ThreadId};
use perihelion_runtime::{self as runtime, InterruptView, Served, ThreadState};
use perihelion_star::question::Question;

/// How far the clock of a database may be before that of the process that wrote a run's end.
const CLOCKS: TimeDelta = TimeDelta::milliseconds(500);

#[derive(Clone, Debug)]
pub struct RunSummary {
    /// The turn of the run; 0 if its thread was shortened since.
    pub turn: u32,
    /// The state after it; the thread's newest if no later run has begun.
    pub state: ThreadState,
    /// Its questions to a person; only the open ones if no later run has begun.
    pub asked: Vec<InterruptView>,
    /// Whether no work was left: no question and no pause.
    pub is_done: bool,
    /// The present status of the thread, if no later run has begun.
    pub now: Option<ClientStatus>,
    /// Why the thread failed, if it did.
    pub error: Option<String>,
}

impl RunSummary {
    pub fn answer(&self) -> Option<String> {
        let star = self.state.star();
        if star.turn == self.turn {
            return self.state.answer();
        }
        star.answer_of(self.turn).map(|message| message.content.clone())
    }

    /// Returns whether another turn began since, without a run of the service.
    pub fn has_moved_on(&self) -> bool {
        self.state.star().turn != self.turn
    }
}

impl Service {
    /// Reads the state at the end of a run, and its questions; the thread's newest state if the other one was deleted.
    pub async fn state_after(
        &self,
        run: &Run,
    ) -> Result<(Option<ThreadState>, Vec<InterruptView>)> {
        let thread = ThreadId(run.thread);
        let info = self.info(thread).await?;
        let head = info.head;
        if let Some(step) = run.last_step.filter(|step| (1..head).contains(step))
            && let Some(state) =
                self.state_at(self.runtime().graph(&info.graph)?, thread, step).await?
        {
            let asked = self.asked_at(thread, step + 1, Some(run.updated_at)).await?;
            return Ok((Some(state), asked));
        }
        let open = match info.status {
            ThreadStatus::Idle => Vec::new(),
            _ => self.open_questions(&info).await?.0,
        };
        Ok((self.newest_state(&info).await?, open))
    }

    /// Reads the newest state of a thread; after an input, with the message that the next step takes in from it.
    pub(super) async fn newest_state(&self, info: &ThreadInfo) -> Result<Option<ThreadState>> {
        // Without its graph, this program cannot read the state.
        let graph = self.runtime().graph(&info.graph).ok().filter(|_| info.head > 0);
        let Some(graph) = graph else { return Ok(None) };
        let store = self.runtime().store();
        let newest = match info.status {
            ThreadStatus::Idle => None,
            _ => store.history(info.id, Some(info.head + 1), 1).await?.pop(),
        };
        if let Some(input) = newest.filter(|row| row.kind == StepKind::Input)
            && let Some(before) = self.state_at(graph, info.id, input.seq - 1).await?
        {
            return Ok(Some(graph.fold(info.id, &before, &input).await?.shown));
        }
        Ok(Some(graph.state(info.id, None).await?))
    }

    pub async fn left_by(&self, run: &Run) -> Result<RunSummary> {
        let thread = ThreadId(run.thread);
        let Some(step) = self.step_after(run).await? else {
            let view = self.thread(thread).await?;
            let graph = self.runtime().graph(&view.info.graph)?;
            let state = view.state.unwrap_or_else(|| graph.empty());
            let newest = state.star().turn;
            let turn = self.turn_of(graph, run, newest).await?;
            // Another turn asks for itself.
            let asked = if newest == turn { view.open } else { Vec::new() };
            let is_done = view.info.status == ThreadStatus::Idle;
            let error = view.info.shown_error().map(Cow::into_owned);
            let error = error.filter(|_| view.status == ClientStatus::Error);
            return Ok(RunSummary { turn, state, asked, is_done, now: Some(view.status), error });
        };
        let asked = self.asked_at(thread, step + 1, None).await?;
        let is_done = self.is_done_at(thread, step).await?;
        let graph = self.runtime().graph_of(thread).await?;
        let left =
            RunSummary { turn: 0, state: graph.empty(), asked, is_done, now: None, error: None };
        let Some(state) = self.state_at(graph, thread, step).await? else { return Ok(left) };
        let turn = self.turn_of(graph, run, state.star().turn).await?;
        Ok(RunSummary { turn, state, ..left })
    }

    /// Returns whether no work was left after a step of a thread; unknown for a deleted step.
    pub async fn is_done_at(&self, thread: ThreadId, step: u64) -> Result<bool> {
        let row = self.runtime().store().history(thread, Some(step + 1), 1).await?.pop();
        let Some(row) = row.filter(|row| row.seq == step) else { return Ok(true) };
        Ok(row.frontier()?.tasks.is_empty())
    }

    /// Finds the position of a thread after a run; `None` if no later one has begun.
    pub async fn step_after(&self, run: &Run) -> Result<Option<u64>> {
        let Some(first) = run.first_event else { return Ok(None) };
        let mut after = (first, run.created_at, run.id);
        while let Some(next) = self.kept().next_begun(run.thread, after).await? {
            if next.base_step.is_some() {
                return Ok(next.base_step);
            }
            // It was cancelled before it began.
            after = (next.first_event.unwrap_or(first), next.created_at, next.id);
        }
        Ok(None)
    }

    /// Returns the questions of a step's tasks, answered or not, or those open at a time; without questions of
    /// subgraphs.
    async fn asked_at(
        &self,
        thread: ThreadId,
        step: u64,
        open_at: Option<DateTime<Utc>>,
    ) -> Result<Vec<InterruptView>> {
        let effects = self.runtime().store().effects(thread, Some(step)).await?;
        let was_open = |effect: &&EffectRow| {
            open_at.is_none_or(|at| {
                effect.started_at <= at + CLOCKS && effect.ended_at.is_none_or(|ended| ended > at)
            })
        };
        let asked = effects.iter().filter(|effect| effect.kind == EffectKind::Interrupt);
        asked.filter(was_open).map(question).collect()
    }

    /// Returns the turn that a run was of; the state after it is at turn `newest`.
    async fn turn_of(&self, graph: &Arc<dyn Served>, run: &Run, newest: u32) -> Result<u32> {
        let Ok(order) = Order::of(run) else { return Ok(newest) };
        let begins = u32::from(order.begins_turn());
        let base = order.at.or(run.base_step).unwrap_or_default();
        if newest <= 1 {
            return Ok(newest);
        }
        let before = self.state_at(graph, ThreadId(run.thread), base).await?;
        // A message that came while its thread was at work may have been an answer in the end.
        Ok(before.map_or(newest, |before| newest.min(before.star().turn + begins)))
    }

    /// Returns the state at a step; `None` if the thread was shortened to later steps.
    pub(super) async fn state_at(
        &self,
        graph: &Arc<dyn Served>,
        thread: ThreadId,
        step: u64,
    ) -> Result<Option<ThreadState>> {
        match graph.state(thread, Some(step)).await {
            Ok(state) => Ok(Some(state)),
            Err(runtime::Error::Store(checkpoint::Error::UnknownStep { .. })) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }
}

fn question(effect: &EffectRow) -> Result<InterruptView> {
    let payload = effect.request.decode()?;
    let question = Question::read(&effect.name, &payload);
    let agent = question.agent().unwrap_or_default().to_owned();
    let id = InterruptId(Uuid::from_slice(&effect.key).unwrap_or_default());
    Ok(InterruptView { id: id.to_string(), kind: effect.name.clone(), agent, payload })
}
