//! One program in two versions: its state, its graph, and what it does to the outside.

use std::sync::{Arc, Mutex};

use futures::FutureExt;
use perihelion::checkpoint::Store;
use perihelion::graph::{
    Context, EffectClass, EffectFailure, EffectRequest, Graph, GraphBuilder, Node, NodeError,
    NodeOutput, Outcome, State, node_fn,
};
use perihelion::runner::Runner;
use serde_json::{Value, json};
use tokio::sync::Semaphore;

/// The state as it was.
pub mod old {
    perihelion::graph_state! {
        pub struct Ledger, update LedgerUpdate, version 1 {
            lines: Vec<String> => append,
            count: i64 => overwrite,
            gone: Option<String> => overwrite,
        }
    }
}

/// The state as it is: `count` became the text `total`, `gone` went, `reviewed` is new and has a default.
pub mod new {
    perihelion::graph_state! {
        pub struct Ledger, update LedgerUpdate, version 2, upcast super::upcast {
            lines: Vec<String> => append,
            total: String => overwrite,
            reviewed: bool => overwrite,
        }
    }
}

fn upcast(_: u32, mut stored: Value) -> Result<Value, String> {
    let fields = stored.as_object_mut().ok_or("no object")?;
    fields.remove("gone");
    if let Some(count) = fields.remove("count") {
        fields.insert("total".into(), Value::String(format!("{count} in all")));
    }
    Ok(stored)
}

/// What happened outside, and where a call hangs.
#[derive(Clone)]
pub struct Outside {
    seen: Arc<Mutex<Vec<String>>>,
    open: Arc<Semaphore>,
}

impl Outside {
    /// With `replies`, calls are answered; without, the one action hangs as if the process died during it.
    pub fn new(replies: bool) -> Self {
        Self {
            seen: Arc::default(),
            open: Arc::new(Semaphore::new(if replies { 1000 } else { 0 })),
        }
    }

    pub fn seen(&self) -> Vec<String> {
        let mut seen = self.seen.lock().unwrap().clone();
        seen.sort();
        seen
    }

    fn note(&self, what: &str) {
        self.seen.lock().unwrap().push(what.to_owned());
    }
}

/// What the versions write differently.
pub trait Version: State {
    fn write(line: String) -> Self::Update;
    /// What the newest node writes, where there is one.
    fn review() -> Option<Self::Update>;
}

impl Version for old::Ledger {
    fn write(line: String) -> old::LedgerUpdate {
        let count = line.len() as i64;
        old::LedgerUpdate::new().lines(vec![line]).count(count).gone(Some("soon".to_owned()))
    }

    fn review() -> Option<old::LedgerUpdate> {
        None
    }
}

impl Version for new::Ledger {
    fn write(line: String) -> new::LedgerUpdate {
        new::LedgerUpdate::new().lines(vec![line])
    }

    fn review() -> Option<new::LedgerUpdate> {
        Some(new::LedgerUpdate::new().lines(vec!["reviewed".to_owned()]).reviewed(true))
    }
}

/// What a node does besides writing its name.
#[derive(Clone, Copy)]
enum Part {
    Nothing,
    Asks,
    Calls,
}

fn node<S: Version>(outside: &Outside, name: &'static str, part: Part) -> Arc<dyn Node<S>> {
    let outside = outside.clone();
    node_fn(move |ctx: Context<S>| {
        let outside = outside.clone();
        async move {
            outside.note(name);
            let more = match part {
                Part::Nothing => String::new(),
                Part::Asks => ctx.interrupt("clarification", "which year?").await?.to_string(),
                Part::Calls => outside.call(&ctx).await?,
            };
            Ok(NodeOutput::update(S::write(format!("{name} {more}").trim().to_owned())))
        }
    })
}

impl Outside {
    /// Asks a model, then posts what it said.
    async fn call<S: Version>(&self, ctx: &Context<S>) -> Result<String, NodeError> {
        let request = |class, name: &str| EffectRequest {
            class,
            name: name.to_owned(),
            request: json!({ "what": "rates" }),
        };
        let inquiry = request(EffectClass::Inquiry, "model");
        let answer = move |_: String| {
            self.note("inquiry");
            async { Ok::<_, EffectFailure>(json!("five")) }.boxed()
        };
        let rates = ctx.effect(inquiry, Box::new(answer)).await?;
        let action = request(EffectClass::Action { repeatable: false }, "ledger.post");
        let post = move |_: String| {
            self.note("action");
            let open = Arc::clone(&self.open);
            async move {
                let _ = open.acquire().await;
                Ok::<_, EffectFailure>(json!("posted"))
            }
            .boxed()
        };
        let posted = ctx.effect(action, Box::new(post)).await?;
        let error_text = |outcome| match outcome {
            Outcome::Value(value) => value.to_string(),
            Outcome::Failed(message) => message,
        };
        Ok(format!("{} {}", error_text(rates), error_text(posted)))
    }
}

/// The graph: a first node, then three side by side, then, in the newer version, a review of all three.
///
/// `without` is a node that this program does not have.
pub fn graph<S: Version>(outside: &Outside, without: Option<&str>) -> Arc<Graph<S>> {
    let parts = [("left", Part::Nothing), ("asker", Part::Asks), ("caller", Part::Calls)];
    let there: Vec<_> = parts.into_iter().filter(|(name, _)| Some(*name) != without).collect();
    let mut graph = GraphBuilder::new("ledger")
        .node("first", node(outside, "first", Part::Nothing))
        .entry("first");
    for (name, part) in &there {
        graph = graph.node(*name, node(outside, name, *part)).edge("first", *name);
    }
    if S::review().is_some() {
        let outside = outside.clone();
        let review = node_fn(move |_| {
            outside.note("review");
            let update = S::review().unwrap_or_default();
            async move { Ok(NodeOutput::update(update)) }
        });
        graph = graph.node("review", review).join(there.iter().map(|(name, _)| *name), "review");
    }
    graph.build().unwrap()
}

pub fn runner<S: Version>(
    store: &Arc<dyn Store>,
    outside: &Outside,
    without: Option<&str>,
) -> Runner<S> {
    Runner::new(graph(outside, without), Arc::clone(store))
}
