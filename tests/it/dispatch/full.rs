//! A worker whose database has no room: its thread is another's to continue with, not a failed one.

use perihelion_database as database;
use std::sync::Arc;

use perihelion::checkpoint::{self, SqliteStore, Store, ThreadStatus};
use perihelion::graph::node_fn;
use perihelion::runner::{Error, RunOptions, RunResult};

use crate::runner::world::*;

/// A full disk, played by SQLite's own bound on the pages of a file.
async fn bound(store: &SqliteStore, pages: &'static str) {
    let set = async |connection: &mut sqlx::SqliteConnection| {
        sqlx::raw_sql(pages).execute(connection).await.map(|_| ())
    };
    store.with_connection(set).await.unwrap();
}

#[tokio::test]
async fn a_run_that_found_the_disk_full_is_queued_again_by_its_worker_and_failed_by_a_terminal() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("full.db").display().to_string();
    let sqlite = Arc::new(SqliteStore::open(&path).await.unwrap());
    let store: Arc<dyn Store> = sqlite.clone();
    let prose: String = (0..200_000).map(|n| format!("{n} ")).collect();
    let graph = graph(|graph| {
        let large = node_fn(move |_| {
            let prose = prose.clone();
            async move { Ok(say(prose)) }
        });
        graph.node("large", large).entry("large")
    });
    let world = World::default();
    let runner = runner(&graph, &store);
    for (hands_over, left) in [(true, ThreadStatus::Queued), (false, ThreadStatus::Failed)] {
        let thread = world.thread(&runner).await;
        runner.submit(thread, input()).await.unwrap();
        // Lower than what is in use counts as what is in use: not one page more.
        bound(&sqlite, "PRAGMA max_page_count = 1").await;
        let options = RunOptions { hands_over, ..RunOptions::default() };
        let error = runner.wake(thread, options).await.unwrap_err();
        assert!(
            matches!(
                error,
                Error::Store(checkpoint::Error::Database(database::Error::Full { .. }))
            ),
            "{error}"
        );
        let info = store.info(thread).await.unwrap();
        assert_eq!(info.status, left);
        assert!(info.error.is_some_and(|error| error.contains("is full")));
        bound(&sqlite, "PRAGMA max_page_count = 1000000").await;
        assert_eq!(resume(&runner, thread).await.result, RunResult::Done);
    }
    store.close().await;
}
