//! A hosted graph for the services: reads use the engine's state, and the child makes changes.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use perihelion_engine::checkpoint::{StepRow, Store, ThreadInfo};
use perihelion_engine::graph::{Edge, Nodes, Pauses, Request};
use perihelion_engine::ids::{RunId, ThreadId};
use perihelion_engine::runner::{Durability, ReplayReport, RunOptions, RunOutcome};
use perihelion_runtime::{AboutGraph, Drawing, Edit, Error, FoldedStep, Served, ThreadState};
use perihelion_star::GraphState;
use serde_json::{Value, json};

use crate::frames::Frame;
use crate::host::Host;
use crate::node::{NODE, PAUSED, Run, line_of};
use crate::state::{Changes, Mirror, Pending};

type Options = RunOptions<GraphState>;
type Ended = RunOutcome<GraphState>;

/// The time limit for answers besides runs.
const ANSWERS: Duration = Duration::from_secs(30);

/// A graph with its host.
pub struct HostedGraph {
    pub inner: Arc<dyn Served>,
    pub host: Arc<Host>,
    pub name: String,
    pub store: Arc<dyn Store>,
}

impl HostedGraph {
    /// Returns the options for the engine, with the run for the node.
    fn begin(&self, options: Options) -> Options {
        let at_start = options.pauses.at_start;
        let pauses = Pauses { before: Nodes::from([PAUSED]), after: Nodes::default(), at_start };
        // The child begins no super-step before the last one is committed.
        let request: Option<Request> = Some(Arc::new(Run::new(self.request(&options))));
        let mut options = Options { pauses, durability: Durability::Sync, request, ..options };
        // LangGraph counts its own steps.
        options.limits.max_steps = 1 << 40;
        options
    }

    /// Returns the fields of a request that the child reads.
    fn request(&self, options: &Options) -> Option<Value> {
        let given = options.request.as_ref()?.downcast_ref::<Value>()?;
        let body = &given["body"];
        Some(json!({
            "graph": self.name,
            "run_id": given["run_id"],
            "assistant_id": given["assistant_id"],
            "metadata": given["metadata"],
            "user": given["user"],
            "config": body["config"],
            "context": body["context"],
            "modes": body["stream_mode"],
            "subgraphs": body["subgraphs"],
            "interrupt_before": body["interrupt_before"],
            "interrupt_after": body["interrupt_after"],
        }))
    }

    /// Writes an update in the child, and returns the resulting changes.
    async fn update(&self, info: &ThreadInfo, edit: &Edit) -> Result<Changes, Error> {
        let thread = info.id;
        let state = self.inner.state(thread, Some(edit.at.unwrap_or(info.head))).await?;
        let none = Mirror::default();
        let mirror = state.of::<Mirror>().unwrap_or(&none);
        let line = line_of(info, &format!("edit-{}", info.head + 1));
        let order = json!({
            "graph": self.name,
            "thread": thread,
            "tenant": info.tenant,
            "source": mirror.place.thread,
            "checkpoint": mirror.place.checkpoint,
            "line": line,
            "values": edit.update,
            "as_node": edit.as_node,
            "request": { "config": mirror.place.request["config"] },
        });
        match self.answer("update", order).await? {
            Frame::Step(step) => Ok(mirror.changes_to(step, thread.to_string(), line)),
            _ => Err(refused(crate::Error::OutOfTurn("another frame than a step"))),
        }
    }

    /// Asks the child, and waits for its answer.
    async fn answer(&self, op: &str, order: Value) -> Result<Frame, Error> {
        let answer = async { self.host.call(op, order).await?.next().await };
        let answer = tokio::time::timeout(ANSWERS, answer).await;
        answer.unwrap_or(Err(crate::Error::Gone)).map_err(refused)
    }
}

/// Converts an error of the child to one of a graph.
fn refused(error: crate::Error) -> Error {
    Error::Change(error.into())
}

#[async_trait]
impl Served for HostedGraph {
    fn about(&self) -> &Arc<AboutGraph> {
        self.host.graph(&self.name).map_or_else(|| self.inner.about(), |graph| graph.about)
    }

