//! A graph of a known state behind the interface that hides the state's type.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use serde_json::{Value, json};

use super::{About, Drawing, Edit, Ended, FoldedStep, Options, Served, ThreadState, Wrote};
use crate::Error;
use perihelion_engine::checkpoint::{
    StepRow, Store, ThreadInfo, ThreadStatus, forked_to, read_delta,
};
use perihelion_engine::graph::{BuildError, Graph, GraphBuilder, State, Written, node_fn};
use perihelion_engine::ids::{RunId, ThreadId};
use perihelion_engine::runner::{
    self, INPUT, ReplayReport, RunOptions, RunOutcome, Runner, Spans, compact,
};
use perihelion_star::{GRAPH, GraphState, GraphUpdate};

/// Makes an input the update that a run begins with, or says why it cannot be read.
type ReadInput<S> = dyn Fn(Value) -> Result<<S as State>::Update, String> + Send + Sync;

/// Returns the state after a step as people are shown it, where they see another one.
type Show<S> = fn(&S, &[Written<S>], u64) -> Option<S>;

/// What a graph does otherwise than any graph.
pub struct Hooks<S: State> {
    pub input: Option<Arc<ReadInput<S>>>,
    pub show: Option<Show<S>>,
}

impl<S: State> Default for Hooks<S> {
    fn default() -> Self {
        Self { input: None, show: None }
    }
}

impl<S: State> Clone for Hooks<S> {
    fn clone(&self) -> Self {
        Self { input: self.input.clone(), show: self.show }
    }
}

/// What every runner of a runtime is made with.
#[derive(Clone)]
pub struct Setup {
    pub store: Arc<dyn Store>,
    pub lease: Duration,
    /// Bytes of a state at most.
    pub most: usize,
    pub spans: Option<Arc<dyn Spans>>,
    pub exports: bool,
}

impl Setup {
    /// Makes the runner of a graph.
    pub fn runner<S: State>(self, graph: Arc<Graph<S>>) -> Runner<S> {
        let mut runner = Runner::new(graph, self.store);
        runner.lease = self.lease;
        runner.most_bytes = Some(self.most);
        runner.spans = self.spans;
        runner.exports_traces = self.exports;
        runner
    }
}

/// A graph with its runner.
pub struct Typed<S: State> {
    pub(super) runner: Runner<S>,
    about: Arc<About>,
    hooks: Hooks<S>,
}

/// Says what is known of the supervisor graph.
pub fn about_star() -> Arc<About> {
    let object = json!({ "type": "object" });
    Arc::new(About {
        name: GRAPH.to_owned(),
        description: None,
        input_schema: object.clone(),
        state_schema: object.clone(),
        output_schema: object,
        messages: Some("messages".to_owned()),
    })
}

/// Makes the supervisor graph one of the graphs.
pub fn star(runner: Runner<GraphState>) -> Typed<GraphState> {
    Typed::new(runner, about_star(), Hooks { show: Some(with_request), ..Hooks::default() })
}

/// Makes the supervisor graph without nodes and threads, for tests of what is read for it.
#[doc(hidden)]
pub fn supervisor_offline() -> Result<Arc<dyn Served>, BuildError> {
    let graph = GraphBuilder::new(GRAPH)
        .node(GRAPH, node_fn(async |_| Ok(GraphUpdate::new().into())))
        .entry(GRAPH)
        .build()?;
    let store = Arc::new(perihelion_engine::checkpoint::MemoryStore::new());
    Ok(Arc::new(star(Runner::new(graph, store))))
}

/// Adds the message that the next step takes in from an input.
fn with_request(
    state: &GraphState,
    written: &[Written<GraphState>],
    step: u64,
) -> Option<GraphState> {
    let is_input =
        |one: &Written<GraphState>| one.node == INPUT && one.update.input_request.is_some();
    written.iter().any(is_input).then(|| {
        let mut shown = state.clone();
        let request = state.next_request(step + 1);
        shown.apply(GraphUpdate::new().messages([request].into_iter().collect()));
        shown
    })
}

impl<S: State> Typed<S> {
    pub fn new(runner: Runner<S>, about: Arc<About>, hooks: Hooks<S>) -> Self {
        Self { runner, about, hooks }
    }

    fn shown(&self, state: Arc<S>) -> ThreadState {
        ThreadState::new(&self.about, state)
    }

    fn read_input(&self, input: Value) -> Result<S::Update, Error> {
        match &self.hooks.input {
            Some(read) => {
                read(input).map_err(|why| Error::Change(format!("the input does not fit: {why}")))
            }
            None => read_update::<S>(input),
        }
    }

    /// Gives a thread an input as if it had not been under way.
    async fn start_over(
        &self,
        thread: ThreadId,
        input: S::Update,
        mut options: RunOptions<S>,
    ) -> Result<RunOutcome<S>, runner::Error> {
        self.runner.update_state(thread, input, INPUT).await?;
        options.pauses.at_start = true;
        self.runner.resume(thread, options).await
    }
}

