//! Nodes, and what they can do while they run.

use std::sync::Arc;

use async_trait::async_trait;
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use serde_json::Value;

use super::{Blob, EffectRequest, Outcome, Perform, Port, State, StreamMode, Target};
use crate::ids::{InterruptId, RunId, ThreadId};

/// One unit of work of a graph.
#[async_trait]
pub trait Node<S: State>: Send + Sync {
    /// Runs once; may run again after a crash, and then reads its recorded effects back through `ctx`.
    ///
    /// # Errors
    /// [`NodeError`]; the other nodes of the step finish all the same.
    async fn run(&self, ctx: Context<S>) -> Result<NodeOutput<S>, NodeError>;
}

/// What a node hands back: a partial update and, where it decides itself, where to go.
#[derive(Clone, Debug)]
pub struct NodeOutput<S: State> {
    pub update: S::Update,
    /// Overrides the graph's edges; an empty list ends this branch.
    pub goto: Option<Vec<Target>>,
}

impl<S: State> NodeOutput<S> {
    /// Writes an update and follows the graph's edges.
    pub fn update(update: S::Update) -> Self {
        Self { update, goto: None }
    }

    /// Writes an update and goes where the node says.
    pub fn goto(update: S::Update, targets: impl IntoIterator<Item = Target>) -> Self {
        Self { update, goto: Some(targets.into_iter().collect()) }
    }
}

/// Where in a thread a node runs.
#[derive(Clone, Debug)]
pub struct NodeLocation {
    pub thread: ThreadId,
    pub run: RunId,
    /// Number of the step under way.
    pub step: u64,
    /// Index of the task in the step's frontier.
    pub task: u32,
    pub node: Arc<str>,
    /// 1 for the first attempt under the retry policy.
    pub attempt: u32,
    /// Place of a subgraph in its parent; empty at the top.
    pub namespace: Arc<str>,
    /// Whose thread it is; no part of any key.
    pub tenant: Arc<str>,
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
    let first = namespace.split('|').next().unwrap_or_default();
    let own = first.rsplit(':').nth(1).and_then(|number| number.parse().ok());
    own.unwrap_or(step)
}

/// A question to a person that stops a node until it is answered.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Interrupt {
    pub id: InterruptId,
    /// `clarification`, `approval`, `outcome_unknown`, `elicitation`, or a graph's own kind.
    pub kind: String,
    /// The node that asks.
    pub node: String,
    pub payload: Value,
}

/// Why a node did not finish.
#[derive(Debug, thiserror::Error)]
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
    /// The recorder of effects failed, so nothing more may be done in this run.
    #[error(transparent)]
    Recorder(Box<dyn std::error::Error + Send + Sync>),
}

impl NodeError {
    /// Makes a final failure.
    pub fn failed(kind: impl Into<String>, message: impl Into<String>) -> Self {
        Self::Failed { kind: kind.into(), message: message.into(), retryable: false }
    }

    /// Makes a failure worth another attempt.
    pub fn retryable(kind: impl Into<String>, message: impl Into<String>) -> Self {
        Self::Failed { kind: kind.into(), message: message.into(), retryable: true }
    }
}

