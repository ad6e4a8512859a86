//! The only node of a hosted graph: the child runs a super-step, and the node writes its result.

use std::sync::Arc;

use parking_lot::Mutex;
use perihelion_engine::checkpoint::{StepKind, Store, ThreadInfo};
use perihelion_engine::graph::{Context, Interrupt, NodeError, NodeOutput, Target};
use perihelion_runtime::{ALONG, HostedEvent};
use serde_json::{Value, json};

use crate::Error;
use crate::child::Call;
use crate::frames::{Frame, Question};
use crate::host::Host;
use crate::state::{Changes, Mirror, Pending};

/// The node that runs a super-step.
pub const NODE: &str = "langgraph";

/// The same node, before which the run pauses.
pub const PAUSED: &str = "paused";

/// The kind of LangGraph interrupts.
const KIND: &str = "interrupt";

/// The number of ended children after which a super-step fails.
const MOST: u32 = 3;

/// Returns the nodes that follow a step.
pub fn following(state: &Mirror) -> Vec<Target> {
    let place = &state.place;
    let next = if place.pauses {
        Target::node(PAUSED)
    } else if place.next.is_empty() && place.pending.is_none() {
        Target::End
    } else {
        Target::node(NODE)
    };
    vec![next]
}

/// A run in progress, with the call that waits until the engine has committed a step; dropped with the run.
pub struct Run {
    request: Option<Value>,
    waiting: Mutex<Option<(u64, Call)>>,
}

impl Run {
    /// Begins a run with a client's request; with `None`, the request is in the thread.
    pub fn new(request: Option<Value>) -> Self {
        Self { request, waiting: Mutex::default() }
    }
}

/// The node of a hosted graph, with its host and store.
pub struct HostedNode {
    pub host: Arc<Host>,
    pub store: Arc<dyn Store>,
    pub graph: String,
}

/// Runs the next super-step of a thread.
///
/// # Errors
/// [`NodeError`] with the kind of the Python exception, or the kind `host` if the child ended too often.
pub async fn advance(
    node: Arc<HostedNode>,
    ctx: Context<Mirror>,
) -> Result<NodeOutput<Mirror>, NodeError> {
    let mut deaths = 0;
    loop {
        let mut step = Step::new(&node, &ctx).await?;
        let ended = tokio::select! {
            biased;
            ended = step.run() => ended,
            // Also after a lost lease, a deadline and a hand-over to another process.
            () = ctx.port().until_cancelled() => return Err(NodeError::Cancelled),
        };
        match ended {
            Err(Failure::Host(Error::Gone)) if deaths + 1 < MOST => {
                deaths += 1;
                tracing::warn!(thread = %ctx.place().thread, "the process of a graph ended; the step runs again");
            }
            Err(Failure::Host(error)) => return Err(failed(error)),
            Err(Failure::Node(error)) => return Err(error),
            Ok(changes) => return Ok(NodeOutput::update(changes)),
        }
    }
}

/// Converts an error to the failure of a node.
fn failed(error: Error) -> NodeError {
    match error {
        Error::Python { kind, message, traceback } => {
            tracing::warn!(%traceback, "a graph raised {kind}");
            NodeError::failed(kind, message)
        }
        other => NodeError::failed("host", other.to_string()),
    }
}

/// Why a step did not finish.
enum Failure {
    Host(Error),
    Node(NodeError),
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self::Host(error)
    }
}

impl From<NodeError> for Failure {
    fn from(error: NodeError) -> Self {
        Self::Node(error)
    }
}

/// Names the attempt that writes checkpoints, from a step of a thread.
///
/// A thread that is created again under the ID of a deleted one has other names.
pub fn line_of(info: &ThreadInfo, step: &str) -> String {
    format!("{}:{step}", info.created_at.timestamp_micros())
}

/// One super-step.
struct Step<'a> {
    node: &'a HostedNode,
    ctx: &'a Context<Mirror>,
    of: &'a Run,
    request: Value,
    line: String,
    /// The open questions of this step.
    open: Vec<(Value, Interrupt)>,
    /// The edit that came with an answer; the child makes it once.
    along: Value,
}

