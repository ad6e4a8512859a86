//! Follows a run by the log of its thread, from any point, on any process.
//!
//! The log is read from the run's first event on whatever the point, because what an event means follows from those
//! before it; what lies before the point is not sent again. So every follower hears the same, under the same ids.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, Utc};
use futures::StreamExt as _;
use serde::Deserialize as _;
use uuid::Uuid;

use super::kept::Run;
use super::pending_run::PendingRun;
use super::pieces::PartialMessages;
use super::{CheckpointIds, Error, LoggedChange, Service, StepRun, ThreadChange};
use perihelion_engine::bus::{CallReceiver, Subscription, ThreadEvent};
use perihelion_engine::clock;
use perihelion_engine::graph::{RunEvent, StreamMode};
use perihelion_engine::ids::ThreadId;
use perihelion_runtime::{Served, ThreadState};
use perihelion_star::{GraphState, MessagePiece};

/// How often the run's row is looked at while nobody tells of it: another process may have ended it.
const LOOK_EVERY: Duration = Duration::from_secs(2);

/// How long a log that broke off is left alone.
const PATIENCE: Duration = Duration::from_millis(100);

/// How soon it is looked at when the log says that the run has ended.
const SOON: Duration = Duration::from_millis(20);

/// Where a follower begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StartAt {
    /// At the run's beginning.
    Beginning,
    /// After an event of the log.
    After(u64),
    /// With what happens from now on.
    Now,
}

/// What the next look gave.
#[derive(Clone, Debug)]
pub enum Next {
    Change(LoggedChange),
    /// The run has ended, and everything of it was heard.
    Ended(Box<Run>),
    /// The run is no more.
    Gone,
}

/// Follows one run.
pub struct Listener {
    service: Service,
    run: Run,
    log: Option<Subscription>,
    /// Tells of the thread while the run has not begun.
    before: Option<PendingRun>,
    /// Newest event that was read.
    read: u64,
    /// Newest event that is not to be heard.
    after: u64,
    graph: Arc<dyn Served>,
    state: ThreadState,
    /// The state as clients see it, with a message that the next step takes in.
    shown: ThreadState,
    /// The step that the state is of.
    step: u64,
    ids: Option<CheckpointIds>,
    /// Whether nothing of the run was told yet.
    is_silent: bool,
    /// When the newest step that was read was durable, or the run asked for.
    at: DateTime<Utc>,
    pieces: PartialMessages,
    ready: VecDeque<LoggedChange>,
    is_open: bool,
    /// Calls when the run has ended in this process.
    ended: CallReceiver<Uuid>,
    /// The log said that a run of the engine has ended.
    may_have_ended: bool,
}

impl Service {
    /// Follows a run.
    pub async fn listen(&self, run: Run, from: StartAt) -> Result<Listener, Error> {
        let thread = ThreadId(run.thread);
        let after = match from {
            StartAt::Beginning => 0,
            StartAt::After(id) => id,
            StartAt::Now => self.runtime().store().event_position(thread).await?.last,
        };
        Ok(Listener { after, ..self.listen_from_beginning(run) })
    }

    /// Follows a run from its beginning.
    pub fn listen_from_beginning(&self, run: Run) -> Listener {
        let graph = self.graph_noted(&run.metadata);
        let state = graph.empty();
        Listener {
            service: self.clone(),
            ended: self.parts.ended.wait_for(run.id),
            at: run.created_at,
            run,
            log: None,
            before: None,
            read: 0,
            after: 0,
            graph: Arc::clone(graph),
            shown: state.clone(),
            state,
            step: 0,
            ids: None,
            is_silent: true,
            pieces: PartialMessages::default(),
            ready: VecDeque::new(),
            is_open: false,
            may_have_ended: false,
        }
    }
}

impl Listener {
    /// Returns the run as it was seen last.
    pub fn run(&self) -> &Run {
        &self.run
    }

    /// Returns the state as far as the run was followed.
    pub fn shown(&self) -> &ThreadState {
        &self.shown
    }

