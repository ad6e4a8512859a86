//! What the database itself takes of a commit, a claim, and a worker's look for threads that wait.

use std::sync::Arc;
use std::time::{Duration, Instant};

use perihelion::checkpoint::{PostgresStore, Store, Wanted};
use perihelion::graph::{Context, GraphBuilder, NodeOutput, Target, node_fn};
use perihelion::ids::ThreadId;
use perihelion::runner::Runner;

/// Super-steps of the measured thread.
const STEPS: u64 = 200;

perihelion::graph_state! {
    pub struct Count, update CountUpdate, version 1 {
        steps: u64 => overwrite,
        text: String => overwrite,
    }
}

/// Returns what each of them took, in milliseconds, by name.
pub async fn measure(url: &str) -> [(&'static str, Vec<f64>); 3] {
    let store: Arc<dyn Store> = Arc::new(PostgresStore::open(url).await.unwrap());
    let [commits, claims, looks] =
        [commits(&store).await, claims(&store).await, looks(&store).await];
    store.close().await;
    [("commit, ms", commits), ("claim, ms", claims), ("look for work, ms", looks)]
}

/// Runs a thread of steps of 300 bytes, and measures each from node to node.
async fn commits(store: &Arc<dyn Store>) -> Vec<f64> {
    let began = Arc::new(std::sync::Mutex::new(Vec::new()));
    let seen = Arc::clone(&began);
    let step = node_fn(move |ctx: Context<Count>| {
        seen.lock().unwrap().push(Instant::now());
        let steps = ctx.state().steps + 1;
        let update = CountUpdate::new().steps(steps).text(format!("{steps:0300}"));
        async move { Ok(NodeOutput::update(update)) }
    });
    let again =
        |state: &Count| if state.steps < STEPS { vec![Target::node("step")] } else { Vec::new() };
    let graph = GraphBuilder::new("measured").node("step", step).entry("step").route("step", again);
    let runner = Runner::new(graph.build().unwrap(), Arc::clone(store));
    runner.run_new(CountUpdate::new()).await.unwrap();
    let began = began.lock().unwrap();
    began.windows(2).map(|pair| (pair[1] - pair[0]).as_secs_f64() * 1e3).collect()
}

async fn claims(store: &Arc<dyn Store>) -> Vec<f64> {
    let graph = GraphBuilder::new("measured").node("step", node_fn(idle)).entry("step");
    let runner = Runner::<Count>::new(graph.build().unwrap(), Arc::clone(store));
    let mut each = Vec::new();
    for _ in 0..STEPS {
        let thread = ThreadId::new();
        runner.create(thread, None).await.unwrap();
        let began = Instant::now();
        store.claim(thread, "measured", Duration::from_secs(15), false).await.unwrap();
        each.push(began.elapsed().as_secs_f64() * 1e3);
        store.delete(thread).await.unwrap();
    }
    each
}

async fn idle(_: Context<Count>) -> Result<NodeOutput<Count>, perihelion::graph::NodeError> {
    Ok(NodeOutput::update(CountUpdate::new()))
}

async fn looks(store: &Arc<dyn Store>) -> Vec<f64> {
    let wanted = Wanted {
        graph: "swarm".to_owned(),
        except_tenant: None,
        machine: "nowhere".to_owned(),
        queued_for: Duration::ZERO,
        limit: 100,
        skip: 0,
    };
    let mut each = Vec::new();
    for _ in 0..STEPS {
        let began = Instant::now();
        store.waiting(&wanted).await.unwrap();
        each.push(began.elapsed().as_secs_f64() * 1e3);
    }
    each
}
