//! The star itself: state, nodes, routes.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use futures::future::BoxFuture;
use perihelion::clock;
use perihelion::graph::{
    Context, Dict, Graph, GraphBuilder, Log, Node, NodeError, NodeOutput, Target, node_fn,
};
use perihelion::ids::ThreadId;
use serde::{Deserialize, Serialize};

use crate::texts::{Stream, Texts};

/// What somebody said.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Message {
    pub id: String,
    pub role: String,
    pub name: String,
    pub content: String,
}

/// What is to be done.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Assignment {
    pub id: String,
    pub status: String,
    pub description: String,
}

/// What an agent found.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Finding {
    pub id: String,
    pub agent: String,
    pub content: String,
}

perihelion::graph_state! {
    pub struct Star, update StarUpdate, version 1 {
        input_request: String => overwrite,
        messages: Log<Message> => append,
        tasks: Log<Assignment> => append,
        results: Log<Finding> => append,
        plan: String => overwrite,
        global_state: Dict<String> => merge,
        citations: Log<String> => append,
        next_step: String => overwrite,
    }
}

/// Runs inside the supervisor before its entry is noted; for work that must share the run's connection.
pub type Aside = Arc<dyn Fn(usize) -> BoxFuture<'static, Result<(), NodeError>> + Send + Sync>;

/// What the nodes share.
pub struct Workload {
    pub texts: Texts,
    pub rounds: usize,
    pub agents: usize,
    pub gs_keys: usize,
    /// Node entries by thread; threads that are not listed are not measured.
    pub entries: HashMap<ThreadId, Mutex<Vec<Instant>>>,
    /// Called with the number of results so far.
    pub aside: Option<Aside>,
}

impl Workload {
    /// Returns the input of a thread.
    pub fn input(&self, thread: &str) -> StarUpdate {
        StarUpdate::new()
            .input_request(format!("{thread} {}", self.texts.text(Stream::Input, 0)))
            .messages(Vec::new())
            .tasks(Vec::new())
            .results(Vec::new())
            .plan(String::new())
            .global_state(BTreeMap::new())
            .citations(Vec::new())
            .next_step(String::new())
    }

    /// Returns a thread's node entries.
    pub fn entries_of(&self, thread: ThreadId) -> Vec<Instant> {
        self.entries
            .get(&thread)
            .map(|entries| entries.lock().unwrap_or_else(PoisonError::into_inner).clone())
            .unwrap_or_default()
    }

    fn enter(&self, ctx: &Context<Star>) {
        if let Some(entries) = self.entries.get(&ctx.place().thread) {
            entries.lock().unwrap_or_else(PoisonError::into_inner).push(clock::monotonic());
        }
    }

    fn preprocess(&self) -> StarUpdate {
        let task = Assignment {
            id: "t-0".into(),
            status: "open".into(),
            description: self.texts.text(Stream::Task, 0),
        };
        StarUpdate::new()
            .tasks(vec![task])
            .plan(self.texts.text(Stream::Plan, 0))
            .next_step("supervisor".into())
    }

    fn supervisor(&self, k: usize) -> StarUpdate {
        let next = if k < self.rounds { format!("agent_{}", k % self.agents) } else { "qa".into() };
        let words = message(format!("s-{k}"), "supervisor", self.texts.text(Stream::Supervisor, k));
        StarUpdate::new()
            .messages(vec![words])
            .plan(self.texts.text(Stream::Plan, k))
            .next_step(next)
    }

    fn agent(&self, name: &str, k: usize) -> StarUpdate {
        let key = if self.gs_keys == 0 { k } else { k % self.gs_keys };
        let found = Finding {
            id: format!("r-{k}"),
            agent: name.to_owned(),
            content: self.texts.text(Stream::Result, k),
        };
        StarUpdate::new()
            .messages(vec![message(format!("a-{k}"), name, self.texts.text(Stream::Message, k))])
            .results(vec![found])
            .global_state(BTreeMap::from([(
                format!("key_{key}"),
                self.texts.text(Stream::Entry, k),
            )]))
    }

    fn answer(&self) -> StarUpdate {
        StarUpdate::new()
            .messages(vec![message("qa-0".into(), "qa", self.texts.text(Stream::Answer, 0))])
            .next_step("end".into())
    }
}

fn message(id: String, name: &str, content: String) -> Message {
    Message { id, role: "assistant".into(), name: name.to_owned(), content }
}

/// Makes a node that notes its entry and writes at once.
fn plain(
    workload: &Arc<Workload>,
    write: impl Fn(&Workload, &Star) -> StarUpdate + Send + Sync + Clone + 'static,
) -> Arc<dyn Node<Star>> {
    let workload = Arc::clone(workload);
    node_fn(move |ctx: Context<Star>| {
        let workload = Arc::clone(&workload);
        let write = write.clone();
        async move {
            workload.enter(&ctx);
            Ok(NodeOutput::update(write(&workload, ctx.state())))
        }
    })
}

/// Makes the supervisor, which may have something to do on the side.
fn supervisor(workload: &Arc<Workload>) -> Arc<dyn Node<Star>> {
    let workload = Arc::clone(workload);
    node_fn(move |ctx: Context<Star>| {
        let workload = Arc::clone(&workload);
        async move {
            let k = ctx.state().results.len();
            if let Some(aside) = &workload.aside {
                aside(k).await?;
            }
            workload.enter(&ctx);
            Ok(NodeOutput::update(workload.supervisor(k)))
        }
    })
}

/// Builds the graph.
pub fn build(workload: &Arc<Workload>) -> anyhow::Result<Arc<Graph<Star>>> {
    let mut builder = GraphBuilder::new("star")
        .node("preprocess", plain(workload, |work, _| work.preprocess()))
        .node("supervisor", supervisor(workload))
        .node("qa", plain(workload, |work, _| work.answer()))
        .entry("preprocess")
        .edge("preprocess", "supervisor")
        .route("supervisor", |state: &Star| vec![Target::node(state.next_step.as_str())]);
    for number in 0..workload.agents {
        let name = format!("agent_{number}");
        let own = name.clone();
        let node = plain(workload, move |work, state| work.agent(&own, state.results.len()));
        builder = builder.node(name.as_str(), node).edge(&name, "supervisor");
    }
    Ok(builder.build()?)
}
