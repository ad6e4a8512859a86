//! The engine: turns events into commands, super-step by super-step, without any I/O.
//!
//! A super-step runs every task of the frontier over one immutable state. When all have finished, the updates are
//! merged in frontier order, the next frontier is decided, and one commit is requested (bulk-synchronous: L. G.
//! Valiant, "A bridging model for parallel computation", CACM 33 (8), 1990).

use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;

use super::{
    BlobText, Command, EngineError, Event, Finished, Frontier, Graph, Interrupt, Limits, Merged,
    NodeEntry, NodeError, NodeOutput, NodeRun, Pauses, Position, Result, RunEvent, State, Wants,
    Written, merge,
};

#[cfg(test)]
mod tests;

#[derive(Debug)]
enum Slot<S: State> {
    Ready,
    Running {
        attempt: u32,
    },
    /// Its write, with the texts that are not stored yet.
    Done(Written<S>, Vec<BlobText>),
    Interrupted(Vec<Interrupt>),
    Failed {
        kind: String,
        message: String,
    },
    Cancelled,
}

/// The state machine of one run.
#[derive(Debug)]
pub struct Engine<S: State> {
    graph: Arc<Graph<S>>,
    limits: Limits,
    wants: Wants,
    pauses: Pauses,
    /// Whether the first step is not paused before.
    passes_first: bool,
    /// Whether a node ran in the merged step that is paused after.
    pauses_after: bool,
    state: Arc<S>,
    /// Number of the step under way.
    step: u64,
    steps_done: u64,
    frontier: Frontier,
    slots: Vec<Slot<S>>,
    /// The nodes of the frontier, resolved once per step, so that the node that ran also determines the route.
    entries: Vec<Arc<NodeEntry<S>>>,
    /// Updates of the merged step; listeners receive them when it is committed.
    untold: Vec<RunEvent<S>>,
    running: usize,
    next_ready: usize,
    stopping: bool,
    late: bool,
}

impl<S: State> Engine<S> {
    /// Makes an engine at a position; pending writes that fit no task of the frontier are ignored.
    pub fn new(graph: Arc<Graph<S>>, position: Position<S>, limits: Limits, wants: Wants) -> Self {
        let Position { state, head, frontier, done } = position;
        let mut slots: Vec<Slot<S>> = frontier.tasks.iter().map(|_| Slot::Ready).collect();
        for (task, written) in done {
            let index = task as usize;
            if frontier.tasks.get(index).is_some_and(|task| task.node == written.node) {
                slots[index] = Slot::Done(written, Vec::new());
            }
        }
        Self {
            graph,
            limits,
            wants,
            pauses: Pauses::default(),
            passes_first: false,
            pauses_after: false,
            state,
            step: head + 1,
            steps_done: 0,
            frontier,
            slots,
            entries: Vec::new(),
            untold: Vec::new(),
            running: 0,
            next_ready: 0,
            stopping: false,
            late: false,
        }
    }

    /// Has the run pause before and after nodes; `passes_first`: not before its first step.
    #[must_use]
    pub fn pausing(mut self, pauses: Pauses, passes_first: bool) -> Self {
        (self.pauses, self.passes_first) = (pauses, passes_first);
        self
    }

    /// Returns the state as merged so far.
    pub fn state(&self) -> &Arc<S> {
        &self.state
    }

    /// Returns the number of the step under way.
    pub fn step(&self) -> u64 {
        self.step
    }

    /// Returns how many super-steps this run has completed.
    pub fn steps_done(&self) -> u64 {
        self.steps_done
    }

    /// Takes an event and appends the commands that follow from it.
    pub fn handle(&mut self, event: Event<S>, out: &mut Vec<Command<S>>) {
        match event {
            Event::Ended { task, result } => self.ended(task, result, out),
            Event::Committed => {
                self.tell_committed(out);
                self.start(out);
            }
            Event::Stop => self.stopping = true,
            Event::Deadline => self.late = true,
        }
    }

