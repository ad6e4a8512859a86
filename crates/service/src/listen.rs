//! Follows a run by the log of its thread, from any point, on any process.
//!
//! The log is read from the run's first event on, because the meaning of an event depends on earlier ones; events
//! before the requested point are not sent again. All followers therefore receive the same events with the same IDs.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

use chrono::{DateTime, Utc};
use futures::StreamExt as _;
use serde::Deserialize as _;

use super::kept::Run;
use super::pending_run::{EndCalls, LOOK_EVERY, PendingRun};
use super::pieces::PartialMessages;
use super::{CheckpointIds, LoggedChange, Result, Service, StepRun, ThreadChange};
use perihelion_engine::bus::{Subscription, ThreadEvent};
use perihelion_engine::clock;
use perihelion_engine::graph::{RunEvent, StreamMode};
use perihelion_engine::ids::ThreadId;
use perihelion_runtime::{HostedEvent, Served, ThreadState};
use perihelion_star::{GraphState, MessagePiece};

/// How long a log that broke off is left alone.
const PATIENCE: Duration = Duration::from_millis(100);

/// How soon it is looked at when the log says that the run has ended.
const SOON: Duration = Duration::from_millis(20);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StartAt {
    Beginning,
    After(u64),
    /// With what happens from now on.
    Now,
}

#[derive(Clone, Debug)]
pub enum Next {
    Change(LoggedChange),
    /// The run has ended, and all its events were sent.
    Ended(Box<Run>),
    Gone,
}

pub struct Listener {
    service: Service,
    run: Run,
    log: Option<Subscription>,
    /// When reading the log began to fail.
    failing_since: Option<Instant>,
    /// Follows the thread while the run has not begun.
    before: Option<PendingRun>,
    /// Newest event that was taken in.
    read: u64,
    /// The next event, until it is taken in.
    unread: Option<ThreadEvent>,
    /// Newest event that is not sent.
    after: u64,
    graph: Arc<dyn Served>,
    state: ThreadState,
    /// The state as clients see it, with a message that the next step takes in.
    shown: ThreadState,
    step: u64,
    ids: Option<CheckpointIds>,
    /// Whether no event of the run was sent yet.
    is_silent: bool,
    /// When the newest step that was read was durable, or the run asked for.
    at: DateTime<Utc>,
    pieces: PartialMessages,
    ready: VecDeque<LoggedChange>,
    is_open: bool,
    /// Calls when the run has ended in this process.
    ended: EndCalls,
    /// Whether the log contains the end of one of the engine's runs.
    may_have_ended: bool,
}

impl Service {
    pub async fn listen(&self, run: Run, from: StartAt) -> Result<Listener> {
        let thread = ThreadId(run.thread);
        let after = match from {
            StartAt::Beginning => 0,
            StartAt::After(id) => id,
            StartAt::Now => self.runtime().store().event_position(thread).await?.last,
        };
        Ok(Listener { after, ..self.listen_from_beginning(run) })
    }

