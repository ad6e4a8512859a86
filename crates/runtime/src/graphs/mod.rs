//! The graphs of a runtime: the supervisor graph, and those that a program registers.
//!
//! Enter at [`OwnGraph`], which describes a graph of any state, and [`Graphs`], which a runtime is opened with.
//! Services use a graph through [`Served`]; it hides the state's type, so services are compiled once. Invariant: only
//! the graph whose name a thread stores runs the thread. Deliberately absent: the shapes of any protocol.

mod own;
mod star;
mod state;
mod typed;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use serde::Serialize;
use serde_json::Value;

pub use self::own::OwnGraph;
pub(crate) use self::star::star;
pub use self::star::supervisor_offline;
pub use self::state::{HostedEvent, ThreadState, Update, Wrote};
use crate::assemble::{Setup, star_options};
use crate::{Error, Runtime, find_team};
use perihelion_engine::checkpoint::{StepRow, Store, ThreadInfo};
use perihelion_engine::graph::Edge;
use perihelion_engine::ids::{RunId, ThreadId};
use perihelion_engine::runner::{ReplayReport, RunOptions, RunOutcome};
use perihelion_llm::ChatModel;
use perihelion_mcp::ToolHost;
use perihelion_settings::config::Settings;
use perihelion_star::{GRAPH, GraphState, Kinds, Star, TEAM_PREFIX, offline_parts};

/// What the program of a hosted graph decides about requests to the service.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Screens {
    Nothing,
    /// What requests contain, and which are off.
    Requests,
    /// In addition, who may use the service.
    Users,
}

#[derive(Clone, Debug, Serialize)]
pub struct About {
    pub name: String,
    pub description: Option<String>,
    /// JSON Schema of the input of a run.
    pub input_schema: Value,
    pub state_schema: Value,
    /// JSON Schema of the output of a run; by default that of the state.
    pub output_schema: Value,
    /// JSON Schemas of the configuration of an assistant, and of the context of a run; empty for anything.
    pub config_schema: Value,
    pub context_schema: Value,
    /// The field of the state that is a list of messages, if one is.
    pub messages: Option<String>,
    /// Whether another program runs it and streams its events.
    pub is_hosted: bool,
    /// What that program decides about requests to the service.
    #[serde(skip)]
    pub screens: Screens,
}

#[derive(Clone, Debug, Default)]
pub struct Drawing {
    pub entry: Vec<String>,
    pub nodes: Vec<String>,
    pub edges: Vec<Edge>,
}

#[derive(Clone, Debug)]
pub struct FoldedStep {
    /// The state as people are shown it: after an input with the message that the next step takes in.
    pub shown: ThreadState,
    /// The start state of the next step.
    pub state: ThreadState,
    pub written: Vec<Wrote>,
    /// The previous step: the one before it, or the target of a return.
    pub parent: u64,
}

/// The field of an answer with the edit that a hosted graph makes together with it; `value` is the answer itself.
pub const ALONG: &str = "__perihelion_along__";

#[derive(Clone, Debug, Default)]
pub struct Edit {
    /// The fields that are written, by name; they are merged by the graph's reducers.
    pub update: Value,
    /// The author node; `None` means the node that ran last.
    pub as_node: Option<String>,
    /// In the edit of a run, the nodes that run next, by name or as a hosted graph's Sends; empty means the successors of
    /// the author node.
    pub goto: Option<Vec<Value>>,
    /// The step that the thread goes back to first.
    pub at: Option<u64>,
    /// The head of the thread for which the update was made; the edit of a thread that moved since is rejected.
    pub head: Option<u64>,
}

#[async_trait]
pub trait Served: Send + Sync {
    fn about(&self) -> &Arc<About>;

    fn drawing(&self) -> Drawing;

    fn empty(&self) -> ThreadState;

    fn check_input(&self, input: &Value) -> Result<(), Error>;