impl<'a> Step<'a> {
    async fn new(node: &'a HostedNode, ctx: &'a Context<Mirror>) -> Result<Self, NodeError> {
        let thread = ctx.place().thread;
        let number = ctx.place().step;
        let place = &ctx.state().place;
        let before = node.store.history(thread, Some(number), 1).await;
        let before = before.map_err(|error| NodeError::Recorder(Box::new(error)))?.pop();
        let continues = before.is_some_and(|row| row.kind == StepKind::Loop);
        let line = match place.line.clone().filter(|_| continues) {
            Some(line) => line,
            None => {
                let info = node.store.info(thread).await;
                let info = info.map_err(|error| NodeError::Recorder(Box::new(error)))?;
                line_of(&info, &number.to_string())
            }
        };
        let of = ctx.place().request.as_ref().and_then(|request| request.downcast_ref::<Run>());
        let of = of.ok_or_else(|| NodeError::failed("host", "the run is not of a hosted graph"))?;
        let request = of.request.clone().unwrap_or_else(|| place.request.clone());
        Ok(Self { node, ctx, of, request, line, open: Vec::new(), along: Value::Null })
    }

    async fn run(&mut self) -> Result<Changes, Failure> {
        let thread = self.ctx.place().thread;
        let number = self.ctx.place().step;
        let waiting = self.of.waiting.lock().take();
        let mut call = match waiting.filter(|(step, _)| *step == number) {
            Some((_, call)) => {
                call.proceed();
                call
            }
            None => self.call(&[]).await?,
        };
        loop {
            match call.next().await? {
                Frame::Event(event) => self.ctx.emit(json!(event)),
                Frame::Step(step) => {
                    let thread_name = thread.to_string();
                    let changes = self.ctx.state().changes_to(step, thread_name, self.line.clone());
                    *self.of.waiting.lock() = Some((number + 1, call));
                    return Ok(changes);
                }
                Frame::Asks { interrupts, nested } => {
                    let answers = self.ask(&interrupts).await?;
                    if answers.is_empty() {
                        nested.into_iter().for_each(|event| self.tell(event));
                        let open = std::mem::take(&mut self.open);
                        let open = open.into_iter().map(|(_, one)| one).collect();
                        return Err(NodeError::Interrupted(open).into());
                    }
                    call = self.call(&answers).await?;
                }
                Frame::End { next } => {
                    let mut place = (*self.ctx.state().place).clone();
                    place.pending = None;
                    place.pauses = !next.is_empty();
                    place.next = next;
                    return Ok(Changes { place: Some(place), ..Changes::default() });
                }
                Frame::Loaded { .. } | Frame::Answer { .. } | Frame::Error { .. } => {
                    return Err(Error::OutOfTurn("a frame of no run").into());
                }
            }
        }
    }

    /// Streams an event in which a subgraph asks, with the IDs of the open questions.
    fn tell(&self, mut event: HostedEvent) {
        let asked = event.data["__interrupt__"].as_array_mut();
        for one in asked.into_iter().flatten() {
            let same = self.open.iter().find(|(what, _)| what["id"] == one["id"]);
            if let Some((_, open)) = same {
                one["id"] = json!(open.id);
            }
        }
        self.ctx.emit(json!(event));
    }

    /// Starts a call in the child at the current checkpoint of the thread.
    async fn call(&self, answers: &[Value]) -> Result<Call, Error> {
        let place = &self.ctx.state().place;
        let mut order = json!({
            "graph": self.node.graph,
            "thread": self.ctx.place().thread,
            "tenant": self.ctx.place().tenant,
            "source": place.thread,
            "checkpoint": place.checkpoint,
            "line": self.line,
            "request": self.request,
        });
        if answers.is_empty() {
            match &place.pending {
                Some(Pending::Input(input)) => {
                    order["input"] = input.clone();
                    order["has_input"] = json!(true);
                }
                Some(Pending::Command(command)) => order["command"] = command.clone(),
                None => {}
            }
        } else {
            order["answers"] = json!(answers);
            order["command"] = self.along.clone();
        }
        self.node.host.call("run", order).await
    }

    /// Asks new questions, and returns the known answers.
    async fn ask(&mut self, interrupts: &[Question]) -> Result<Vec<Value>, NodeError> {
        let mut answers = Vec::new();
        let mut open = Vec::new();
        for one in interrupts {
            // Each answer to a task changes the identity of its next question.
            let what = json!({ "id": one.id, "answered": one.answered, "task": one.task });
            if let Some(known) = self.open.iter().find(|(pending, _)| *pending == what) {
                open.push(known.clone());
                continue;
            }
            match self.ctx.interrupt_about(KIND, &what, &one.value).await {
                Ok(mut value) => {
                    if let Some(along) = value.get_mut(ALONG) {
                        self.along = along.take();
                        value = value["value"].take();
                    }
                    answers.push(json!({ "id": one.id, "answered": one.answered, "value": value }));
                }
                Err(NodeError::Interrupted(pending)) => {
                    open.extend(pending.into_iter().map(|pending| (what.clone(), pending)));
                }
                Err(error) => return Err(error),
            }
        }
        self.open = open;
        Ok(answers)
    }
}