    fn drawing(&self) -> Drawing {
        let Some(graph) = self.host.graph(&self.name) else { return Drawing::default() };
        let list = |name: &str| graph.drawing[name].as_array().cloned().unwrap_or_default();
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let is_end = |id: &String| id == "__start__" || id == "__end__";
        let nodes = list("nodes");
        let nodes = nodes.iter().map(|node| text(&node["id"])).filter(|id| !is_end(id));
        let edges = list("edges");
        let (begin, edges): (Vec<_>, Vec<_>) =
            edges.iter().partition(|edge| edge["source"] == "__start__");
        let edge = |edge: &&Value| Edge {
            from: text(&edge["source"]),
            to: text(&edge["target"]),
            is_conditional: edge["conditional"] == true,
        };
        Drawing {
            entry: begin.iter().map(|edge| text(&edge["target"])).collect(),
            nodes: nodes.collect(),
            edges: edges.iter().map(edge).collect(),
        }
    }

    fn empty(&self) -> ThreadState {
        self.inner.empty()
    }

    fn check_input(&self, _input: &Value) -> Result<(), Error> {
        Ok(())
    }

    fn check_update(&self, _update: &Value) -> Result<(), Error> {
        Ok(())
    }

    async fn state(&self, thread: ThreadId, at: Option<u64>) -> Result<ThreadState, Error> {
        self.inner.state(thread, at).await
    }

    async fn fold(
        &self,
        thread: ThreadId,
        before: &ThreadState,
        row: &StepRow,
    ) -> Result<FoldedStep, Error> {
        self.inner.fold(thread, before, row).await
    }

    async fn create(
        &self,
        tenant: &str,
        thread: ThreadId,
        title: Option<String>,
    ) -> Result<ThreadInfo, Error> {
        self.inner.create(tenant, thread, title).await
    }

    async fn edit(&self, thread: ThreadId, edit: Edit) -> Result<u64, Error> {
        let info = self.store.info(thread).await?;
        let changes = if let (None, Some(goto)) = (&edit.as_node, &edit.goto) {
            let command = json!({ "update": edit.update, "goto": goto });
            let state = self.inner.state(thread, edit.at).await?;
            let request = state.of::<Mirror>().map(|mirror| mirror.place.request.clone());
            let pending = (Pending::Command(command), request.unwrap_or_default());
            Changes { pending: Some(pending), ..Changes::default() }
        } else {
            self.update(&info, &edit).await?
        };
        let as_node = Some(NODE.to_owned());
        // The changes are those to the state at this head.
        let head = Some(info.head);
        let edit = Edit { update: json!(changes), as_node, goto: None, at: edit.at, head };
        self.inner.edit(thread, edit).await
    }

    async fn go_back(&self, thread: ThreadId, to: u64) -> Result<u64, Error> {
        self.inner.go_back(thread, to).await
    }

    async fn compact(&self, thread: ThreadId, keep: u64) -> Result<Option<u64>, Error> {
        self.inner.compact(thread, keep).await
    }

    async fn start(
        &self,
        thread: ThreadId,
        input: Value,
        options: Options,
    ) -> Result<Ended, Error> {
        let request = self.request(&options).unwrap_or_default();
        let changes =
            Changes { pending: Some((Pending::Input(input), request)), ..Changes::default() };
        self.inner.start(thread, json!(changes), self.begin(options)).await
    }

    async fn resume(&self, thread: ThreadId, options: Options) -> Result<Ended, Error> {
        self.inner.resume(thread, self.begin(options)).await
    }

    async fn wake(&self, thread: ThreadId, options: Options) -> Result<Option<Ended>, Error> {
        self.inner.wake(thread, self.begin(options)).await
    }

    async fn ask(&self, what: &str, mut order: Value) -> Result<Option<Value>, Error> {
        order["graph"] = json!(self.name);
        let thread = order["thread"].as_str().and_then(|thread| thread.parse().ok());
        if let Some(thread) = thread {
            let state = self.inner.state(thread, order["at"].as_u64()).await?;
            let place = state.of::<Mirror>().map(|mirror| &*mirror.place);
            order["source"] = json!(place.map(|place| &place.thread));
            order["checkpoint"] = json!(place.map(|place| &place.checkpoint));
            order["request"] = json!({ "config": place.map(|place| &place.request["config"]) });
        }
        match self.answer(what, order).await? {
            Frame::Answer { answer } => Ok(Some(answer)),
            _ => Err(refused(crate::Error::OutOfTurn("another frame than an answer"))),
        }
    }

    async fn replay(&self, thread: ThreadId, _run: Option<RunId>) -> Result<ReplayReport, Error> {
        Err(Error::NotReplayed { thread, graph: self.name.clone() })
    }
}
