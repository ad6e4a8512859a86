//! Nodes, and their context while they run.

use std::sync::Arc;

use async_trait::async_trait;
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use serde_json::Value;

use super::port::{from_json, to_json};
use super::{
    Blob, Cause, EffectRequest, Outcome, Perform, Port, Request, State, StreamMode, Target,
};
use crate::ids::{InterruptId, RunId, ThreadId};

/// One unit of work of a graph.
#[async_trait]
pub trait Node<S: State>: Send + Sync {
    /// Runs once; may run again after a crash, and then reads its recorded effects back through `ctx`.
    ///
    /// # Errors
    /// [`NodeError`]; the other nodes of the step still finish.
    async fn run(&self, ctx: Context<S>) -> Result<NodeOutput<S>>;
}

/// The output of a node: a partial update, and the next nodes if the node chooses them.
#[derive(Clone, Debug)]
pub struct NodeOutput<S: State> {
    /// The partial update of the state; fields that are not set stay unchanged.
    pub update: S::Update,
    /// Overrides the graph's edges; an empty list ends this branch.
    pub goto: Option<Vec<Target>>,
}

impl<S: State> NodeOutput<S> {
    /// Writes an update and follows the graph's edges.
    pub fn update(update: S::Update) -> Self {
        Self { update, goto: None }
    }

    /// Writes an update and continues with the chosen targets.
    pub fn goto(update: S::Update, targets: impl IntoIterator<Item = Target>) -> Self {
        Self { update, goto: Some(targets.into_iter().collect()) }
    }
}

/// The place in a thread at which a node runs.
#[derive(Clone, Debug)]
pub struct NodeLocation {
    /// The thread.
    pub thread: ThreadId,
    /// The run.
    pub run: RunId,
    /// Number of the step under way.
    pub step: u64,
    /// Index of the task in the step's frontier.
    pub task: u32,
    /// Name of the node.
    pub node: Arc<str>,
    /// 1 for the first attempt under the retry policy.
    pub attempt: u32,
    /// Place of a subgraph in its parent; empty at the top.
    pub namespace: Arc<str>,
    /// The tenant that owns the thread; not a part of any key.
    pub tenant: Arc<str>,
    /// A value that the caller of the run passes to its nodes; not part of any key.
    pub request: Option<Request>,
}

impl NodeLocation {
    /// Names the thread of a subgraph that runs here: `team:3:0` is task 0 of step 3, at node `team`.
    pub fn subgraph(&self) -> String {
        subgraph_namespace(&self.namespace, &self.node, self.step, self.task)
    }
}

/// Names a subgraph's thread by its place, below the place of the graph around it (empty at the top).
///
/// Deeper ones are joined by `|`; neither separator can come from a node's name.
pub fn subgraph_namespace(outer: &str, node: &str, step: u64, task: u32) -> String {
    let own = format!("{}:{step}:{task}", node.replace('|', "/"));
    match outer {
        "" => own,
        outer => format!("{outer}|{own}"),
    }
}

/// Returns the step of the thread at the top that a subgraph's step belongs to, by the subgraph's place.
pub fn step_at_the_top(namespace: &str, step: u64) -> u64 {
    subgraph_step(namespace, "").unwrap_or(step)
}

/// Returns the step of the graph at `outer` in which the one at `namespace` was run: 3 for `team:3:0|deep:2:0`.
pub fn subgraph_step(namespace: &str, outer: &str) -> Option<u64> {
    let below = match outer {
        "" => namespace,
        outer => namespace.strip_prefix(outer)?.strip_prefix('|')?,
    };
    below.split('|').next()?.rsplit(':').nth(1)?.parse().ok()
}

/// A question to a person that stops a node until it is answered.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Interrupt {
    /// The ID, by which the answer names the question.
    pub id: InterruptId,
    /// `clarification`, `approval`, `outcome_unknown`, `elicitation`, or a graph's own kind.
    pub kind: String,
    /// The node that asks.
    pub node: String,
    /// The question itself, as the client receives it.
    pub payload: Value,
}

/// Why a node did not finish.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the variants describe their fields")]
pub enum NodeError {
    /// It waits for answers; not a failure.
    #[error("waits for {} answer(s)", .0.len())]
    Interrupted(Vec<Interrupt>),
    /// The run is being stopped.
    #[error("the run was cancelled")]
    Cancelled,
    /// It failed; `retryable` failures are tried again under the node's retry policy.
    #[error("{message}")]
    Failed { kind: String, message: String, retryable: bool },
    /// Effects can no longer be recorded, so the run must not perform any.
    #[error(transparent)]
    Recorder(Cause),
}