    /// Begins, or continues with, the step at the position.
    pub fn start(&mut self, out: &mut Vec<Command<S>>) {
        if self.frontier.tasks.is_empty() {
            return out.push(Command::Finish);
        }
        // First: a run that is stopped here and continued later would be past its pause.
        if self.is_pause() {
            return self.pause(out);
        }
        if self.stopping {
            return out.push(Command::Stopped);
        }
        if self.late {
            return out.push(Command::Fail(EngineError::Deadline));
        }
        if self.steps_done >= self.limits.max_steps {
            return out.push(Command::Fail(EngineError::StepLimit(self.limits.max_steps)));
        }
        self.entries.clear();
        for task in &self.frontier.tasks {
            let Some(entry) = self.graph.resolve(&task.node) else {
                let node = task.node.clone();
                let why = self.graph.absence(&node);
                return out.push(Command::Fail(EngineError::Missing { node, why }));
            };
            self.entries.push(entry);
        }
        self.next_ready = 0;
        self.launch(out);
        self.settle(out);
    }

    /// Returns whether the run pauses between the merged step and the next one.
    fn is_pause(&self) -> bool {
        let is_first = self.steps_done == 0;
        let before = || self.frontier.tasks.iter().any(|task| self.pauses.before.has(&task.node));
        self.pauses_after || (!(is_first && self.passes_first) && before())
    }

    fn pause(&self, out: &mut Vec<Command<S>>) {
        let step = self.step;
        let event = RunEvent::Interrupted { step, interrupts: Vec::new(), asking: Vec::new() };
        out.push(Command::Emit(event));
        out.push(Command::Suspend(Vec::new()));
    }

    /// Returns whether no further task may start.
    fn is_closing(&self) -> bool {
        self.stopping || self.late
    }

    fn launch(&mut self, out: &mut Vec<Command<S>>) {
        while self.running < self.limits.max_parallel.max(1)
            && self.next_ready < self.slots.len()
            && !self.is_closing()
        {
            let task = self.next_ready;
            self.next_ready += 1;
            if matches!(self.slots[task], Slot::Ready) {
                self.run(task, 1, None, out);
            }
        }
    }

    fn run(
        &mut self,
        index: usize,
        attempt: u32,
        after: Option<Duration>,
        out: &mut Vec<Command<S>>,
    ) {
        let wanted = &self.frontier.tasks[index];
        let task = index as u32;
        let step = self.step;
        let node = wanted.node.clone();
        let input = wanted.input.clone();
        self.slots[index] = Slot::Running { attempt };
        self.running += 1;
        if self.wants.tasks {
            let node = node.clone();
            let input = input.clone();
            out.push(Command::Emit(RunEvent::TaskStarted { step, task, node, attempt, input }));
        }
        let entry = Arc::clone(&self.entries[index]);
        let state = Arc::clone(&self.state);
        out.push(Command::Run(NodeRun { task, node, entry, input, attempt, after, state, step }));
    }

    fn ended(&mut self, task: u32, result: Result<NodeOutput<S>>, out: &mut Vec<Command<S>>) {
        let index = task as usize;
        let Some(Slot::Running { attempt }) = self.slots.get(index) else { return };
        let attempt = *attempt;
        self.running -= 1;
        let node = self.frontier.tasks[index].node.clone();
        let slot = match result {
            Ok(NodeOutput { update, goto }) => {
                self.keep(index, Written::new(node.clone(), update, goto), out)
            }
            Err(NodeError::Interrupted(interrupts)) => Slot::Interrupted(interrupts),
            Err(NodeError::Cancelled) => Slot::Cancelled,
            Err(NodeError::Failed { kind, message, retryable }) => {
                let delay = self.entries[index].retry.delay_after(attempt).filter(|_| retryable);
                match delay {
                    Some(_) if self.is_closing() => Slot::Cancelled,
                    Some(delay) => {
                        self.tell_ended(task, node, Some(message), true, out);
                        return self.run(index, attempt + 1, Some(delay), out);
                    }
                    None => Slot::Failed { kind, message },
                }
            }
            Err(NodeError::Recorder(error)) => {
                Slot::Failed { kind: "recorder".into(), message: error.to_string() }
            }
        };
        let error = match &slot {
            Slot::Failed { message, .. } => Some(message.clone()),
            Slot::Cancelled => Some("cancelled".to_owned()),
            _ => None,
        };
        self.slots[index] = slot;
        self.tell_ended(task, node, error, false, out);
        self.launch(out);
        self.settle(out);
    }