    fn check_update(&self, update: &Value) -> Result<(), Error>;

    /// Reads the state of a thread at a step, or at its head.
    async fn state(&self, thread: ThreadId, at: Option<u64>) -> Result<ThreadState, Error>;

    async fn fold(
        &self,
        thread: ThreadId,
        before: &ThreadState,
        row: &StepRow,
    ) -> Result<FoldedStep, Error>;

    async fn create(
        &self,
        tenant: &str,
        thread: ThreadId,
        title: Option<String>,
    ) -> Result<ThreadInfo, Error>;

    /// Edits a thread's state, and returns the step of the edit.
    ///
    /// # Errors
    /// As [`perihelion_engine::runner::Runner::update_state_and_go`]; a rejected edit changes no row.
    async fn edit(&self, thread: ThreadId, edit: Edit) -> Result<u64, Error>;

    /// Returns a thread to an earlier step, and returns its new head.
    async fn go_back(&self, thread: ThreadId, to: u64) -> Result<u64, Error>;

    /// Drops all but the newest `keep` steps; returns the first remaining step.
    async fn compact(&self, thread: ThreadId, keep: u64) -> Result<Option<u64>, Error>;

    /// Gives a thread an input in any status: the remaining work of an unfinished run is abandoned.
    ///
    /// # Errors
    /// [`Error::Change`] for an input that cannot be read, and as [`perihelion_engine::runner::Runner::start`].
    async fn start(&self, thread: ThreadId, input: Value, options: Options)
    -> Result<Ended, Error>;

    async fn resume(&self, thread: ThreadId, options: Options) -> Result<Ended, Error>;

    /// Resumes a thread that was queued, or whose process died; `None` without work.
    async fn wake(&self, thread: ThreadId, options: Options) -> Result<Option<Ended>, Error>;

    /// Asks the process of a hosted graph for something besides its runs; `None` for another graph.
    ///
    /// # Errors
    /// [`Error::Change`] with the exception that it raised.
    async fn ask(&self, _what: &str, _order: Value) -> Result<Option<Value>, Error> {
        Ok(None)
    }

    /// Runs a recorded thread, or one run of it, again without calls.
    async fn replay(&self, thread: ThreadId, run: Option<RunId>) -> Result<ReplayReport, Error>;
}

/// The options of a run; its events are available only on the bus.
pub type Options = RunOptions<GraphState>;

/// How a run ended, without its state.
pub type Ended = RunOutcome<GraphState>;

#[derive(Clone)]
pub struct GraphParts {
    /// Keeps the threads; subgraphs need it.
    pub store: Arc<dyn Store>,
    /// The model of the settings; without an endpoint, its error names the missing setting.
    pub model: Arc<dyn ChatModel>,
    pub tools: Arc<dyn ToolHost>,
}

/// Makes a runner of a graph once store, model and tools are there.
type Open = dyn Fn(&GraphParts, Setup) -> Result<Arc<dyn Served>, Error> + Send + Sync;

#[must_use]
#[derive(Clone, Default)]
pub struct Graphs(BTreeMap<String, Arc<Open>>);

