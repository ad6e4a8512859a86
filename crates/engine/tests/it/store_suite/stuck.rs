//! A transaction in SQLite that broke off, by a full disk or because its caller left, harms no later one.

use perihelion_database as database;
use std::sync::Arc;

use futures::future::{poll_immediate, select};
use perihelion_engine::checkpoint::{Error, Fence, SqliteStore, Store};
use perihelion_engine::ids::RunId;
use tempfile::TempDir;

use super::stores;
use super::writer::{Writer, new_thread, prose};

async fn store() -> (Arc<SqliteStore>, TempDir) {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("threads.db").display().to_string();
    (Arc::new(SqliteStore::open(&path).await.unwrap()), directory)
}

/// A full disk, played by SQLite's own bound on the pages of a file: lower than what is in use counts as that.
async fn fill(store: &SqliteStore) {
    let set = async |connection: &mut sqlx::SqliteConnection| {
        let set = sqlx::raw_sql("PRAGMA max_page_count = 1").execute(connection).await;
        set.map(|_| ())
    };
    store.with_connection(set).await.unwrap();
}

/// S1.03
#[tokio::test]
async fn a_store_continues_after_a_full_disk_broke_off_a_transaction() {
    let elsewhere = stores::memory().await;
    // One row: what fails within a statement of several is undone by that statement alone.
    let mut large = Writer::new(&elsewhere.store).await;
    let commit = large.next(prose(1_000_000));
    large.commit(&commit).await.unwrap();
    let dump = elsewhere.store.export(large.thread).await.unwrap();

    let (sqlite, _directory) = store().await;
    let store: Arc<dyn Store> = sqlite.clone();
    let mut writer = Writer::with_steps(&store, 1).await;
    for _ in 0..2 {
        fill(&sqlite).await;
        let refused = store.import(&dump).await;
        assert!(
            matches!(refused, Err(Error::Database(database::Error::Full { .. }))),
            "{refused:?}"
        );
        // What needs a transaction and what needs none, over the same connection.
        store
            .begin_run(Fence::new(writer.thread, writer.fence), RunId::new(), false)
            .await
            .unwrap();
        writer.steps(1).await;
    }
    store.import(&dump).await.unwrap();
    assert_eq!(store.info(writer.thread).await.unwrap().head, 3);
    store.close().await;
}

#[tokio::test]
async fn a_store_continues_after_a_call_was_abandoned_at_any_moment() {
    let (sqlite, _directory) = store().await;
    let store: Arc<dyn Store> = sqlite.clone();
    let mut writer = Writer::with_steps(&store, 1).await;
    for polls in 0..40 {
        let begin =
            Box::pin(store.begin_run(Fence::new(writer.thread, writer.fence), RunId::new(), true));
        let patience = Box::pin(async {
            for _ in 0..polls {
                tokio::task::yield_now().await;
            }
        });
        drop(select(begin, patience).await);
        drop(poll_immediate(Box::pin(store.load(writer.thread, None))).await);
        writer.steps(1).await;
        store.create(new_thread()).await.unwrap();
        assert_eq!(store.load(writer.thread, None).await.unwrap().info.head, writer.head);
    }
    store.close().await;
}
