//! The graphs that a runtime runs: the supervisor graph, and those that a program registers.
//!
//! Enter at [`OwnGraph`], which describes a graph of any state, and [`Graphs`], which a runtime is opened with. What a
//! service needs of a graph is [`Served`]; it hides the state's type, so services are compiled once. Invariant: a thread
//! is run by the graph whose name it keeps, or by none. Deliberately absent: the shapes of any protocol.

mod edit;
mod own;
mod state;
mod typed;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use serde::Serialize;
use serde_json::Value;

pub use self::own::OwnGraph;
pub use self::state::{ThreadState, Update, Wrote};
pub use self::typed::supervisor_offline;
pub(crate) use self::typed::{Setup, star};
use crate::{Error, Runtime};
use perihelion_engine::checkpoint::{StepRow, Store, ThreadInfo};
use perihelion_engine::graph::Edge;
use perihelion_engine::ids::{RunId, ThreadId};
use perihelion_engine::runner::{ReplayReport, RunOptions, RunOutcome};
use perihelion_llm::ChatModel;
use perihelion_mcp::ToolHost;
use perihelion_settings::config::Settings;
use perihelion_star::{GRAPH, GraphState, offline_parts};

/// What a graph says of itself.
#[derive(Clone, Debug, Serialize)]
pub struct About {
    pub name: String,
    pub description: Option<String>,
    /// JSON Schema of what a run is given.
    pub input_schema: Value,
    /// JSON Schema of the state.
    pub state_schema: Value,
    /// JSON Schema of what a run leaves; the state's by default.
    pub output_schema: Value,
    /// The field of the state that is a list of messages, if one is.
    pub messages: Option<String>,
}

/// The nodes of a graph and the ways between them.
#[derive(Clone, Debug, Default)]
pub struct Drawing {
    pub entry: Vec<String>,
    pub nodes: Vec<String>,
    pub edges: Vec<Edge>,
}

/// A step of a thread with the state after it.
#[derive(Clone, Debug)]
pub struct FoldedStep {
    /// The state as people are shown it: after an input with the message that the next step takes in.
    pub shown: ThreadState,
    /// What the next step starts from.
    pub state: ThreadState,
    pub written: Vec<Wrote>,
    /// The step that it follows, if any: the one before it, or the one that was returned to.
    pub parent: Option<u64>,
}

/// An edit of a thread's state.
#[derive(Clone, Debug, Default)]
pub struct Edit<'a> {
    /// The fields that are written, by name; they are merged by the graph's reducers.
    pub update: Value,
    /// The node in whose name it is made; none: the one that ran last.
    pub as_node: Option<&'a str>,
    /// The nodes that run next; empty: those that the node leads to.
    pub goto: &'a [String],
    /// The step that the thread goes back to first.
    pub at: Option<u64>,
}

/// What a service needs of a graph.
#[async_trait]
pub trait Served: Send + Sync {
    /// Returns what the graph says of itself.
    fn about(&self) -> &Arc<About>;

    /// Returns its nodes and the ways between them.
    fn drawing(&self) -> Drawing;

    /// Returns the state of a thread without a step.
    fn empty(&self) -> ThreadState;

    /// Refuses an input that cannot be read.
    ///
    /// # Errors
    /// [`Error::Change`].
    fn check_input(&self, input: &Value) -> Result<(), Error>;

    /// Refuses an update of the state that cannot be read.
    ///
    /// # Errors
    /// [`Error::Change`].
    fn check_update(&self, update: &Value) -> Result<(), Error>;

    /// Reads the state of a thread at a step, or at its head.
    ///
    /// # Errors
    /// As [`perihelion_engine::checkpoint::restore`].
    async fn state(&self, thread: ThreadId, at: Option<u64>) -> Result<ThreadState, Error>;

    /// Reads the next step after a state.
    ///
    /// # Errors
    /// As [`Served::state`].
    async fn fold(
        &self,
        thread: ThreadId,
        before: &ThreadState,
        row: &StepRow,
    ) -> Result<FoldedStep, Error>;

    /// Makes a thread of a tenant.
    ///
    /// # Errors
    /// Whatever the store reports.
    async fn create(
        &self,
        tenant: &str,
        thread: ThreadId,
        title: Option<String>,
    ) -> Result<ThreadInfo, Error>;

