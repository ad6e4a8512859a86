//! What the database itself takes of a commit, a claim, a worker's look for threads that wait, and lists of threads.

use std::sync::Arc;
use std::time::{Duration, Instant};

use perihelion::checkpoint::{Claim, PostgresStore, Store, WorkFilter};

use perihelion::graph::{Context, GraphBuilder, NodeOutput, Target, node_fn};
use perihelion::ids::ThreadId;
use perihelion::runner::Runner;
use perihelion::service::kept::{Kept, ThreadFilter, ThreadOrder};
use perihelion_database::Database;
use serde_json::json;

/// Super-steps of the measured thread.
const STEPS: u64 = 200;

perihelion::graph_state! {
    pub struct Count, update CountUpdate, version 1 {
        steps: u64 => overwrite,
        text: String => overwrite,
    }
}

/// Times that a list is asked for.
const LISTS: u64 = 50;

/// Returns what each of them took, in milliseconds, by name.
pub async fn measure(url: &str) -> Vec<(&'static str, Vec<f64>)> {
    let store: Arc<dyn Store> = Arc::new(PostgresStore::open(url).await.unwrap());
    let mut all = vec![
        ("commit, ms", commits(&store).await),
        ("claim, ms", claims(&store).await),
        ("look for work, ms", looks(&store).await),
        ("count by status, ms", counts(&store).await),
    ];
    store.close().await;
    let kept = Kept::new(Database::open(url).await.unwrap(), "default");
    for (name, filter) in filters() {
        all.push((name, lists(&kept, &filter).await));
    }
    kept.close().await;
    all
}

/// The lists that people look at: 20 threads each, with what is noted of them and their number.
fn filters() -> [(&'static str, ThreadFilter); 6] {
    let all = ThreadFilter { metadata: json!({}), limit: 20, ..ThreadFilter::default() };
    let waiting = ThreadFilter { statuses: vec!["interrupted".to_owned()], ..all.clone() };
    let of_user = ThreadFilter { metadata: json!({ "user": "u7" }), ..all.clone() };
    let of_assistant = ThreadFilter { metadata: json!({ "assistant_id": "swarm" }), ..all.clone() };
    let made = ThreadFilter { order: ThreadOrder::Created, ..all.clone() };
    let late = ThreadFilter { offset: 5_000, ..all.clone() };
    [
        ("list the newest, ms", all),
        ("list those that wait, ms", waiting),
        ("list a user's, ms", of_user),
        ("list an assistant's, ms", of_assistant),
        ("list by their beginning, ms", made),
        ("list after 5,000, ms", late),
    ]
}

async fn lists(kept: &Kept, filter: &ThreadFilter) -> Vec<f64> {
    let mut each = Vec::new();
    for _ in 0..LISTS {
        let began = Instant::now();
        kept.threads(filter).await.unwrap();
        each.push(began.elapsed().as_secs_f64() * 1e3);
    }
    each
}

async fn counts(store: &Arc<dyn Store>) -> Vec<f64> {
    let mut each = Vec::new();
    for _ in 0..LISTS {
        let began = Instant::now();
        store.count_threads().await.unwrap();
        each.push(began.elapsed().as_secs_f64() * 1e3);
    }
    each
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
        store.claim(Claim::new(thread, "measured", Duration::from_secs(15))).await.unwrap();
        each.push(began.elapsed().as_secs_f64() * 1e3);
        store.delete(thread).await.unwrap();
    }
    each
}

async fn idle(_: Context<Count>) -> Result<NodeOutput<Count>, perihelion::graph::NodeError> {
    Ok(NodeOutput::update(CountUpdate::new()))
}

async fn looks(store: &Arc<dyn Store>) -> Vec<f64> {
    let wanted = WorkFilter {
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
