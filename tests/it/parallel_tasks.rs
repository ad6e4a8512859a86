//! Parallel tasks that share a store with a single writing connection.

use std::sync::Arc;
use std::time::Duration;

use perihelion::checkpoint;
use perihelion::graph::{GraphBuilder, Log, NodeOutput, node_fn};
use perihelion::ids::ThreadId;
use perihelion::runner::{RunOptions, RunResult, Runner};

perihelion::graph_state! {
    pub struct Drawn, update DrawnUpdate, version 1 {
        numbers: Log<u64> => append,
    }
}

/// Tasks of one step; each draws one number more than the one before, so that they end one by one.
const TASKS: u32 = 8;

/// A task that ends is kept at once. The others continue meanwhile, also the one that holds, or is next to
/// get, the connection that this waits for.
#[tokio::test]
async fn a_finished_task_is_stored_while_other_tasks_of_its_step_record_effects() {
    let directory = tempfile::tempdir().unwrap();
    let url = format!("sqlite:{}", directory.path().join("p.db").display());
    let store = checkpoint::open(&url).await.unwrap();
    let mut graph = GraphBuilder::<Drawn>::new("parallel");
    for task in 0..TASKS {
        let node = node_fn(move |ctx| async move {
            let mut numbers = Vec::new();
            for _ in 0..=task {
                numbers.push(ctx.random().await?);
            }
            Ok(NodeOutput::update(DrawnUpdate::new().numbers(numbers)))
        });
        let name = format!("task_{task}");
        graph = graph.node(&name, node).entry(&name);
    }
    let runner = Runner::new(graph.build().unwrap(), Arc::clone(&store));
    for _ in 0..5 {
        let thread = ThreadId::new();
        runner.create(thread, None).await.unwrap();
        let run = runner.start(thread, DrawnUpdate::new(), RunOptions::default());
        // Far more than it takes; without it a deadlock would hold the whole suite up.
        let outcome = tokio::time::timeout(Duration::from_secs(60), run).await.unwrap().unwrap();
        assert_eq!(outcome.result, RunResult::Done);
        assert_eq!(outcome.state.numbers.len() as u32, TASKS * (TASKS + 1) / 2);
    }
    store.close().await;
}
