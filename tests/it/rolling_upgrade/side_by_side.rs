//! Two versions of the program at work on one database.

use perihelion_database as database;
use std::sync::Arc;

use perihelion::checkpoint::{self, Error as StoreError, Store};
use perihelion::ids::ThreadId;
use perihelion::runner::{Error, RunOptions, RunResult, Runner};
use serde_json::json;

use super::program::{Outside, new, old, runner};
use crate::store_suite::{on_durable_stores, stores::Fixture};
use crate::support::postgres::server;

on_durable_stores!(
    an_old_process_keeps_its_threads_and_refuses_those_that_the_new_one_continued_with,
);

/// Starts a thread of the older program, which waits for an answer.
async fn waiting(program: &Runner<old::Ledger>) -> ThreadId {
    let thread = ThreadId::new();
    program.create(thread, None).await.unwrap();
    let input = old::LedgerUpdate::new().lines(vec!["input".into()]);
    let outcome = program.start(thread, input, RunOptions::default()).await.unwrap();
    let RunResult::Interrupted(open) = outcome.result else { panic!() };
    program.answer(thread, open[0].id, &json!(2026)).await.unwrap();
    thread
}

async fn an_old_process_keeps_its_threads_and_refuses_those_that_the_new_one_continued_with(
    on: &Fixture,
) {
    let outside = Outside::new(true);
    let older = runner::<old::Ledger>(&on.store, &outside, None);
    let taken = waiting(&older).await;
    let kept = waiting(&older).await;

    let another = on.another().await;
    let newer = runner::<new::Ledger>(&another, &outside, None);
    let outcome = newer.resume(taken, RunOptions::default()).await.unwrap();
    assert_eq!(outcome.state.lines.last().map(String::as_str), Some("reviewed"));

    // The old process meets what the new one wrote, and leaves it alone.
    let before = on.store.info(taken).await.unwrap();
    let input = || old::LedgerUpdate::new().lines(vec!["more".into()]);
    let refused = older.start(taken, input(), RunOptions::default()).await;
    let Err(error @ Error::Store(StoreError::NewerState { found: 2, known: 1, .. })) = refused
    else {
        panic!("{refused:?}")
    };
    assert!(error.to_string().contains("upgrade this binary"), "{error}");
    assert_eq!(on.store.info(taken).await.unwrap(), before);

    // What the new one did not touch, the old one ends itself; the new one continues from there.
    let outcome = older.resume(kept, RunOptions::default()).await.unwrap();
    assert_eq!((&outcome.result, outcome.state.lines.len()), (&RunResult::Done, 5));
    let view = newer.state(kept, None).await.unwrap();
    assert_eq!(view.state.lines, outcome.state.lines);
    let outcome = newer.start(kept, new::LedgerUpdate::new(), RunOptions::default()).await.unwrap();
    assert!(matches!(outcome.result, RunResult::Interrupted(_)), "{:?}", outcome.result);
    another.close().await;
}

/// A newer program migrates while this one runs: what is open continues, and what is opened again is refused.
async fn meets_a_newer_migration(store: Arc<dyn Store>, url: &str) {
    let outside = Outside::new(true);
    let program = runner::<old::Ledger>(&store, &outside, None);
    let thread = waiting(&program).await;
    let refused = checkpoint::open(url).await.err();
    let Some(error @ StoreError::Database(database::Error::Newer { found: 9001, .. })) = refused
    else {
        panic!("{refused:?}")
    };
    assert!(error.to_string().contains("upgrade this binary"), "{error}");
    let outcome = program.resume(thread, RunOptions::default()).await.unwrap();
    assert_eq!(outcome.result, RunResult::Done);
    store.close().await;
}

#[tokio::test]
async fn a_process_on_postgres_survives_a_newer_migration_but_cannot_start_again() {
    let database = server().await.fresh().await;
    let store = checkpoint::open(&database.url).await.unwrap();
    let newer = "CREATE TABLE of_tomorrow (id bigint);
        ALTER TABLE thread ADD COLUMN of_tomorrow text NOT NULL DEFAULT 'x';
        INSERT INTO _sqlx_migrations (version, description, success, checksum, execution_time)
            VALUES (9001, 'of tomorrow', true, '', 0)";
    sqlx::raw_sql(newer).execute(&mut database.connect().await).await.unwrap();
    meets_a_newer_migration(store, &database.url).await;
}

#[tokio::test]
async fn a_process_on_sqlite_survives_a_newer_migration_but_cannot_start_again() {
    let directory = tempfile::tempdir().unwrap();
    let url = format!("sqlite:{}", directory.path().join("threads.db").display());
    let store = checkpoint::open(&url).await.unwrap();
    let options: sqlx::sqlite::SqliteConnectOptions = url.parse().unwrap();
    let mut connection = sqlx::ConnectOptions::connect(&options).await.unwrap();
    let newer = "CREATE TABLE of_tomorrow (id INTEGER);
        ALTER TABLE thread ADD COLUMN of_tomorrow TEXT NOT NULL DEFAULT 'x';
        PRAGMA user_version = 9001";
    sqlx::raw_sql(newer).execute(&mut connection).await.unwrap();
    meets_a_newer_migration(store, &url).await;
}
