//! A small state, nodes that count what they do, and a way to crash a run in the middle.

use std::future::Future;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures::FutureExt;
use perihelion_engine::checkpoint::{Claim, NewThread, Store};
use perihelion_engine::failpoint::{self, Point, Side};
use perihelion_engine::graph::{
    Context, EffectClass, EffectFailure, EffectRequest, Graph, GraphBuilder, Log, Node, NodeError,
    NodeOutput, Outcome, node_fn,
};
use perihelion_engine::ids::ThreadId;
use perihelion_engine::runner::{RunOptions, RunOutcome, RunResult, Runner};
use serde_json::{Value, json};
use tokio::sync::{Notify, Semaphore};

perihelion_engine::graph_state! {
    /// What the test graphs know.
    pub struct Story, update StoryUpdate, version 1 {
        lines: Log<String> => append,
        last: String => overwrite,
    }
}

pub type Result = core::result::Result<NodeOutput<Story>, NodeError>;

pub fn say(text: impl Into<String>) -> NodeOutput<Story> {
    let text = text.into();
    NodeOutput::update(StoryUpdate::new().lines(vec![text.clone()]).last(text))
}

pub fn input() -> StoryUpdate {
    StoryUpdate::new().lines(vec!["input".to_owned()])
}

pub fn lines(state: &Story) -> Vec<&str> {
    state.lines.iter().map(String::as_str).collect()
}

/// Everything that happens outside a node, counted.
#[derive(Clone, Default)]
pub struct World {
    seen: Arc<Mutex<Vec<String>>>,
}

impl World {
    pub fn note(&self, what: impl Into<String>) {
        self.seen.lock().unwrap().push(what.into());
    }

    /// Returns what happened so far, in order.
    pub fn seen(&self) -> Vec<String> {
        self.seen.lock().unwrap().clone()
    }

    pub fn count(&self, what: &str) -> usize {
        self.seen().iter().filter(|seen| *seen == what).count()
    }

    /// Makes a node that notes that it ran and says its name.
    pub fn speaker(&self, name: &'static str) -> Arc<dyn Node<Story>> {
        let world = self.clone();
        node_fn(move |_| {
            let world = world.clone();
            async move {
                world.note(name);
                Ok(say(name))
            }
        })
    }

    /// Asks a model, as it were: answers with how often it was asked before.
    pub async fn ask_model(
        &self,
        ctx: &Context<Story>,
        what: &str,
    ) -> std::result::Result<Outcome, NodeError> {
        let request = request(EffectClass::Inquiry, "model", what);
        let world = self.clone();
        let what = what.to_owned();
        ctx.effect(
            request,
            Box::new(move |_| {
                let answer = format!("{what} #{}", world.count(&what));
                world.note(what.clone());
                async move { Ok(json!(answer)) }.boxed()
            }),
        )
        .await
    }

    /// Calls a tool that answers at once; notes the call with its idempotency key.
    pub async fn call_tool(
        &self,
        ctx: &Context<Story>,
        repeatable: bool,
        mut reply: impl FnMut() -> std::result::Result<Value, EffectFailure> + Send,
    ) -> std::result::Result<Outcome, NodeError> {
        let request = request(EffectClass::Action { repeatable }, "files.write", "a.txt");
        let world = self.clone();
        ctx.effect(
            request,
            Box::new(move |key| {
                world.note(format!("call {key}"));
                let reply = reply();
                async move { reply }.boxed()
            }),
        )
        .await
    }
}

pub fn request(class: EffectClass, name: &str, what: &str) -> EffectRequest {
    EffectRequest { class, name: name.to_owned(), request: json!({ "what": what }) }
}

/// A place in a node where a test can hold it.
#[derive(Clone)]
pub struct Gate {
    reached: Arc<Notify>,
    open: Arc<Semaphore>,
}

impl Gate {
    pub fn closed() -> Self {
        Self { reached: Arc::new(Notify::new()), open: Arc::new(Semaphore::new(0)) }
    }

    /// Says that it was reached, and waits while it is closed.
    pub async fn pass(&self) {
        self.reached.notify_one();
        self.open.acquire().await.unwrap().forget();
    }

    pub async fn reached(&self) {
        self.reached.notified().await;
    }

    /// Opens it for good.
    pub fn open(&self) {
        self.open.add_permits(1000);
    }
}

/// Runs until the gate is reached, and drops the run there, as the end of a process would.
pub async fn crash_at<T>(gate: &Gate, run: impl Future<Output = T>) {
    tokio::select! {
        _ = run => panic!("the run ended before it could crash"),
        () = gate.reached() => {}
    }
}

pub fn graph(build: impl FnOnce(GraphBuilder<Story>) -> GraphBuilder<Story>) -> Arc<Graph<Story>> {
    build(GraphBuilder::new("story")).build().unwrap()
}

pub fn runner(graph: &Arc<Graph<Story>>, store: &Arc<dyn Store>) -> Runner<Story> {
    Runner::new(Arc::clone(graph), Arc::clone(store))
}

impl World {
    /// Makes a thread.
    pub async fn thread(&self, runner: &Runner<Story>) -> ThreadId {
        let thread = ThreadId::new();
        runner.create(thread, None).await.unwrap();
        thread
    }
}

pub async fn start(runner: &Runner<Story>, thread: ThreadId) -> RunOutcome<Story> {
    runner.start(thread, input(), RunOptions::default()).await.unwrap()
}

pub async fn resume(runner: &Runner<Story>, thread: ThreadId) -> RunOutcome<Story> {
    runner.resume(thread, RunOptions::default()).await.unwrap()
}

pub fn is_done(outcome: &RunOutcome<Story>) -> bool {
    outcome.result == RunResult::Done
}

pub fn interrupts(outcome: &RunOutcome<Story>) -> &[perihelion_engine::graph::Interrupt] {
    match &outcome.result {
        RunResult::Interrupted(interrupts) => interrupts,
        other => panic!("the run should wait for a person: {other:?}"),
    }
}

/// Has another process make a thread and claim it when this test is about to make it.
pub fn outrun(url: &str, new: NewThread) {
    let me = std::thread::current().id();
    let is_made = Mutex::new(false);
    let url = url.to_owned();
    at_points(move |point, side| {
        let is_due =
            (std::thread::current().id(), point, side) == (me, Point::ThreadCreate, Side::Before);
        if !is_due || std::mem::replace(&mut *is_made.lock().unwrap(), true) {
            return;
        }
        let url = url.clone();
        let new = new.clone();
        let other = std::thread::spawn(move || {
            tokio::runtime::Runtime::new().unwrap().block_on(async {
                let store = perihelion_engine::checkpoint::open(&url).await.unwrap();
                let thread = store.create(new).await.unwrap().id;
                let claim = Claim::new(thread, "elsewhere/boot/1/1", Duration::from_secs(60));
                store.claim(claim).await.unwrap();
                store.close().await;
            });
        });
        other.join().unwrap();
    });
}

type Reached = Arc<dyn Fn(Point, Side) + Send + Sync>;

/// Calls a function at every point that any thread of this process reaches.
pub fn at_points(reached: impl Fn(Point, Side) + Send + Sync + 'static) {
    static ALL: Mutex<Vec<Reached>> = Mutex::new(Vec::new());
    ALL.lock().unwrap().push(Arc::new(reached));
    // Armed by the first call. A function may wait, and must not keep others from the list meanwhile.
    failpoint::arm(|point, side| {
        let all = ALL.lock().unwrap().clone();
        all.iter().for_each(|reached| reached(point, side));
    });
}
