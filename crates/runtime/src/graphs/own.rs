//! A program's own graph, with its description.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};

use super::typed::{ReadInput, Typed};
use super::{About, GraphParts, Graphs, Screens, Served};
use crate::Error;
use perihelion_engine::graph::{BuildError, Graph, State};

type Build<S> = dyn Fn(&GraphParts) -> Result<Arc<Graph<S>>, BuildError> + Send + Sync;

/// A graph with its description.
///
/// Everything has a default: an input is an update of the state, the schemas derive from the empty state, and a field
/// `messages` that is a list of [`Message`](perihelion_star::Message)s is the conversation.
#[must_use]
pub struct OwnGraph<S: State> {
    build: Box<Build<S>>,
    about: About,
    input: Option<Arc<ReadInput<S>>>,
}

impl<S: State> OwnGraph<S> {
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
        Self { build: Box::new(build), about, input: None }
    }

    pub fn description(mut self, text: &str) -> Self {
        self.about.description = Some(text.to_owned());
        self
    }

    /// Reads inputs as `I`, and makes each the update that a run begins with.
    pub fn input<I: DeserializeOwned + JsonSchema>(
        mut self,
        read: impl Fn(I) -> S::Update + Send + Sync + 'static,
    ) -> Self {
        self.about.input_schema = schema_of::<I>();
        self.input = Some(Arc::new(move |given: Value| serde_json::from_value(given).map(&read)));
        self
    }

    /// Uses `T` for the schema of the state: the state's own type if it has a schema, or a type that describes it.
    pub fn state<T: JsonSchema>(mut self) -> Self {
        self.about.state_schema = schema_of::<T>();
        self.about.output_schema = self.about.state_schema.clone();
        self
    }

    /// Says that another program runs it: where it stands is in the state, under the key `__perihelion__`.
    pub fn hosted(mut self) -> Self {
        self.about.is_hosted = true;
        self
    }

    /// Says what its process decides about requests to the service.
    pub fn screening(mut self, screens: Screens) -> Self {
        self.about.screens = screens;
        self
    }

    /// Uses `T` for the schema of the output of a run.
    pub fn output<T: JsonSchema>(mut self) -> Self {
        self.about.output_schema = schema_of::<T>();
        self
    }
}

impl Graphs {
    /// Adds a graph; one of the same name is replaced.
    pub fn with<S: State>(self, graph: OwnGraph<S>) -> Self {
        self.with_wrapped(graph, |served, _| served)
    }

    /// Adds a graph that is served by what `wrap` makes of it.
    pub fn with_wrapped<S: State>(
        mut self,
        graph: OwnGraph<S>,
        wrap: impl Fn(Arc<dyn Served>, &GraphParts) -> Arc<dyn Served> + Send + Sync + 'static,
    ) -> Self {
        let OwnGraph { build, about, input } = graph;
        let name = about.name.clone();
        let about = Arc::new(about);
        self.0.insert(
            name,
            Arc::new(move |parts, setup| {
                let built = build(parts).map_err(Error::Graph)?;
                if built.name() != about.name {
                    return Err(Error::GraphName(built.name().to_owned()));
                }
                let runner = setup.runner(built);
                let about = Arc::clone(&about);
                let typed = Typed { runner, about, input: input.clone(), show: None };
                Ok(wrap(Arc::new(typed), parts))
            }),
        );
        self
    }
}

fn schema_of<T: JsonSchema>() -> Value {
    schemars::schema_for!(T).to_value()
}

/// Derives the description of a graph from its empty state.
pub(super) fn about<S: State>(name: &str) -> About {
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
        config_schema: json!({}),
        context_schema: json!({}),
        is_hosted: false,
        screens: Screens::Nothing,
    }
}

/// Derives the schema of a field from its empty value.
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
