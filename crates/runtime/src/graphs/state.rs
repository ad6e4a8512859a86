//! States and updates of any graph, as those hold them who do not know its types.

use std::any::Any;
use std::fmt::Debug;
use std::sync::{Arc, LazyLock};

use serde::Serialize;
use serde_json::Value;

use super::About;
use perihelion_star::{GraphState, GraphUpdate, Message};

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
}

impl ThreadState {
    pub(super) fn new<S: Debug + Serialize + Send + Sync + 'static>(
        about: &Arc<About>,
        state: Arc<S>,
    ) -> Self {
        Self { about: Arc::clone(about), value: state }
    }

    /// Returns what its graph says of itself.
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

    /// Returns it as JSON.
    pub fn json(&self) -> Value {
        self.value.json()
    }

    /// Returns its messages; none of a graph without messages.
    pub fn messages(&self) -> Vec<Message> {
        match self.of::<GraphState>() {
            Some(star) => star.messages.iter().cloned().collect(),
            None => messages_in(&self.about, &self.json()),
        }
    }

    /// Returns the text of its last message, if a model or the graph wrote it.
    pub fn last_reply(&self) -> Option<String> {
        let last = self.messages().pop().filter(|message| message.role == "assistant");
        last.map(|message| message.content)
    }
}

/// What a node wrote, of any graph.
#[derive(Clone, Debug)]
pub struct Update {
    about: Arc<About>,
    value: Arc<dyn Erased>,
}

impl Update {
    /// Returns the update of the supervisor graph; none of another graph's.
    pub fn star(&self) -> Option<&GraphUpdate> {
        (&*self.value as &dyn Any).downcast_ref()
    }

    /// Returns it as JSON.
    pub fn json(&self) -> Value {
        self.value.json()
    }

    /// Returns what its graph says of itself.
    pub fn about(&self) -> &About {
        &self.about
    }

    /// Returns the messages that were written.
    pub fn messages(&self) -> Vec<Message> {
        match self.star() {
            Some(star) => star.messages.iter().flatten().cloned().collect(),
            None => messages_in(&self.about, &self.json()),
        }
    }
}

/// What one task of a step wrote.
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

    /// Makes what a node of the supervisor graph wrote.
    #[doc(hidden)]
    pub fn of_star(node: &str, update: GraphUpdate) -> Self {
        Self::new(&super::typed::about_star(), node.to_owned(), update)
    }
}

fn messages_in(about: &About, fields: &Value) -> Vec<Message> {
    let list = about.messages.as_ref().and_then(|field| fields.get(field)?.as_array());
    let read = |one: &Value| serde_json::from_value(one.clone()).ok();
    list.into_iter().flatten().filter_map(read).collect()
}
