//! States and updates of any graph, as those hold them who do not know its types.

use std::any::Any;
use std::fmt::Debug;
use std::sync::{Arc, LazyLock, OnceLock};

use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::About;
use perihelion_star::{GraphState, GraphUpdate, Message};

/// The key under which the state of a hosted graph keeps its position; it is not shown.
const PLACE: &str = "__perihelion__";

/// The state of a hosted graph's thread as JSON.
#[derive(Debug, Default)]
struct HostedState {
    values: Map<String, Value>,
    place: HostedPlace,
}

impl HostedState {
    fn read(state: Value) -> Self {
        let Value::Object(mut values) = state else { return Self::default() };
        let place = values.shift_remove(PLACE).map(HostedPlace::deserialize);
        Self { values, place: place.and_then(Result::ok).unwrap_or_default() }
    }
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct HostedPlace {
    next: Vec<String>,
    silent: bool,
    hidden: Vec<String>,
    /// `None` before the first checkpoint.
    metadata: Option<HostedStep>,
    /// The input that the next step takes in.
    pending: Option<IgnoredAny>,
}

#[derive(Debug, Deserialize)]
struct HostedStep {
    step: Option<i64>,
}

/// An event that the process of a hosted graph streams itself, in the form for clients.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct HostedEvent {
    pub mode: String,
    /// Its name, with the namespace of a subgraph behind it.
    pub event: String,
    pub data: Value,
}

impl HostedEvent {
    pub fn read(payload: &Value) -> Option<Self> {
        Self::deserialize(payload).ok()
    }
}

/// A value whose type only its graph knows.
trait Erased: Any + Debug + Send + Sync {
    fn json(&self) -> Value;
}

impl<T: Any + Debug + Serialize + Send + Sync> Erased for T {
    fn json(&self) -> Value {
        serde_json::to_value(self).unwrap_or_default()
    }
}

/// The state of a thread of any graph; cheap to clone.
#[derive(Clone, Debug)]
pub struct ThreadState {
    about: Arc<About>,
    value: Arc<dyn Erased>,
    /// Converted once, and only for a hosted graph.
    hosted: Arc<OnceLock<HostedState>>,
}

impl ThreadState {
    pub(crate) fn new<S: Debug + Serialize + Send + Sync + 'static>(
        about: &Arc<About>,
        state: Arc<S>,
    ) -> Self {
        Self { about: Arc::clone(about), value: state, hosted: Arc::default() }
    }

    pub fn about(&self) -> &About {
        &self.about
    }

    /// Returns the state as its graph has it, if it is of that type.
    pub fn of<S: 'static>(&self) -> Option<&S> {
        (&*self.value as &dyn Any).downcast_ref()
    }

    /// Returns the state of the supervisor graph; of another graph's thread, an empty one.
    pub fn star(&self) -> &GraphState {
        static EMPTY: LazyLock<GraphState> = LazyLock::new(GraphState::default);
        self.of().unwrap_or(&EMPTY)
    }

    pub fn json(&self) -> Value {
        match self.hosted() {
            Some(hosted) => Value::Object(hosted.values.clone()),
            None => self.value.json(),
        }
    }

    fn hosted(&self) -> Option<&HostedState> {
        let hosted = || self.hosted.get_or_init(|| HostedState::read(self.value.json()));
        self.about.is_hosted.then(hosted)
    }

    /// Returns the nodes that come next, where the state of a hosted graph says so.
    pub fn next(&self) -> Option<&[String]> {
        Some(&self.hosted()?.place.next)
    }

    /// Returns the number of the step of a hosted graph, which LangGraph counts from -1; an input is a step of its own.
    pub fn hosted_step(&self) -> Option<i64> {
        let place = &self.hosted()?.place;
        let last = place.metadata.as_ref().and_then(|checkpoint| checkpoint.step);
        Some(last.unwrap_or(-2) + i64::from(place.pending.is_some()))
    }

    /// Returns whether the last step of a hosted graph wrote nothing that its output has.
    pub fn is_silent(&self) -> bool {
        self.hosted().is_some_and(|hosted| hosted.place.silent)
    }

    /// Returns it as the output of a run: of a hosted graph, without the fields that its output does not have.
    pub fn output(&self) -> Value {
        let Some(HostedState { values, place }) = self.hosted() else { return self.json() };
        let shown = values.iter().filter(|(name, _)| !place.hidden.contains(name));
        shown.map(|(name, value)| (name.clone(), value.clone())).collect()
    }

    /// Returns its messages; empty for a graph without messages.
    pub fn messages(&self) -> Vec<Message> {
        match self.of::<GraphState>() {
            Some(star) => star.messages.iter().cloned().collect(),
            None => messages_in(&self.about, &self.json()),
        }
    }

    pub fn first_message(&self) -> Option<String> {
        match self.of::<GraphState>() {
            Some(star) => star.messages.iter().next().map(|message| message.content.clone()),
            None => self.messages().into_iter().next().map(|message| message.content),
        }
    }

    /// Returns the answer: of a graph of the program's own, its last message, if a model or the graph wrote it.
    pub fn answer(&self) -> Option<String> {
        if let Some(star) = self.of::<GraphState>() {
            return star.answer.clone();
        }
        let last = self.messages().pop().filter(|message| message.role == "assistant");
        last.map(|message| message.content)
    }
}

#[derive(Clone, Debug)]
pub struct Update {
    about: Arc<About>,
    value: Arc<dyn Erased>,
}

impl Update {
    /// Returns the update of the supervisor graph; `None` for another graph.
    pub fn star(&self) -> Option<&GraphUpdate> {
        (&*self.value as &dyn Any).downcast_ref()
    }

    pub fn json(&self) -> Value {
        self.value.json()
    }

    pub fn about(&self) -> &About {
        &self.about
    }

    pub fn messages(&self) -> Vec<Message> {
        match self.star() {
            Some(star) => star.messages.iter().flatten().cloned().collect(),
            None => messages_in(&self.about, &self.json()),
        }
    }
}

#[derive(Clone, Debug)]
pub struct Wrote {
    pub node: String,
    pub update: Update,
}

impl Wrote {
    pub(super) fn new<U: Debug + Serialize + Send + Sync + 'static>(
        about: &Arc<About>,
        node: String,
        update: U,
    ) -> Self {
        let update = Update { about: Arc::clone(about), value: Arc::new(update) };
        Self { node, update }
    }

    #[doc(hidden)]
    pub fn of_star(node: &str, update: GraphUpdate) -> Self {
        Self::new(&super::star::about_star(), node.to_owned(), update)
    }
}

fn messages_in(about: &About, fields: &Value) -> Vec<Message> {
    let list = about.messages.as_ref().and_then(|field| fields.get(field)?.as_array());
    let read = |one: &Value| serde_json::from_value(one.clone()).ok();
    list.into_iter().flatten().filter_map(read).collect()
}