    /// Waits for what happens next.
    ///
    /// It may be dropped at any moment, and loses nothing by that.
    pub async fn next(&mut self) -> Result<Next, Error> {
        loop {
            if let Some(heard) = self.ready.pop_front() {
                return Ok(Next::Change(heard));
            }
            if !self.is_open && !self.open().await? {
                if self.run.status.is_terminal() {
                    return Ok(Next::Ended(Box::new(self.run.clone())));
                }
                self.wait_to_begin().await?;
                if !self.look_again().await? {
                    return Ok(Next::Gone);
                }
                continue;
            }
            let is_reported = self.run.last_event.is_some_and(|last| self.read >= last);
            if self.run.status.is_terminal() && (is_reported || self.run.last_event.is_none()) {
                return Ok(Next::Ended(Box::new(self.run.clone())));
            }
            let look = if self.may_have_ended { SOON } else { LOOK_EVERY };
            let Some(log) = &mut self.log else { return Ok(Next::Gone) };
            let event = tokio::select! {
                event = log.next() => event,
                () = self.ended.called() => {
                    if !self.look_again().await? {
                        return Ok(Next::Gone);
                    }
                    continue;
                }
                () = clock::sleep(look) => {
                    if !self.look_again().await? {
                        return Ok(Next::Gone);
                    }
                    self.skip_dropped().await?;
                    continue;
                }
            };
            match event {
                Some(Ok(event)) if self.run.last_event.is_some_and(|last| event.id > last) => {
                    // It belongs to a later run; events of this one were dropped meanwhile.
                    self.read = event.id;
                }
                Some(Ok(event)) => {
                    self.read = event.id;
                    self.take(event).await?;
                }
                Some(Err(_)) | None => {
                    let bus = self.service.runtime().bus();
                    self.log = Some(bus.subscribe(ThreadId(self.run.thread), self.read));
                    clock::sleep(PATIENCE).await;
                }
            }
        }
    }

    /// Waits until a run that has not begun may have; the first time it only begins to hear.
    async fn wait_to_begin(&mut self) -> Result<(), Error> {
        let is_heard = match &mut self.before {
            Some(before) => before.wait(&mut self.ended).await,
            None => {
                self.before = PendingRun::open(&self.service, ThreadId(self.run.thread)).await?;
                self.before.is_some()
            }
        };
        if !is_heard {
            self.before = None;
            clock::sleep(PATIENCE).await;
        }
        Ok(())
    }

    /// Opens the log once the run has begun; returns whether it has.
    async fn open(&mut self) -> Result<bool, Error> {
        let Some(first) = self.run.first_event else { return Ok(false) };
        self.read = first;
        self.skip_dropped().await?;
        let runtime = self.service.runtime();
        if runtime.own_graphs().next().is_some() {
            // Whatever its client noted of the run, its thread says which graph it is of.
            self.graph = Arc::clone(runtime.graph_of(ThreadId(self.run.thread)).await?);
            self.state = self.graph.empty();
            self.shown = self.state.clone();
        }
        if self.run.last_event.is_none_or(|last| self.read < last) {
            self.stand_at(self.run.base_step.unwrap_or_default()).await?;
            let bus = self.service.runtime().bus();
            self.log = Some(bus.subscribe(ThreadId(self.run.thread), first));
        }
        self.before = None;
        self.is_open = true;
        Ok(true)
    }

    /// Brings the state to a step that it is not at, where what led there was dropped from the log.
    async fn stand_at(&mut self, step: u64) -> Result<(), Error> {
        if self.step == step {
            return Ok(());
        }
        // Of a thread that was shortened, later states know what led to them.
        if let Some(state) =
            self.service.state_at(&self.graph, ThreadId(self.run.thread), step).await?
        {
            self.shown = state.clone();
            (self.state, self.step) = (state, step);
        }
        Ok(())
    }

    async fn look_again(&mut self) -> Result<bool, Error> {
        match self.service.kept().find_run(self.run.id).await? {
            None => Ok(false),
            Some(run) => {
                self.run = run;
                Ok(true)
            }
        }
    }

