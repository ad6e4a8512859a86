//! The interface through which a running node reaches the outside, and how each use is recorded.

use std::fmt::Display;
use std::sync::Arc;

use async_trait::async_trait;
use futures::future::BoxFuture;
use serde::{Serialize, de::DeserializeOwned};
use serde_json::Value;

use super::{Blob, NodeError, StreamMode, Wants};

/// The class of an effect, which decides how it is recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the variants describe their fields")]
pub enum EffectClass {
    /// It reads and changes nothing; recorded when it is done.
    Inquiry,
    /// May change the world; its intent is recorded before it is sent. `repeatable` when the operator
    /// declared that sending it again does no harm.
    Action { repeatable: bool },
}

/// A value of the caller of a run, whose type only the caller and the nodes know; dropped with the run.
pub type Request = Arc<dyn std::any::Any + Send + Sync>;

/// An outside effect that a node asks for.
#[derive(Clone, Debug)]
pub struct EffectRequest {
    /// The class of the effect.
    pub class: EffectClass,
    /// Model role or `server.tool`.
    pub name: String,
    /// Everything that decides the outcome; hashed into the effect's key.
    pub request: Value,
}

/// How performing an effect failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EffectFailure {
    /// It certainly had no effect; may be tried again.
    #[error("{0}")]
    NoEffect(String),
    /// It may have happened.
    #[error("{0}")]
    Unknown(String),
}

impl EffectFailure {
    /// Makes a failure that certainly had no effect.
    pub fn no_effect(why: impl ToString) -> Self {
        Self::NoEffect(why.to_string())
    }
}

/// Writes a value as JSON, or names in a failure of this kind what has no such form.
pub(super) fn to_json(
    kind: &str,
    what: impl Display,
    value: impl Serialize,
) -> Result<Value, NodeError> {
    let written = serde_json::to_value(value);
    written.map_err(|error| NodeError::failed(kind, format!("{what} is not JSON: {error}")))
}

/// Reads a value, or names in a failure of this kind what does not fit.
pub(super) fn from_json<T: DeserializeOwned>(
    kind: &str,
    what: impl Display,
    value: Value,
) -> Result<T, NodeError> {
    let read = serde_json::from_value(value);
    read.map_err(|error| NodeError::failed(kind, format!("{what} does not fit: {error}")))
}

/// Performs an effect; called with the effect's key, which is stable over all attempts.
pub type Perform<'a> =
    Box<dyn FnMut(String) -> BoxFuture<'a, Result<Value, EffectFailure>> + Send + 'a>;

/// How an effect ended for the node that asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The value that it returned.
    Value(Value),
    /// It failed, certainly without effect, or a person decided to skip it.
    Failed(String),
}

/// The interface behind [`Context`](super::Context): recorded effects, questions, live events.
///
/// # Errors
/// [`NodeError::Interrupted`] until a question is answered, [`NodeError::Cancelled`] if the run is stopped, and
/// [`NodeError::Recorder`] if the journal cannot be read or written.
#[async_trait]
pub trait Port: Send + Sync {
    /// Performs an effect once, or reads its recorded outcome back.
    async fn effect(
        &self,
        request: EffectRequest,
        perform: Perform<'_>,
    ) -> Result<Outcome, NodeError>;

    /// Asks a person, or returns the recorded answer; `what` distinguishes the questions of the task.
    async fn interrupt(&self, kind: &str, what: Value, payload: Value) -> Result<Value, NodeError>;

    /// Makes the notes so far durable; otherwise they are written with the task's next effect or its end.
    async fn keep_notes(&self) -> Result<(), NodeError>;

    /// Returns the time, recorded, in microseconds since the Unix epoch.
    async fn now_micros(&self) -> Result<i64, NodeError>;

    /// Returns the same, noted: durable with the task's next effect or its end.
    async fn noted_micros(&self) -> Result<i64, NodeError>;

    /// Returns the time of the same clock without recording it, to bound a wait.
    fn unrecorded_now_micros(&self) -> i64;

    /// Draws 64 random bits, recorded.
    async fn random(&self) -> Result<u64, NodeError>;

    /// Notes an observation of the node and returns it; a replay returns the recorded one, if there is one.
    async fn observed(&self, name: &str, seen: Value) -> Result<Value, NodeError>;

    /// Returns the last note of an observation.
    fn noted(&self, name: &str) -> Result<Option<Value>, NodeError>;

    /// Returns the text of a blob that an earlier step wrote; `called` is its name in an error.
    async fn read(&self, blob: &Blob, called: &str) -> Result<Arc<str>, NodeError>;

    /// Publishes a live event; never waits.
    fn emit(&self, mode: StreamMode, payload: Value);

    /// Returns the events that listeners want; `None` without listeners.
    fn wants(&self) -> Option<Wants>;

    /// Passes an event of a subgraph on; waits while the listener is behind.
    async fn nested(&self, namespace: String, modes: Vec<StreamMode>, event: Value);

    /// Returns whether this is a replay of a recorded run, which writes nothing.
    fn is_replay(&self) -> bool;

    /// Returns whether the run is being stopped.
    fn cancelled(&self) -> bool;

    /// Resolves when the run is being stopped.
    async fn until_cancelled(&self);
}