    /// Edits a thread's state, and returns the step of the edit.
    ///
    /// # Errors
    /// As [`perihelion_engine::runner::Runner::update_state_and_go`]; an edit that is refused changes nothing.
    async fn edit(&self, thread: ThreadId, edit: Edit<'_>) -> Result<u64, Error>;

    /// Makes a thread stand as it did at an earlier step, and returns its newest one then.
    ///
    /// # Errors
    /// As [`perihelion_engine::runner::Runner::go_back`].
    async fn go_back(&self, thread: ThreadId, to: u64) -> Result<u64, Error>;

    /// Drops all but the newest `keep` steps; returns the first step that is kept.
    ///
    /// # Errors
    /// As [`perihelion_engine::runner::compact`].
    async fn compact(&self, thread: ThreadId, keep: u64) -> Result<Option<u64>, Error>;

    /// Gives a thread an input however it stands: what an unfinished run still had to do is given up.
    ///
    /// # Errors
    /// [`Error::Change`] for an input that cannot be read, and as [`perihelion_engine::runner::Runner::start`].
    async fn start(&self, thread: ThreadId, input: Value, options: Options)
    -> Result<Ended, Error>;

    /// Resumes a thread.
    ///
    /// # Errors
    /// As [`perihelion_engine::runner::Runner::resume`].
    async fn resume(&self, thread: ThreadId, options: Options) -> Result<Ended, Error>;

    /// Resumes a thread that was left to the workers, or whose process died; none: there is nothing to do.
    ///
    /// # Errors
    /// As [`perihelion_engine::runner::Runner::wake`].
    async fn wake(&self, thread: ThreadId, options: Options) -> Result<Option<Ended>, Error>;

    /// Runs a recorded thread, or one run of it, again without calls.
    ///
    /// # Errors
    /// As [`perihelion_engine::runner::Runner::replay`].
    async fn replay(&self, thread: ThreadId, run: Option<RunId>) -> Result<ReplayReport, Error>;
}

/// How a run is driven; its events are not heard here, but on the bus.
pub type Options = RunOptions<GraphState>;

/// How a run ended, without its state.
pub type Ended = RunOutcome<GraphState>;

/// What a graph can be built of.
#[derive(Clone)]
pub struct GraphParts {
    /// Keeps the threads; subgraphs need it.
    pub store: Arc<dyn Store>,
    /// The model of the settings; without an endpoint it answers with an error that says what to set.
    pub model: Arc<dyn ChatModel>,
    /// The MCP servers of the settings.
    pub tools: Arc<dyn ToolHost>,
}

/// Makes a runner of a graph once store, model and tools are there.
type Open = dyn Fn(&GraphParts, Setup) -> Result<Arc<dyn Served>, Error> + Send + Sync;

/// The graphs of a program, by their names.
#[derive(Clone, Default)]
pub struct Graphs(BTreeMap<String, Arc<Open>>);

impl std::fmt::Debug for Graphs {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_set().entries(self.0.keys()).finish()
    }
}

impl Graphs {
    /// Begins without a graph.
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns whether there is none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Opens one of them to read and replay its threads, if it is there; nothing that it calls is.
    ///
    /// # Errors
    /// [`Error::Graph`] when it cannot be built.
    pub fn offline(
        &self,
        settings: &Settings,
        name: &str,
        store: &Arc<dyn Store>,
    ) -> Result<Option<Arc<dyn Served>>, Error> {
        let Some(make) = self.0.get(name) else { return Ok(None) };
        let (model, tools) = offline_parts();
        let parts = GraphParts { store: Arc::clone(store), model, tools };
        let setup = Setup {
            store: Arc::clone(store),
            lease: Duration::from_secs_f64(settings.store.lease_sec),
            most: settings.limits.max_state_bytes,
            spans: None,
            exports: false,
        };
        make(&parts, setup).map(Some)
    }

    /// Opens all of them.
    ///
    /// # Errors
    /// [`Error::Graph`] for one that cannot be built, [`Error::GraphName`] for a name that is taken.
    pub(crate) fn open(
        &self,
        parts: &GraphParts,
        setup: &Setup,
    ) -> Result<BTreeMap<String, Arc<dyn Served>>, Error> {
        let mut open = BTreeMap::new();
        for (name, make) in &self.0 {
            let graph = make(parts, setup.clone())?;
            if graph.about().name != *name || name == GRAPH {
                return Err(Error::GraphName(name.clone()));
            }
            open.insert(name.clone(), graph);
        }
        Ok(open)
    }
}

impl Runtime {
    /// Returns the graph of a name.
    ///
    /// # Errors
    /// [`Error::UnknownGraph`].
    pub fn graph(&self, name: &str) -> Result<&Arc<dyn Served>, Error> {
        if name == GRAPH {
            return Ok(self.supervisor());
        }
        self.own_graph(name).ok_or_else(|| Error::UnknownGraph(name.to_owned()))
    }

    /// Returns the program's own graph of a name; none for the supervisor graph.
    ///
    /// # Errors
    /// [`Error::UnknownGraph`].
    pub(crate) fn graph_beside(&self, name: &str) -> Result<Option<&Arc<dyn Served>>, Error> {
        if name == GRAPH { Ok(None) } else { self.graph(name).map(Some) }
    }

    /// Returns the program's own graph of a name, if it has one.
    pub fn own_graph(&self, name: &str) -> Option<&Arc<dyn Served>> {
        self.graphs.get(name)
    }

    /// Returns the program's own graphs.
    pub fn own_graphs(&self) -> impl Iterator<Item = &Arc<dyn Served>> {
        self.graphs.values()
    }

    /// Returns the names of all graphs, the supervisor graph's first.
    pub fn graph_names(&self) -> Vec<String> {
        [GRAPH.to_owned()].into_iter().chain(self.graphs.keys().cloned()).collect()
    }

    /// Returns the graph of a thread.
    ///
    /// # Errors
    /// [`Error::UnknownGraph`], and [`Error::Store`] for an unknown thread.
    pub async fn graph_of(&self, thread: ThreadId) -> Result<&Arc<dyn Served>, Error> {
        self.graph(&self.store().info(thread).await?.graph)
    }
}
