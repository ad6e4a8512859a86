//! The engine: turns events into commands, super-step by super-step, without any I/O.
//!
//! A super-step runs every task of the frontier over one immutable state; when all have finished their
//! updates are merged in frontier order, the next frontier is decided, and one commit is asked for
//! (bulk-synchronous: L. G. Valiant, "A bridging model for parallel computation", CACM 33 (8), 1990).

use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;

use super::builder::Next;
use super::{
    END, Frontier, Graph, Interrupt, NodeEntry, NodeError, NodeOutput, RunEvent, State, Target,
    Written,
};

/// Bounds that the engine enforces itself.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Most super-steps in one run.
    pub max_steps: u64,
    /// Most tasks that run at the same time.
    pub max_parallel: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { max_steps: 10_000, max_parallel: 16 }
    }
}

/// Which events somebody listens to; the others are not made, because some cost time.
#[derive(Clone, Copy, Debug, Default)]
pub struct Wants {
    pub tasks: bool,
    pub updates: bool,
    pub values: bool,
    pub checkpoints: bool,
}

/// Where a run begins: a state, the number of its step, what runs next and what of it is done already.
#[derive(Clone, Debug)]
pub struct Position<S: State> {
    pub state: Arc<S>,
    /// Newest committed step.
    pub head: u64,
    pub frontier: Frontier,
    /// Pending writes of step head + 1, by task.
    pub done: Vec<(u32, Written<S>)>,
}

/// A task to be run now, or after a delay.
#[derive(Debug)]
pub struct NodeRun<S: State> {
    pub task: u32,
    pub node: String,
    pub entry: Arc<NodeEntry<S>>,
    pub input: Option<Value>,
    pub attempt: u32,
    pub after: Option<Duration>,
    pub state: Arc<S>,
    pub step: u64,
}

/// What happened, as the runner tells it.
#[derive(Debug)]
pub enum Event<S: State> {
    /// A task ended, well or not.
    Ended { task: u32, result: Result<NodeOutput<S>, NodeError> },
    /// The commit that was asked for is durable (or, in a laxer mode, on its way).
    Committed,
    /// The run is to stop at the next chance.
    Stop,
    /// The run's deadline passed.
    Deadline,
}

/// What the runner is to do.
#[derive(Debug)]
pub enum Command<S: State> {
    /// Run a task.
    Run(NodeRun<S>),
    /// Keep what a task wrote, because its step goes on.
    SavePending { task: u32, written: Vec<u8> },
    /// Commit the step; `delta` is the JSON list of what its tasks wrote.
    Commit { seq: u64, delta: Vec<u8>, frontier: Vec<u8>, finished: bool },
    /// Tell the listeners.
    Emit(RunEvent<S>),
    /// Nothing more can run until these are answered.
    Suspend(Vec<Interrupt>),
    /// The run is done.
    Finish,
    /// The run was stopped as asked.
    Stopped,
    /// The run cannot go on.
    Fail(EngineError),
}

/// Why a run cannot go on.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EngineError {
    #[error("the node {node} failed: {message}")]
    Node { node: String, kind: String, message: String },
    #[error("the next node no longer exists: {node}; bring it back and resume the thread")]
    Missing { node: String },
    #[error("the run reached its limit of {0} steps; resume to go on, or raise limits.max_steps")]
    StepLimit(u64),
    #[error("the run passed its deadline; resume to go on, or raise limits.deadline_sec")]
    Deadline,
    #[error("what the node wrote cannot be stored as JSON: {0}")]
    Encode(String),
}

#[derive(Debug)]
enum Slot<S: State> {
    Ready,
    Running { attempt: u32 },
    Done(Written<S>),
    Interrupted(Vec<Interrupt>),
    Failed { kind: String, message: String },
    Cancelled,
}

/// The state machine of one run.
#[derive(Debug)]
pub struct Engine<S: State> {
    graph: Arc<Graph<S>>,
    limits: Limits,
    wants: Wants,
    state: Arc<S>,
    /// Number of the step under way.
    step: u64,
    steps_done: u64,
    frontier: Frontier,
    slots: Vec<Slot<S>>,
    running: usize,
    next_ready: usize,
    stopping: bool,
    late: bool,
}