    /// Continues to the end of a run whose events were dropped: nothing of it will be told.
    async fn skip_dropped(&mut self) -> Result<(), Error> {
        let Some(last) = self.run.last_event.filter(|_| self.run.status.is_terminal()) else {
            return Ok(());
        };
        if self.read >= last {
            return Ok(());
        }
        let bus = self.service.runtime().bus();
        let there = bus.read(ThreadId(self.run.thread), self.read).await?;
        if there.first().is_none_or(|event| event.id > last) {
            self.read = last;
        }
        Ok(())
    }

    /// Makes of an event what there is to hear of it.
    async fn take(&mut self, logged: ThreadEvent) -> Result<(), Error> {
        // One of a newer version's that this one does not know says nothing to it.
        let Ok(event) = RunEvent::<GraphState>::deserialize(&logged.event) else { return Ok(()) };
        let change = match event {
            RunEvent::StepRestarted { .. } => {
                self.pieces.begin_again();
                Some(ThreadChange::ContinuesFrom { state: self.shown.clone() })
            }
            RunEvent::TaskStarted { step, task, node, .. } => {
                self.pieces.begin_task(step, task);
                Some(ThreadChange::TaskStarted { step, task, node, state: self.shown.clone() })
            }
            RunEvent::TaskEnded { step, task, node, error: Some(error), retry: false } => {
                Some(ThreadChange::TaskFailed { step, task, node, error })
            }
            RunEvent::Published { mode: StreamMode::Messages, step, task, node, payload } => {
                let turn = self.state.star().turn;
                let piece = MessagePiece::read(&payload);
                piece.and_then(|piece| self.pieces.take(turn, (step, task), node, piece.text))
            }
            RunEvent::Published { node, payload, .. } => {
                Some(ThreadChange::Custom { node, payload })
            }
            RunEvent::Checkpoint { step, .. } => self.step(step).await?,
            RunEvent::Interrupted { step, interrupts, asking } => {
                self.stand_at(step.saturating_sub(1)).await?;
                let state = self.state.clone();
                Some(ThreadChange::Interrupted { step, interrupts, asking, state })
            }
            RunEvent::RunEnded { .. } => {
                self.may_have_ended = true;
                self.look_again().await?;
                None
            }
            ref nested @ RunEvent::Nested { ref namespace, .. } => {
                let namespace = namespace.clone();
                nested.custom().map(|payload| ThreadChange::Nested { namespace, payload })
            }
            RunEvent::TaskEnded { .. } | RunEvent::Update { .. } | RunEvent::Values { .. } => None,
        };
        let Some(change) = change else { return Ok(()) };
        let is_first = std::mem::take(&mut self.is_silent);
        if logged.id > self.after {
            self.ready.push_back(LoggedChange { id: logged.id, at: self.at, is_first, change });
        }
        Ok(())
    }

    /// Reads a step and folds it into the state.
    async fn step(&mut self, step: u64) -> Result<Option<ThreadChange>, Error> {
        let thread = ThreadId(self.run.thread);
        let store = self.service.runtime().store();
        let row = store.history(thread, Some(step + 1), 1).await?.pop();
        // One that was dropped meanwhile is known by later states.
        let Some(row) = row.filter(|row| row.seq == step) else {
            self.pieces.end_step(step);
            return Ok(None);
        };
        self.stand_at(step.saturating_sub(1)).await?;
        let turn = self.state.star().turn;
        let ids = match &mut self.ids {
            Some(ids) => ids,
            none => none.insert(self.service.checkpoint_ids(thread).await?),
        };
        let run = StepRun { id: self.run.id, assistant: self.run.assistant };
        let at = Box::new(self.service.fold(&self.graph, ids, &self.state, row, Some(run)).await?);
        let rest = self.pieces.rest(turn, step, &at.written);
        let streamed = self.pieces.streamed(turn, step, &at.written);
        self.pieces.end_step(step);
        self.state = at.folded.clone();
        self.shown = at.state.clone();
        self.step = step;
        self.at = at.row.at;
        Ok(Some(ThreadChange::Step { at, rest, streamed }))
    }
}