pub(crate) type Result<T, E = NodeError> = std::result::Result<T, E>;

impl NodeError {
    /// Makes a final failure.
    pub fn failed(kind: impl Into<String>, message: impl ToString) -> Self {
        Self::Failed { kind: kind.into(), message: message.to_string(), retryable: false }
    }

    /// Makes a failure worth another attempt.
    pub fn retryable(kind: impl Into<String>, message: impl Into<String>) -> Self {
        Self::Failed { kind: kind.into(), message: message.into(), retryable: true }
    }
}

/// The context of a running node: the state at the start of the step, its input, its task.
///
/// It reads like its [`TaskContext`], through which everything outside the node is reached.
#[derive(Clone)]
pub struct Context<S: State> {
    state: Arc<S>,
    input: Option<Value>,
    task: TaskContext,
}

impl<S: State> std::fmt::Debug for Context<S> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Context").field("place", &self.task.place).finish_non_exhaustive()
    }
}

impl<S: State> std::ops::Deref for Context<S> {
    type Target = TaskContext;

    fn deref(&self) -> &TaskContext {
        &self.task
    }
}

impl<S: State> Context<S> {
    /// Assembles a context; called by the runner.
    pub fn new(
        state: Arc<S>,
        input: Option<Value>,
        place: NodeLocation,
        port: Arc<dyn Port>,
    ) -> Self {
        Self { state, input, task: TaskContext { place, port } }
    }

    /// Returns the state at the start of the step; parallel nodes see the same one.
    pub fn state(&self) -> &S {
        &self.state
    }

    /// Returns the task without the state, for code that works for nodes of any graph.
    pub fn task(&self) -> &TaskContext {
        &self.task
    }

    /// Reads the input that a fan-out gave to this task.
    ///
    /// # Errors
    /// [`NodeError::Failed`] of kind `input` if there is no input or it does not fit `T`.
    pub fn input<T: DeserializeOwned>(&self) -> Result<T> {
        let node = &self.task.place.node;
        let value = self
            .input
            .clone()
            .ok_or_else(|| NodeError::failed("input", format!("the node got no input: {node}")))?;
        from_json("input", format_args!("the input of the node {node}"), value)
    }

    /// Returns whether this task has a separate input.
    pub fn has_input(&self) -> bool {
        self.input.is_some()
    }
}

const ASKED: &str = "an interrupt's payload";

/// One running task, whatever the state of its graph: its place, its effects, its questions, its events.
#[derive(Clone)]
pub struct TaskContext {
    place: NodeLocation,
    port: Arc<dyn Port>,
}

impl std::fmt::Debug for TaskContext {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TaskContext").field("place", &self.place).finish_non_exhaustive()
    }
}

impl TaskContext {
    /// Returns the place at which the node runs.
    pub fn place(&self) -> &NodeLocation {
        &self.place
    }

    /// Returns the port, for code that wraps it.
    pub fn port(&self) -> &Arc<dyn Port> {
        &self.port
    }

    /// Performs an effect once, or reads its recorded outcome back.
    ///
    /// # Errors
    /// [`NodeError`] when the recorder failed, the run is cancelled, or a person must decide.
    pub async fn effect(&self, request: EffectRequest, perform: Perform<'_>) -> Result<Outcome> {
        self.port.effect(request, perform).await
    }

    /// Asks a person and returns the answer once there is one.
    ///
    /// # Errors
    /// [`NodeError::Interrupted`] until it is answered: pass it on with `?`.
    pub async fn interrupt(&self, kind: &str, payload: impl Serialize + Send) -> Result<Value> {
        let payload = to_json("payload", ASKED, payload)?;
        self.port.interrupt(kind, payload.clone(), payload).await
    }

    /// Asks a person about something, and returns the answer once there is one.
    ///
    /// A re-run that asks about the same thing in other words finds the question, and the answer, of before.
    ///
    /// # Errors
    /// As [`Self::interrupt`].
    pub async fn interrupt_about(
        &self,
        kind: &str,
        what: impl Serialize + Send,
        payload: impl Serialize + Send,
    ) -> Result<Value> {
        let what = to_json("payload", ASKED, what)?;
        let payload = to_json("payload", ASKED, payload)?;
        self.port.interrupt(kind, what, payload).await
    }

