//! A graph of a program's own, described for those who use it.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};

use super::typed::{Hooks, Typed};
use super::{About, GraphParts, Graphs, Served};
use crate::Error;
use perihelion_engine::graph::{BuildError, Graph, State};

/// Builds a graph of what is there.
type Build<S> = dyn Fn(&GraphParts) -> Result<Arc<Graph<S>>, BuildError> + Send + Sync;

/// A graph with its description.
///
/// Everything has a default: an input is an update of the state, the schemas are read off the empty state, and a field
/// `messages` that is a list of [`Message`](perihelion_star::Message)s is the conversation.
pub struct OwnGraph<S: State> {
    build: Box<Build<S>>,
    about: About,
    hooks: Hooks<S>,
}

impl<S: State> OwnGraph<S> {
    /// Describes a graph.
    pub fn new(graph: Arc<Graph<S>>) -> Self {
        let name = graph.name().to_owned();
        Self::built(&name, move |_| Ok(Arc::clone(&graph)))
    }

    /// Describes a graph that is built of the store, the model and the servers, once these are there.
    pub fn built(
        name: &str,
        build: impl Fn(&GraphParts) -> Result<Arc<Graph<S>>, BuildError> + Send + Sync + 'static,
    ) -> Self {
        let about = about::<S>(name);
        Self { build: Box::new(build), about, hooks: Hooks::default() }
    }

    /// Says in a sentence what the graph does.
    #[must_use]
    pub fn description(mut self, text: &str) -> Self {
        self.about.description = Some(text.to_owned());
        self
    }

    /// Reads inputs as `I`, and makes each the update that a run begins with.
    #[must_use]
    pub fn input<I: DeserializeOwned + JsonSchema>(
        mut self,
        read: impl Fn(I) -> S::Update + Send + Sync + 'static,
    ) -> Self {
        self.about.input_schema = schema_of::<I>();
        self.hooks.input = Some(Arc::new(move |given: Value| {
            serde_json::from_value::<I>(given).map(&read).map_err(|error| error.to_string())
        }));
        self
    }

    /// Shows `T` as the schema of the state: the state's own type where it has a schema, or one that describes it.
    #[must_use]
    pub fn state<T: JsonSchema>(mut self) -> Self {
        self.about.state_schema = schema_of::<T>();
        self.about.output_schema = self.about.state_schema.clone();
        self
    }

    /// Shows `T` as the schema of what a run leaves.
    #[must_use]
    pub fn output<T: JsonSchema>(mut self) -> Self {
        self.about.output_schema = schema_of::<T>();
        self
    }
}

impl Graphs {
    /// Adds a graph; one of the same name is replaced.
    #[must_use]
    pub fn with<S: State>(mut self, graph: OwnGraph<S>) -> Self {
        let OwnGraph { build, about, hooks } = graph;
        let name = about.name.clone();
        let about = Arc::new(about);
        self.0.insert(
            name,
            Arc::new(move |parts, setup| {
                let built = build(parts).map_err(Error::Graph)?;
                if built.name() != about.name {
                    return Err(Error::GraphName(built.name().to_owned()));
                }
                let typed = Typed::new(setup.runner(built), Arc::clone(&about), hooks.clone());
                Ok(Arc::new(typed) as Arc<dyn Served>)
            }),
        );
        self
    }
}

fn schema_of<T: JsonSchema>() -> Value {
    schemars::schema_for!(T).to_value()
}

/// Says of a graph what its empty state shows.
fn about<S: State>(name: &str) -> About {
    let empty = serde_json::to_value(S::default()).unwrap_or_default();
    let fields = empty.as_object().cloned().unwrap_or_default();
    let schema = |what: &str| {
        let fields: Map<String, Value> =
            fields.iter().map(|(name, value)| (name.clone(), form_of(value))).collect();
        json!({ "title": format!("{name}_{what}"), "type": "object", "properties": fields })
    };
    let message = json!([{ "id": "1", "role": "user", "content": "" }]);
    let has_messages = fields.get("messages").is_some_and(Value::is_array)
        && serde_json::from_value::<S::Update>(json!({ "messages": message })).is_ok();
    About {
        name: name.to_owned(),
        description: None,
        input_schema: schema("input"),
        state_schema: schema("state"),
        output_schema: schema("output"),
        messages: has_messages.then(|| "messages".to_owned()),
    }
}

/// Returns what can be told of a field by its empty value.
fn form_of(value: &Value) -> Value {
    match value {
        Value::Null => json!({}),
        Value::Bool(_) => json!({ "type": "boolean" }),
        Value::Number(number) if number.is_f64() => json!({ "type": "number" }),
        Value::Number(_) => json!({ "type": "integer" }),
        Value::String(_) => json!({ "type": "string" }),
        Value::Array(_) => json!({ "type": "array" }),
        Value::Object(_) => json!({ "type": "object" }),
    }
}
