//! The runs of a user who is disabled, on SQLite and Postgres.
#![expect(clippy::unwrap_used, reason = "a test ends at what it did not expect")]

use chrono::TimeDelta;
use perihelion_database::{Database, query};
use perihelion_service_rows::{Begin, Cancel, Kept, NewRun, RunStatus};
use perihelion_test_database::TestDatabase;
use uuid::Uuid;

mod support;
use support::{now, run};

/// A thread of a user, with a run that is driven and one that waits.
async fn thread_of(kept: &Kept, database: &Database, user: &str) -> (Uuid, Uuid) {
    let thread = Uuid::now_v7();
    let insert = query(
        "INSERT INTO thread (id, created_at, updated_at, graph, namespace, tenant) VALUES ($1, $2, $2, 'swarm', '', 'acme')",
    );
    database.execute(&insert.bind(thread).bind(now())).await.unwrap();
    kept.give_thread(thread, user, now()).await.unwrap();
    let begin = Begin { owner: "one", now: now() };
    let driven = kept.add_run(&run(thread), begin).await.unwrap().unwrap();
    let later = NewRun { due_at: now() + TimeDelta::hours(1), ..run(thread) };
    let waits = kept.add_run(&later, begin).await.unwrap().unwrap();
    assert_eq!((driven.status, waits.status), (RunStatus::Running, RunStatus::Pending));
    (driven.id, waits.id)
}

/// How two runs stand, and what was asked of the first.
async fn status(kept: &Kept, (driven, waits): (Uuid, Uuid)) -> (Option<Cancel>, RunStatus) {
    let driven = kept.find_run(driven).await.unwrap().unwrap();
    assert_eq!(driven.status, RunStatus::Running, "its own process ends it");
    (driven.cancel, kept.find_run(waits).await.unwrap().unwrap().status)
}

async fn the_runs_of_a_user_end_with_the_transaction_or_continue(database: Database) {
    let of_acme = database.of_tenant("acme");
    let kept = Kept::new(database.clone(), "acme");
    let anns = thread_of(&kept, &of_acme, "ann").await;
    // As a key or a token names its user.
    let written_large = thread_of(&kept, &of_acme, "Ann").await;
    let bobs = thread_of(&kept, &of_acme, "bob").await;
    let untouched = (None, RunStatus::Pending);

    let mut transaction = of_acme.begin().await.unwrap();
    Kept::end_runs_of_user(&mut transaction, "acme", "ann", now()).await.unwrap();
    transaction.roll_back().await.unwrap();
    assert_eq!(status(&kept, anns).await, untouched);

    let mut transaction = of_acme.begin().await.unwrap();
    Kept::end_runs_of_user(&mut transaction, "acme", "ann", now()).await.unwrap();
    transaction.commit().await.unwrap();
    for of_ann in [anns, written_large] {
        assert_eq!(status(&kept, of_ann).await, (Some(Cancel::Interrupt), RunStatus::Interrupted));
    }
    assert_eq!(status(&kept, bobs).await, untouched);
    database.close().await;
}

#[tokio::test]
async fn on_sqlite() {
    let database = Database::open("memory:").await.unwrap();
    the_runs_of_a_user_end_with_the_transaction_or_continue(database).await;
}

#[tokio::test]
async fn on_postgres() {
    let Some(server) = TestDatabase::make().await else { return };
    let database = Database::open(&server.url).await.unwrap();
    the_runs_of_a_user_end_with_the_transaction_or_continue(database).await;
}