impl<S: State> Engine<S> {
    /// Makes an engine at a position.
    pub fn new(graph: Arc<Graph<S>>, position: Position<S>, limits: Limits, wants: Wants) -> Self {
        let mut slots: Vec<Slot<S>> = position.frontier.tasks.iter().map(|_| Slot::Ready).collect();
        for (task, written) in position.done {
            if let Some(slot) = slots.get_mut(task as usize) {
                *slot = Slot::Done(written);
            }
        }
        Self {
            graph,
            limits,
            wants,
            state: position.state,
            step: position.head + 1,
            steps_done: 0,
            frontier: position.frontier,
            slots,
            running: 0,
            next_ready: 0,
            stopping: false,
            late: false,
        }
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

    /// Begins, or goes on with, the step at the position.
    pub fn start(&mut self, out: &mut Vec<Command<S>>) {
        self.begin(out);
    }

    /// Takes an event and appends the commands that follow from it.
    pub fn handle(&mut self, event: Event<S>, out: &mut Vec<Command<S>>) {
        match event {
            Event::Ended { task, result } => self.ended(task, result, out),
            Event::Committed => {
                self.emit_committed(out);
                self.begin(out);
            }
            Event::Stop => self.stopping = true,
            Event::Deadline => self.late = true,
        }
    }

    fn begin(&mut self, out: &mut Vec<Command<S>>) {
        if self.frontier.tasks.is_empty() {
            return out.push(Command::Finish);
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
        let missing =
            self.frontier.tasks.iter().find(|task| self.graph.resolve(&task.node).is_none());
        if let Some(task) = missing {
            return out.push(Command::Fail(EngineError::Missing { node: task.node.clone() }));
        }
        self.next_ready = 0;
        self.launch(out);
        self.settle(out);
    }

    fn launch(&mut self, out: &mut Vec<Command<S>>) {
        while self.running < self.limits.max_parallel
            && self.next_ready < self.slots.len()
            && !self.stopping
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
        task: usize,
        attempt: u32,
        after: Option<Duration>,
        out: &mut Vec<Command<S>>,
    ) {
        let wanted = &self.frontier.tasks[task];
        let Some(entry) = self.graph.resolve(&wanted.node) else {
            let message = EngineError::Missing { node: wanted.node.clone() }.to_string();
            self.slots[task] = Slot::Failed { kind: "missing".into(), message };
            return;
        };
        let (node, input) = (wanted.node.clone(), wanted.input.clone());
        self.slots[task] = Slot::Running { attempt };
        self.running += 1;
        let number = task as u32;
        if self.wants.tasks {
            out.push(Command::Emit(RunEvent::TaskStarted {
                step: self.step,
                task: number,
                node: node.clone(),
                attempt,
                input: input.clone(),
            }));
        }
        let state = Arc::clone(&self.state);
        out.push(Command::Run(NodeRun {
            task: number,
            node,
            entry,
            input,
            attempt,
            after,
            state,
            step: self.step,
        }));
    }

    fn ended(
        &mut self,
        task: u32,
        result: Result<NodeOutput<S>, NodeError>,
        out: &mut Vec<Command<S>>,
    ) {
        let index = task as usize;
        let Some(Slot::Running { attempt }) = self.slots.get(index) else { return };
        let attempt = *attempt;
        self.running -= 1;
        let node = self.frontier.tasks[index].node.clone();
        let (slot, error) = match result {
            Ok(output) => (
                Slot::Done(Written {
                    node: node.clone(),
                    update: output.update,
                    goto: output.goto,
                }),
                None,
            ),
            Err(NodeError::Interrupted(interrupts)) => (Slot::Interrupted(interrupts), None),
            Err(NodeError::Cancelled) => (Slot::Cancelled, Some("cancelled".to_owned())),
            Err(NodeError::Failed { kind, message, retryable }) => {
                if retryable
                    && !self.stopping
                    && let Some(delay) = self.retry_delay(&node, attempt)
                {
                    self.emit_ended(task, &node, Some(message), true, out);
                    return self.run(index, attempt + 1, Some(delay), out);
                }
                let error = message.clone();
                (Slot::Failed { kind, message }, Some(error))
            }
            Err(NodeError::Recorder(error)) => {
                let message = error.to_string();
                (Slot::Failed { kind: "recorder".into(), message: message.clone() }, Some(message))
            }
        };
        self.slots[index] = slot;
        self.emit_ended(task, &node, error, false, out);
        let unfinished = self.slots.iter().any(|slot| !matches!(slot, Slot::Done(_)));
        if unfinished && let Slot::Done(written) = &self.slots[index] {
            match serde_json::to_vec(written) {
                Ok(written) => out.push(Command::SavePending { task, written }),
                Err(error) => {
                    return out.push(Command::Fail(EngineError::Encode(error.to_string())));
                }
            }
        }
        self.launch(out);
        self.settle(out);
    }

    fn retry_delay(&self, node: &str, attempt: u32) -> Option<Duration> {
        self.graph.resolve(node)?.retry.delay_after(attempt)
    }

    /// Ends the step when nothing of it can run any more.
    fn settle(&mut self, out: &mut Vec<Command<S>>) {
        if self.running > 0
            || (!self.stopping && self.slots.iter().any(|slot| matches!(slot, Slot::Ready)))
        {
            return;
        }
        if self.slots.iter().all(|slot| matches!(slot, Slot::Done(_))) {
            return self.complete(out);
        }
        let mut interrupts = Vec::new();
        let mut failure = None;
        for (slot, task) in self.slots.iter().zip(&self.frontier.tasks) {
            match slot {
                Slot::Interrupted(own) => interrupts.extend(own.iter().cloned()),
                Slot::Failed { kind, message } if failure.is_none() => {
                    failure = Some(EngineError::Node {
                        node: task.node.clone(),
                        kind: kind.clone(),
                        message: message.clone(),
                    });
                }
                _ => {}
            }
        }
        if !interrupts.is_empty() {
            out.push(Command::Emit(RunEvent::Interrupted {
                step: self.step,
                interrupts: interrupts.clone(),
            }));
            out.push(Command::Suspend(interrupts));
        } else if let Some(failure) = failure {
            out.push(Command::Fail(failure));
        } else {
            out.push(Command::Stopped);
        }
    }

    fn complete(&mut self, out: &mut Vec<Command<S>>) {
        let mut written: Vec<Written<S>> = Vec::with_capacity(self.slots.len());
        for slot in self.slots.drain(..) {
            if let Slot::Done(done) = slot {
                written.push(done);
            }
        }
        if self.wants.updates {
            for one in &written {
                let update = serde_json::to_value(&one.update).unwrap_or(Value::Null);
                out.push(Command::Emit(RunEvent::Update {
                    step: self.step,
                    node: one.node.clone(),
                    update,
                }));
            }
        }
        let joins = std::mem::take(&mut self.frontier.joins);
        match merge(&self.graph, &mut self.state, written, joins) {
            Ok(Merged { delta, frontier, encoded_frontier }) => {
                let finished = frontier.tasks.is_empty();
                let seq = self.step;
                self.slots = frontier.tasks.iter().map(|_| Slot::Ready).collect();
                self.frontier = frontier;
                self.step += 1;
                self.steps_done += 1;
                out.push(Command::Commit { seq, delta, frontier: encoded_frontier, finished });
            }
            Err(error) => out.push(Command::Fail(error)),
        }
    }

    fn emit_ended(
        &self,
        task: u32,
        node: &str,
        error: Option<String>,
        retry: bool,
        out: &mut Vec<Command<S>>,
    ) {
        if self.wants.tasks {
            let (step, node) = (self.step, node.to_owned());
            out.push(Command::Emit(RunEvent::TaskEnded { step, task, node, error, retry }));
        }
    }

    fn emit_committed(&self, out: &mut Vec<Command<S>>) {
        let step = self.step - 1;
        if self.wants.checkpoints {
            let next = self.frontier.tasks.iter().map(|task| task.node.clone()).collect();
            out.push(Command::Emit(RunEvent::Checkpoint { step, next }));
        }
        if self.wants.values {
            out.push(Command::Emit(RunEvent::Values { step, state: Arc::clone(&self.state) }));
        }
    }
}

/// A step's writes, merged: what is to be stored and what runs next.
#[derive(Debug)]
pub struct Merged {
    pub delta: Vec<u8>,
    pub frontier: Frontier,
    pub encoded_frontier: Vec<u8>,
}

/// Merges what tasks wrote into the state and decides the next frontier.
///
/// # Errors
/// [`EngineError::Encode`] when a written value has no JSON form; the state is untouched then.
pub fn merge<S: State>(
    graph: &Graph<S>,
    state: &mut Arc<S>,
    mut written: Vec<Written<S>>,
    joins: std::collections::BTreeMap<String, std::collections::BTreeSet<String>>,
) -> Result<Merged, EngineError> {
    let gotos: Vec<Option<Vec<Target>>> = written.iter_mut().map(|one| one.goto.take()).collect();
    let encode = |error: serde_json::Error| EngineError::Encode(error.to_string());
    let delta = serde_json::to_vec(&written).map_err(encode)?;
    let merged = Arc::make_mut(state);
    let mut nodes = Vec::with_capacity(written.len());
    for one in written {
        merged.apply(one.update);
        nodes.push(one.node);
    }
    let mut frontier = Frontier { tasks: Vec::new(), joins };
    for (node, goto) in nodes.iter().zip(gotos) {
        for target in goto.unwrap_or_else(|| follow(graph, merged, node)) {
            frontier.push(if target == Target::Node(END.to_owned()) {
                Target::End
            } else {
                target
            });
        }
        arrive(graph, node, &mut frontier);
    }
    let encoded_frontier = serde_json::to_vec(&frontier).map_err(encode)?;
    Ok(Merged { delta, frontier, encoded_frontier })
}

fn follow<S: State>(graph: &Graph<S>, state: &S, node: &str) -> Vec<Target> {
    match graph.resolve(node).as_deref().map(|entry| &entry.next) {
        Some(Next::Edges(edges)) => edges.iter().cloned().map(Target::Node).collect(),
        Some(Next::Route(route)) => route(state),
        None => Vec::new(),
    }
}

/// Marks a node's arrival at every join that waits for it, and opens those that are complete.
fn arrive<S: State>(graph: &Graph<S>, node: &str, frontier: &mut Frontier) {
    for (to, sources) in graph.joins() {
        if !sources.contains(node) {
            continue;
        }
        let arrived = frontier.joins.entry(to.clone()).or_default();
        arrived.insert(node.to_owned());
        if arrived.len() == sources.len() {
            frontier.joins.remove(to);
            frontier.push(Target::Node(to.clone()));
        }
    }
}