    pub fn listen_from_beginning(&self, run: Run) -> Listener {
        let graph = self.graph_noted(&run.metadata);
        let state = graph.empty();
        Listener {
            service: self.clone(),
            ended: self.parts.ended.wait_for(run.id),
            at: run.created_at,
            run,
            log: None,
            failing_since: None,
            before: None,
            read: 0,
            unread: None,
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
    pub fn run(&self) -> &Run {
        &self.run
    }

    /// Returns the state up to the last sent event.
    pub fn shown(&self) -> &ThreadState {
        &self.shown
    }

    /// Waits for what happens next.
    ///
    /// It can be dropped at any time without losing events.
    pub async fn next(&mut self) -> Result<Next> {
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
            if let Some(unread) = &self.unread {
                let id = unread.id;
                // One of a newer version's that this one does not know says nothing to it.
                if let Ok(event) = RunEvent::deserialize(&unread.event) {
                    self.take(id, event).await?;
                }
                self.read = id;
                self.unread = None;
                continue;
            }
            // A task of this process calls.
            let is_soon = self.may_have_ended && !self.service.is_driven(self.run.id);
            let look = if is_soon { SOON } else { LOOK_EVERY };
            let Some(log) = &mut self.log else { return Ok(Next::Gone) };
            let event = tokio::select! {
                event = log.next() => event,
                finished = self.ended.called() => {
                    if let Some(finished) = finished {
                        self.run = finished.run.clone();
                    } else if !self.look_again().await? {
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
            if matches!(event, Some(Ok(_))) {
                self.failing_since = None;
            }
            match event {
                Some(Ok(event)) if self.run.last_event.is_some_and(|last| event.id > last) => {
                    // It belongs to a later run; events of this one were dropped since.
                    self.read = event.id;
                }
                Some(Ok(event)) => self.unread = Some(event),
                Some(Err(_)) | None => {
                    let bus = self.service.runtime().bus();
                    self.log = Some(bus.subscribe(ThreadId(self.run.thread), self.read));
                    clock::sleep(PATIENCE).await;
                    let now = clock::monotonic();
                    let since = *self.failing_since.get_or_insert(now);
                    // The failures come too fast for the look above.
                    if now.duration_since(since) >= LOOK_EVERY && !self.look_again().await? {
                        return Ok(Next::Gone);
                    }
                }
            }
        }
    }

    /// Waits until a pending run may have begun; the first call only subscribes.
    async fn wait_to_begin(&mut self) -> Result<()> {
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
    async fn open(&mut self) -> Result<bool> {
        let Some(first) = self.run.first_event else { return Ok(false) };
        self.read = first;
        self.skip_dropped().await?;
        let runtime = self.service.runtime();
        // Whatever its client noted of the run, its thread says which graph it is of.
        let info = runtime.store().info(ThreadId(self.run.thread)).await?;
        self.graph = Arc::clone(runtime.graph_for(&info.graph));
        self.state = self.graph.empty();
        self.shown = self.state.clone();
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
    async fn stand_at(&mut self, step: u64) -> Result<()> {
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

    async fn look_again(&mut self) -> Result<bool> {
        match self.service.kept().run(self.run.thread, self.run.id).await? {
            None => Ok(false),
            Some(run) => {
                self.run = run;
                self.failing_since = None;
                Ok(true)
            }
        }
    }

    /// Continues to the end of a run whose events were dropped: it sends none of them.
    async fn skip_dropped(&mut self) -> Result<()> {
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

    /// Turns a log event into events for followers; if it is dropped, it can be repeated.
    async fn take(&mut self, id: u64, event: RunEvent<GraphState>) -> Result<()> {
        let is_hosted = self.graph.about().is_hosted;
        let change = match event {
            RunEvent::Published { payload, .. } if is_hosted => {
                HostedEvent::read(&payload).map(ThreadChange::Hosted)
            }
            // Its process runs the nodes, and reports their tasks.
            RunEvent::TaskStarted { .. } | RunEvent::TaskEnded { .. } if is_hosted => None,
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
        if id > self.after {
            self.ready.push_back(LoggedChange { id, at: self.at, is_first, change });
        }
        Ok(())
    }

    async fn step(&mut self, step: u64) -> Result<Option<ThreadChange>> {
        let thread = ThreadId(self.run.thread);
        let store = self.service.runtime().store();
        let row = store.history(thread, Some(step + 1), 1).await?.pop();
        // Later states contain a step that was dropped since.
        let Some(row) = row.filter(|row| row.seq == step) else {
            self.pieces.end_step(step);
            return Ok(None);
        };
        self.stand_at(step.saturating_sub(1)).await?;
        let turn = self.state.star().turn;
        let ids = match &mut self.ids {
            Some(ids) => ids,
            none => none.insert(self.service.ids_of(thread, &self.graph.about().name).await?),
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