impl Graphs {
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds those of others; one of the same name is replaced.
    pub fn and(mut self, others: Self) -> Self {
        self.0.extend(others.0);
        self
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Opens a graph to read, change and replay its threads, without the services that it calls: a registered one, or the
    /// supervisor graph with an agent of one of these kinds under every name.
    ///
    /// # Errors
    /// [`Error::Graph`] when it cannot be built.
    pub fn offline(
        &self,
        settings: &Settings,
        kinds: &Arc<Kinds>,
        name: &str,
        store: &Arc<dyn Store>,
    ) -> Result<Option<Arc<dyn Served>>, Error> {
        let setup = Setup {
            store: Arc::clone(store),
            lease: Duration::from_secs_f64(settings.store.lease_sec),
            most: settings.limits.max_state_bytes,
            spans: None,
            exports: false,
        };
        if name == GRAPH {
            let star = Star::offline(Arc::clone(kinds), star_options(settings, kinds, store)?)?;
            return Ok(Some(Arc::new(self::star(setup.runner(star.graph)))));
        }
        let Some(make) = self.0.get(name) else { return Ok(None) };
        let (model, tools) = offline_parts();
        make(&GraphParts { store: Arc::clone(store), model, tools }, setup).map(Some)
    }

    /// Opens all of them.
    ///
    /// # Errors
    /// [`Error::Graph`] for an invalid graph, [`Error::GraphName`] for a name that exists.
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
    pub fn graph(&self, name: &str) -> Result<&Arc<dyn Served>, Error> {
        self.graphs.get(name).ok_or_else(|| Error::UnknownGraph(name.to_owned()))
    }

    pub fn own_graph(&self, name: &str) -> Option<&Arc<dyn Served>> {
        self.graphs.get(name).filter(|_| name != GRAPH)
    }

    /// Returns the graph that an assistant is of: the supervisor graph for a team, or a graph that is gone.
    pub fn graph_for(&self, name: &str) -> &Arc<dyn Served> {
        self.graph(name).unwrap_or_else(|_| self.supervisor())
    }

    /// Returns a hosted graph, through which the process of all of them is asked.
    pub fn hosted_graph(&self) -> Option<&Arc<dyn Served>> {
        self.graphs().find(|graph| graph.about().is_hosted)
    }

    pub fn graphs(&self) -> impl Iterator<Item = &Arc<dyn Served>> {
        let own = self.graphs.values().filter(|graph| graph.about().name != GRAPH);
        self.graphs.get(GRAPH).into_iter().chain(own)
    }

    pub fn graph_names(&self) -> Vec<String> {
        self.graphs().map(|graph| graph.about().name.clone()).collect()
    }

    /// Returns the graph of a thread.
    ///
    /// # Errors
    /// [`Error::UnknownGraph`], and [`Error::Store`] for an unknown thread.
    pub async fn graph_of(&self, thread: ThreadId) -> Result<&Arc<dyn Served>, Error> {
        self.graph(&self.store().info(thread).await?.graph)
    }

    /// Returns the graph of a thread to replay it, as [`Graphs::offline`] opens the supervisor graph.
    pub async fn graph_to_replay(&self, thread: ThreadId) -> Result<Arc<dyn Served>, Error> {
        let name = self.store().info(thread).await?.graph;
        if let Some(own) = self.own_graph(&name) {
            return Ok(Arc::clone(own));
        }
        let kinds = &self.plugins.kinds;
        let graph = Graphs::new().offline(self.settings(), kinds, &name, self.store())?;
        graph.ok_or(Error::UnknownGraph(name))
    }

    /// Draws the graph that an assistant is of: the supervisor graph with the agents that there are now, or a team.
    ///
    /// # Errors
    /// [`Error::NoTeam`].
    pub async fn drawing(&self, tenant: &str, graph: &str) -> Result<Drawing, Error> {
        if let Some(own) = self.own_graph(graph) {
            return Ok(own.drawing());
        }
        let agents = match graph.strip_prefix(TEAM_PREFIX) {
            Some(name) => {
                let design = find_team(&self.team_store(tenant)?, name).await?.team.design;
                design.agents.into_iter().map(|agent| agent.name).collect()
            }
            None => self.agents().list().into_iter().map(|agent| agent.name).collect(),
        };
        Ok(star::drawing(agents))
    }

    /// Returns the graph of a thread that is about to run; the supervisor graph, once it has its tenant's teams.
    pub(crate) async fn graph_to_run(
        &self,
        graph: &str,
        tenant: &str,
    ) -> Result<&Arc<dyn Served>, Error> {
        if graph == GRAPH {
            self.load_teams(tenant).await;
        }
        self.graph(graph)
    }
}
