//! A super-step costs one round trip to the database, and a run a fixed number beside its steps.
#![expect(clippy::unwrap_used, reason = "a test ends at what it did not expect")]

use std::sync::Arc;

use perihelion_database::round_trips;
use perihelion_engine::checkpoint::{PostgresStore, SqliteStore, Store};
use perihelion_engine::graph::{
    Context, END, GraphBuilder, NodeError, NodeOutput, Target, node_fn,
};
use perihelion_engine::ids::ThreadId;
use perihelion_engine::runner::{RunOptions, Runner};
use perihelion_test_database::TestDatabase;

perihelion_engine::graph_state! {
    pub struct Count, update CountUpdate, version 1 {
        left: u64 => overwrite,
    }
}

async fn down(ctx: Context<Count>) -> Result<NodeOutput<Count>, NodeError> {
    let left = ctx.state().left.saturating_sub(1);
    let next = Target::node(if left == 0 { END } else { "down" });
    Ok(NodeOutput::goto(CountUpdate::new().left(left), [next]))
}

/// Returns the round trips of a run of so many super-steps on a new thread.
async fn taken(store: &Arc<dyn Store>, steps: u64) -> u64 {
    let graph = GraphBuilder::new("count").node("down", node_fn(down)).entry("down");
    let runner = Runner::new(graph.build().unwrap(), Arc::clone(store));
    let thread = ThreadId::new();
    runner.create(thread, None).await.unwrap();
    let before = round_trips();
    let input = CountUpdate::new().left(steps);
    let ended = runner.start(thread, input, RunOptions::default()).await.unwrap();
    assert_eq!((ended.steps, ended.state.left), (steps, 0));
    round_trips() - before
}

/// Compares with the round trips that a run takes beside its steps.
async fn each_step_takes_one(store: Arc<dyn Store>, beside: u64) {
    taken(&store, 3).await;
    for steps in [1, 10, 40] {
        assert_eq!(taken(&store, steps).await, steps + beside, "{steps} steps");
    }
    store.close().await;
}

/// Beside the steps: the thread, a claim that begins the run, the input, and the end.
#[tokio::test]
async fn a_super_step_on_sqlite_takes_one_round_trip() {
    let file = std::env::temp_dir().join(format!("round-trips-{}.db", uuid::Uuid::new_v4()));
    let store = SqliteStore::open(file.to_str().unwrap()).await.unwrap();
    each_step_takes_one(Arc::new(store), 4).await;
    std::fs::remove_file(file).unwrap();
}

/// Beside the steps: the thread, whose row counts for itself, the test of a connection, a claim that begins the run, the input,
/// and the end.
#[tokio::test]
async fn a_super_step_on_postgres_takes_one_round_trip() {
    let Some(database) = TestDatabase::make().await else { return };
    let store = PostgresStore::open(&database.url).await.unwrap();
    each_step_takes_one(Arc::new(store), 6).await;
}
