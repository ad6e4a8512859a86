//! A submission is accepted or refused, and never half there, wherever its database goes away.
#![expect(clippy::unwrap_used, reason = "a test ends at what it did not expect")]

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use perihelion_engine::checkpoint::{SqliteStore, Store, ThreadStatus};
use perihelion_engine::failpoint::{self, Point, Side};
use perihelion_engine::graph::{Context, END, GraphBuilder, NodeError, NodeOutput, node_fn};
use perihelion_engine::ids::ThreadId;
use perihelion_engine::runner::{RunOptions, RunResult, Runner};

perihelion_engine::graph_state! {
    pub struct Order, update OrderUpdate, version 1 {
        question: String => overwrite,
        answer: Option<String> => overwrite,
    }
}

async fn answer(ctx: Context<Order>) -> Result<NodeOutput<Order>, NodeError> {
    Ok(OrderUpdate::new().answer(Some(ctx.state().question.clone())).into())
}

fn runner(store: Arc<dyn Store>) -> Runner<Order> {
    let graph = GraphBuilder::new("order").node("answer", node_fn(answer)).entry("answer");
    Runner::new(graph.edge("answer", END).build().unwrap(), store)
}

/// A directory that is removed, and the file in it.
static LEAVES: Mutex<Option<(Point, Side, PathBuf)>> = Mutex::new(None);

fn reached(point: Point, side: Side) {
    let mut leaves = LEAVES.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some((.., file)) = leaves.take_if(|(at, of, _)| *at == point && *of == side) {
        std::fs::rename(&file, file.with_extension("away")).unwrap();
    }
}

/// 37 G3
#[tokio::test]
async fn a_submission_during_a_database_outage_is_stored_or_refused_and_stored_ones_run() {
    assert!(failpoint::arm(reached));
    let directory = std::env::temp_dir().join(format!("submissions-{}", uuid::Uuid::new_v4()));
    std::fs::create_dir(&directory).unwrap();
    let points = [Point::Claim, Point::RunBegin, Point::InputCommit, Point::RunEnd];
    for point in points {
        for side in [Side::Before, Side::After] {
            let file = directory.join(format!("{}.db", point.name(side)));
            let open = async || {
                Arc::new(SqliteStore::open(file.to_str().unwrap()).await.unwrap()) as Arc<dyn Store>
            };
            let store = open().await;
            let thread = ThreadId::new();
            let client = runner(Arc::clone(&store));
            client.create(thread, None).await.unwrap();
            *LEAVES.lock().unwrap() = Some((point, side, file.clone()));
            let submitted = client.submit(thread, OrderUpdate::new().question("q".into())).await;
            std::fs::rename(file.with_extension("away"), &file).unwrap();
            drop(client);
            store.close().await;

            let store = open().await;
            let worker = runner(Arc::clone(&store));
            let info = store.info(thread).await.unwrap();
            let done = worker.wake(thread, RunOptions::default()).await.unwrap();
            let place = format!("{} {submitted:?} {info:?}", point.name(side));
            match &submitted {
                Ok(_) => {
                    assert_eq!(info.head, 1, "{place}");
                    let done = done.unwrap();
                    assert_eq!(done.result, RunResult::Done, "{place}");
                    assert_eq!(done.state.answer.as_deref(), Some("q"), "{place}");
                }
                Err(error) => {
                    assert!(error.to_string().contains("its file was moved"), "{place}");
                    assert_eq!(info.head, 0, "{place}");
                    assert!(done.is_none(), "{place}");
                    let again =
                        worker.submit(thread, OrderUpdate::new().question("r".into())).await;
                    assert!(again.is_ok(), "{place}");
                    assert_eq!(store.info(thread).await.unwrap().status, ThreadStatus::Queued);
                }
            }
            let is_late =
                matches!((point, side), (Point::RunEnd, _) | (Point::InputCommit, Side::After));
            assert_eq!(submitted.is_ok(), is_late, "{place}");
            store.close().await;
        }
    }
    std::fs::remove_dir_all(directory).unwrap();
}