    /// Returns the time, recorded, so that a re-run sees the same one.
    ///
    /// # Errors
    /// As [`Self::effect`].
    pub async fn now(&self) -> Result<chrono::DateTime<chrono::Utc>> {
        moment(self.port.now_micros().await?)
    }

    /// Notes the time and returns it: recorded like [`Self::now`], but in the write of the task's next effect, or when the node ends.
    ///
    /// For a node that passes it on by its effects and its update alone.
    ///
    /// # Errors
    /// As [`Self::effect`].
    pub async fn note_time(&self) -> Result<chrono::DateTime<chrono::Utc>> {
        moment(self.port.noted_micros().await?)
    }

    /// Draws 64 random bits, recorded, so that a re-run draws the same.
    ///
    /// # Errors
    /// As [`Self::effect`].
    pub async fn random(&self) -> Result<u64> {
        self.port.random().await
    }

    /// Makes the notes of the node durable, for a node that passes them on by other means than an effect.
    ///
    /// # Errors
    /// [`NodeError::Recorder`] when it cannot be written.
    pub async fn keep_notes(&self) -> Result<()> {
        self.port.keep_notes().await
    }

    /// Notes an observation of the node, such as the list of agents, and returns it.
    ///
    /// It is written with the task's next effect, before that is sent, or when the node ends.
    ///
    /// A run always observes the present, even after a crash; a replay observes what was recorded, so it works offline.
    ///
    /// # Errors
    /// [`NodeError::Recorder`] if it cannot be noted, [`NodeError::Failed`] of kind `observation` if it has no JSON
    /// form or the recorded value does not fit `T`.
    pub async fn observe<T: Serialize + DeserializeOwned>(
        &self,
        name: &str,
        seen: &T,
    ) -> Result<T> {
        let seen = seen_as_json(name, seen)?;
        read_seen(name, self.port.observed(name, seen).await?)
    }

    /// Returns what an earlier run of the node noted last under a name.
    ///
    /// # Errors
    /// As [`Self::observe`].
    pub fn noted<T: DeserializeOwned>(&self, name: &str) -> Result<Option<T>> {
        self.port.noted(name)?.map(|noted| read_seen(name, noted)).transpose()
    }

    /// Notes the first observation of the node, and returns it each time the node runs again.
    ///
    /// # Errors
    /// As [`Self::observe`].
    pub async fn observe_first<T: Serialize + DeserializeOwned>(
        &self,
        name: &str,
        seen: &T,
    ) -> Result<T> {
        if let Some(noted) = self.noted(name)? {
            return Ok(noted);
        }
        self.observe(name, seen).await
    }

    /// Notes an observation that differs from `usual`, a value that earlier notes determine, and returns it. The usual
    /// value costs no note; a replay without a note returns it.
    ///
    /// # Errors
    /// As [`Self::observe`].
    pub async fn observe_unless<T: Serialize + DeserializeOwned>(
        &self,
        name: &str,
        usual: &T,
        seen: &T,
    ) -> Result<T> {
        let usual = seen_as_json(name, usual)?;
        let seen = seen_as_json(name, seen)?;
        let observed = if self.port.is_replay() {
            self.port.observed(name, usual).await?
        } else if seen == usual && self.port.noted(name)?.is_none() {
            seen
        } else {
            self.port.observed(name, seen).await?
        };
        read_seen(name, observed)
    }

    /// Returns the text of a blob: as the node itself holds it, or as the store keeps it since the step that wrote it.
    ///
    /// `called` is the name of the text in an error.
    ///
    /// # Errors
    /// [`NodeError::Recorder`] if the store no longer has the text, or has an altered one, or failed.
    pub async fn read(&self, blob: &Blob, called: &str) -> Result<Arc<str>> {
        match blob.text() {
            Some(text) => Ok(Arc::clone(text)),
            None => self.port.read(blob, called).await,
        }
    }

    /// Publishes a live event of the `custom` stream mode.
    pub fn emit(&self, payload: Value) {
        self.port.emit(StreamMode::Custom, payload);
    }
}

fn moment(micros: i64) -> Result<chrono::DateTime<chrono::Utc>> {
    let why = || NodeError::failed("clock", format!("a recorded time is out of range: {micros}"));
    chrono::DateTime::from_timestamp_micros(micros).ok_or_else(why)
}

fn seen_as_json(name: &str, seen: &impl Serialize) -> Result<Value> {
    to_json("observation", format_args!("the observation {name}"), seen)
}

fn read_seen<T: DeserializeOwned>(name: &str, seen: Value) -> Result<T> {
    from_json("observation", format_args!("the observation {name}"), seen)
}