/// Reads the fields of an update.
pub(super) fn read_update<S: State>(given: Value) -> Result<S::Update, Error> {
    let given = if given.is_null() { json!({}) } else { given };
    serde_json::from_value(given).map_err(|error| Error::Change(error.to_string()))
}

/// Makes the options of a run of another state; its events are heard on the bus alone.
fn retyped<S: State>(options: Options) -> RunOptions<S> {
    RunOptions {
        durability: options.durability,
        limits: options.limits,
        deadline: options.deadline,
        wants: options.wants,
        events: None,
        publish: options.publish,
        pauses: options.pauses,
        cancel: options.cancel,
        hands_over: options.hands_over,
        withdrawn: options.withdrawn,
        max_crashes: options.max_crashes,
    }
}

fn ended<S: State>(outcome: RunOutcome<S>) -> Ended {
    let RunOutcome { thread, run, result, head, steps, .. } = outcome;
    RunOutcome { thread, run, result, state: Arc::default(), head, steps }
}

#[async_trait]
impl<S: State> Served for Typed<S> {
    fn about(&self) -> &Arc<About> {
        &self.about
    }

    fn drawing(&self) -> Drawing {
        let graph = self.runner.graph();
        let nodes = graph.node_names().map(str::to_owned).collect();
        Drawing { entry: graph.entry().to_vec(), nodes, edges: graph.edges() }
    }

    fn empty(&self) -> ThreadState {
        self.shown(Arc::new(S::default()))
    }

    fn check_input(&self, input: &Value) -> Result<(), Error> {
        self.read_input(input.clone()).map(|_| ())
    }

    fn check_update(&self, update: &Value) -> Result<(), Error> {
        read_update::<S>(update.clone()).map(|_| ())
    }

    async fn state(&self, thread: ThreadId, at: Option<u64>) -> Result<ThreadState, Error> {
        if at == Some(0) {
            return Ok(self.empty());
        }
        Ok(self.shown(self.runner.state(thread, at).await?.state))
    }

    async fn fold(
        &self,
        thread: ThreadId,
        before: &ThreadState,
        row: &StepRow,
    ) -> Result<FoldedStep, Error> {
        let written = read_delta::<S>(thread, row)?;
        let mut parent = row.seq.checked_sub(1).filter(|seq| *seq > 0);
        let mut state = match (forked_to(row, &written), before.of::<S>()) {
            (Some(to), _) => {
                parent = Some(to).filter(|to| *to > 0);
                self.state(thread, Some(to)).await?
            }
            (None, Some(_)) => before.clone(),
            (None, None) => self.state(thread, Some(row.seq.saturating_sub(1))).await?,
        };
        if !written.is_empty() {
            let mut merged = state.of::<S>().cloned().unwrap_or_default();
            written.iter().for_each(|one| merged.apply(one.update.clone()));
            state = self.shown(Arc::new(merged));
        }
        let show = self.hooks.show.zip(state.of::<S>());
        let changed = show.and_then(|(show, state)| show(state, &written, row.seq));
        let shown = changed.map_or_else(|| state.clone(), |changed| self.shown(Arc::new(changed)));
        let wrote = |one: Written<S>| Wrote::new(&self.about, one.node, one.update);
        let written = written.into_iter().map(wrote).collect();
        Ok(FoldedStep { shown, state, written, parent })
    }

    async fn create(
        &self,
        tenant: &str,
        thread: ThreadId,
        title: Option<String>,
    ) -> Result<ThreadInfo, Error> {
        Ok(self.runner.create_for(tenant, thread, title).await?)
    }

    async fn edit(&self, thread: ThreadId, edit: Edit<'_>) -> Result<u64, Error> {
        self.edited(thread, edit).await
    }

    async fn go_back(&self, thread: ThreadId, to: u64) -> Result<u64, Error> {
        Ok(self.runner.go_back(thread, to).await?.seq)
    }

    async fn compact(&self, thread: ThreadId, keep: u64) -> Result<Option<u64>, Error> {
        Ok(compact::<S>(self.runner.store().as_ref(), thread, keep).await?)
    }

    async fn start(
        &self,
        thread: ThreadId,
        input: Value,
        options: Options,
    ) -> Result<Ended, Error> {
        let input = self.read_input(input)?;
        let options = retyped(options);
        let info = self.runner.store().info(thread).await?;
        let outcome = if info.status == ThreadStatus::Interrupted {
            self.start_over(thread, input, options).await?
        } else {
            match self.runner.start(thread, input.clone(), options.clone()).await {
                Err(runner::Error::Unfinished { .. }) => {
                    self.start_over(thread, input, options).await?
                }
                other => other?,
            }
        };
        Ok(ended(outcome))
    }

    async fn resume(&self, thread: ThreadId, options: Options) -> Result<Ended, Error> {
        Ok(ended(self.runner.resume(thread, retyped(options)).await?))
    }

    async fn wake(&self, thread: ThreadId, options: Options) -> Result<Option<Ended>, Error> {
        Ok(self.runner.wake(thread, retyped(options)).await?.map(ended))
    }

    async fn replay(&self, thread: ThreadId, run: Option<RunId>) -> Result<ReplayReport, Error> {
        Ok(self.runner.replay(thread, run).await?)
    }
}