    /// Accepts the write of a task, and stores it as pending if the step continues.
    fn keep(
        &self,
        index: usize,
        (written, mut texts): (Written<S>, Vec<BlobText>),
        out: &mut Vec<Command<S>>,
    ) -> Slot<S> {
        let mut others = self.slots.iter().enumerate().filter(|(other, _)| *other != index);
        if others.any(|(_, slot)| !matches!(slot, Slot::Done(..))) {
            match written.to_pending() {
                Ok(body) => {
                    let task = index as u32;
                    let texts = std::mem::take(&mut texts);
                    out.push(Command::SavePending { task, body, texts });
                }
                Err(error) => {
                    let message = format!("its update cannot be stored as JSON: {error}");
                    return Slot::Failed { kind: "encode".into(), message };
                }
            }
        }
        Slot::Done(written, texts)
    }

    /// Ends the step when no task of it can run.
    ///
    /// Questions come before failures: once they are answered, a resume runs the failed tasks again too.
    fn settle(&mut self, out: &mut Vec<Command<S>>) {
        let waiting = self.slots.iter().any(|slot| matches!(slot, Slot::Ready));
        if self.running > 0 || (waiting && !self.is_closing()) {
            return;
        }
        if self.slots.iter().all(|slot| matches!(slot, Slot::Done(..))) {
            return self.complete(out);
        }
        let mut interrupts = Vec::new();
        let mut asking = Vec::new();
        let mut failure = None;
        for ((index, slot), task) in (0_u32..).zip(&self.slots).zip(&self.frontier.tasks) {
            match slot {
                Slot::Interrupted(own) => {
                    asking.extend(own.iter().map(|_| index));
                    interrupts.extend(own.iter().cloned());
                }
                Slot::Failed { kind, message } if failure.is_none() => {
                    let node = task.node.clone();
                    let kind = kind.clone();
                    let message = message.clone();
                    failure = Some(EngineError::Node { node, kind, message });
                }
                _ => {}
            }
        }
        if !interrupts.is_empty() {
            let step = self.step;
            let shown = interrupts.clone();
            out.push(Command::Emit(RunEvent::Interrupted { step, interrupts: shown, asking }));
            out.push(Command::Suspend(interrupts));
        } else if let Some(failure) = failure {
            out.push(Command::Fail(failure));
        } else if self.late && !self.stopping {
            out.push(Command::Fail(EngineError::Deadline));
        } else {
            out.push(Command::Stopped);
        }
    }

    fn complete(&mut self, out: &mut Vec<Command<S>>) {
        self.pauses_after =
            self.frontier.tasks.iter().any(|task| self.pauses.after.has(&task.node));
        let slots = std::mem::take(&mut self.slots);
        let mut finished: Vec<Finished<S>> = Vec::with_capacity(slots.len());
        let mut texts = Vec::new();
        for (slot, entry) in slots.into_iter().zip(self.entries.drain(..)) {
            if let Slot::Done(written, own) = slot {
                texts.extend(own);
                if self.wants.updates {
                    let step = self.step;
                    let node = written.node.clone();
                    let update = serde_json::to_value(&written.update).unwrap_or(Value::Null);
                    self.untold.push(RunEvent::Update { step, node, update });
                }
                finished.push(Finished { written, entry: Some(entry) });
            }
        }
        let joins = std::mem::take(&mut self.frontier.joins);
        match merge(&self.graph, &mut self.state, finished, joins) {
            Ok(Merged { delta, frontier, encoded_frontier }) => {
                let seq = self.step;
                let finished = frontier.tasks.is_empty();
                self.slots = frontier.tasks.iter().map(|_| Slot::Ready).collect();
                self.frontier = frontier;
                self.step += 1;
                self.steps_done += 1;
                let frontier = encoded_frontier;
                out.push(Command::Commit { seq, delta, frontier, texts, finished });
            }
            Err(error) => out.push(Command::Fail(error)),
        }
    }

    fn tell_ended(
        &self,
        task: u32,
        node: String,
        error: Option<String>,
        retry: bool,
        out: &mut Vec<Command<S>>,
    ) {
        if self.wants.tasks {
            let step = self.step;
            out.push(Command::Emit(RunEvent::TaskEnded { step, task, node, error, retry }));
        }
    }

    fn tell_committed(&mut self, out: &mut Vec<Command<S>>) {
        let step = self.step - 1;
        out.extend(self.untold.drain(..).map(Command::Emit));
        if self.wants.checkpoints {
            let next = self.frontier.tasks.iter().map(|task| task.node.clone()).collect();
            out.push(Command::Emit(RunEvent::Checkpoint { step, next }));
        }
        if self.wants.values {
            out.push(Command::Emit(RunEvent::Values { step, state: Arc::clone(&self.state) }));
        }
    }
}