/// What a node sees while it runs: the state as it was at the start of the step, its input, its task.
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
    /// [`NodeError::Failed`] of kind `input` when there is none or it does not fit `T`.
    pub fn input<T: DeserializeOwned>(&self) -> Result<T, NodeError> {
        let node = &self.task.place.node;
        let value = self
            .input
            .clone()
            .ok_or_else(|| NodeError::failed("input", format!("the node got no input: {node}")))?;
        serde_json::from_value(value).map_err(|error| {
            NodeError::failed(
                "input",
                format!("the input of the node {node} does not fit: {error}"),
            )
        })
    }

    /// Returns whether this task was given an input of its own.
    pub fn has_input(&self) -> bool {
        self.input.is_some()
    }
}

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
    /// Returns where the node runs.
    pub fn place(&self) -> &NodeLocation {
        &self.place
    }

    /// Returns the port itself, for those who wrap it.
    pub fn port(&self) -> &Arc<dyn Port> {
        &self.port
    }

    /// Performs an effect once, or reads its recorded outcome back.
    ///
    /// # Errors
    /// [`NodeError`] when the recorder failed, the run is cancelled, or a person must decide.
    pub async fn effect(
        &self,
        request: EffectRequest,
        perform: Perform<'_>,
    ) -> Result<Outcome, NodeError> {
        self.port.effect(request, perform).await
    }

    /// Asks a person and returns the answer once there is one.
    ///
    /// # Errors
    /// [`NodeError::Interrupted`] until it is answered: pass it on with `?`.
    pub async fn interrupt(
        &self,
        kind: &str,
        payload: impl Serialize + Send,
    ) -> Result<Value, NodeError> {
        let payload = as_json(payload)?;
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
    ) -> Result<Value, NodeError> {
        let what = as_json(what)?;
        let payload = as_json(payload)?;
        self.port.interrupt(kind, what, payload).await
    }

    /// Returns the time, recorded, so that a re-run sees the same one.
    ///
    /// # Errors
    /// As [`Self::effect`].
    pub async fn now(&self) -> Result<chrono::DateTime<chrono::Utc>, NodeError> {
        moment(self.port.now_micros().await?)
    }

    /// Notes the time and returns it: recorded like [`Self::now`], but in the write of the task's next effect, or when the node ends.
    ///
    /// For a node that passes it on by its effects and its update alone.
    ///
    /// # Errors
    /// As [`Self::effect`].
    pub async fn note_time(&self) -> Result<chrono::DateTime<chrono::Utc>, NodeError> {
        moment(self.port.noted_micros().await?)
    }

    /// Draws 64 random bits, recorded, so that a re-run draws the same.
    ///
    /// # Errors
    /// As [`Self::effect`].
    pub async fn random(&self) -> Result<u64, NodeError> {
        self.port.random().await
    }

    /// Makes durable what the node noted so far, for one that passes it on by other means than an effect.
    ///
    /// # Errors
    /// [`NodeError::Recorder`] when it cannot be written.
    pub async fn keep_notes(&self) -> Result<(), NodeError> {
        self.port.keep_notes().await
    }

    /// Notes what the node observes, such as the agents there are, and returns it.
    ///
    /// It is written with the task's next effect, before that is sent, or when the node ends.
    ///
    /// A run always sees what is there now, also after a crash; a replay sees what the recorded run saw,
    /// so that it needs none of it.
    ///
    /// # Errors
    /// [`NodeError::Recorder`] when it cannot be noted, [`NodeError::Failed`] of kind `observation` when it
    /// is not JSON or what was noted does not fit `T`.
    pub async fn observe<T: Serialize + DeserializeOwned>(
        &self,
        name: &str,
        seen: &T,
    ) -> Result<T, NodeError> {
        let seen = seen_as_json(name, seen)?;
        read_seen(name, self.port.observed(name, seen).await?)
    }

    /// Notes what the node sees when it first looks, and returns that however often the node runs again.
    ///
    /// # Errors
    /// As [`Self::observe`].
    pub async fn observe_first<T: Serialize + DeserializeOwned>(
        &self,
        name: &str,
        seen: &T,
    ) -> Result<T, NodeError> {
        let seen = seen_as_json(name, seen)?;
        read_seen(name, self.port.observed_first(name, seen).await?)
    }

    /// Notes what the node sees where it is not `usual`, which follows from what was noted before, and returns it.
    ///
    /// It costs nothing while all is as usual; a replay sees what is usual where nothing was noted.
    ///
    /// # Errors
    /// As [`Self::observe`].
    pub async fn observe_unless<T: Serialize + DeserializeOwned>(
        &self,
        name: &str,
        usual: &T,
        seen: &T,
    ) -> Result<T, NodeError> {
        let usual = seen_as_json(name, usual)?;
        let seen = seen_as_json(name, seen)?;
        read_seen(name, self.port.observed_unless(name, usual, seen).await?)
    }

    /// Returns the text of a blob: as the node itself holds it, or as the store keeps it since the step that wrote it.
    ///
    /// `called` says what it is, where it cannot be read.
    ///
    /// # Errors
    /// [`NodeError::Recorder`] when it is not in the store any more, or altered there, or the store failed.
    pub async fn read(&self, blob: &Blob, called: &str) -> Result<Arc<str>, NodeError> {
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

fn as_json(payload: impl Serialize) -> Result<Value, NodeError> {
    serde_json::to_value(payload).map_err(|error| {
        NodeError::failed("payload", format!("an interrupt's payload is not JSON: {error}"))
    })
}

fn moment(micros: i64) -> Result<chrono::DateTime<chrono::Utc>, NodeError> {
    chrono::DateTime::from_timestamp_micros(micros).ok_or_else(|| {
        NodeError::failed("clock", format!("a recorded time is out of range: {micros}"))
    })
}

fn seen_as_json(name: &str, seen: &impl Serialize) -> Result<Value, NodeError> {
    serde_json::to_value(seen).map_err(|error| unfit(name, &error))
}

fn read_seen<T: DeserializeOwned>(name: &str, seen: Value) -> Result<T, NodeError> {
    serde_json::from_value(seen).map_err(|error| unfit(name, &error))
}

fn unfit(name: &str, error: &serde_json::Error) -> NodeError {
    NodeError::failed("observation", format!("what is seen of {name} does not fit: {error}"))
}
