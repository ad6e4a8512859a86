//! Row-level security on Postgres of threads and their runs, of what clients keep, and of what runs took.
#![expect(clippy::unwrap_used, reason = "a test ends at what it did not expect")]

use perihelion_database::{Database, query};
use perihelion_service_rows::{
    Begin, Cancel, Cron, Ended, ItemFilter, Kept, NewDelivery, NewRun, RunStatus,
};
use perihelion_test_database::TestDatabase;
use serde_json::json;
use sqlx::AssertSqlSafe;
use uuid::Uuid;

#[path = "support/items.rs"]
mod items;
mod support;
use items::{assistant, item};
use support::now;

async fn rows(database: &Database, table: &str) -> i64 {
    let count = query(AssertSqlSafe(format!("SELECT count(*) FROM {table}")));
    database.fetch_optional(&count).await.unwrap().unwrap().get(0).unwrap()
}

/// S3.04: statements without any `WHERE` see and change the rows of the tenant that they act for, and no others.
#[tokio::test]
async fn a_query_without_a_tenant_filter_returns_no_row_of_another_tenant() {
    let Some(server) = TestDatabase::make().await else { return };
    let database = Database::open(&server.url).await.unwrap();
    assert!(!database.is_exempt().await.unwrap());
    let theirs = Kept::new(database.clone(), "theirs");
    theirs.put_item(&item(&["notes"], "x", json!({ "v": 1 }))).await.unwrap();
    let assistant = assistant();
    theirs.put_assistant(&assistant).await.unwrap();
    let of_them = database.of_tenant("theirs");
    let of_us = database.of_tenant("ours");
    let spend = query(
        "INSERT INTO spending (tenant, day, thread_id, turn, run_id, tokens, nano_usd, tool_calls, steps, millis) \
         VALUES ('theirs', '2027-01-15', $1, 1, $1, 1, 1, 1, 1, 1)",
    )
    .bind(Uuid::now_v7());
    let refused = of_us.execute(&spend).await.unwrap_err().to_string();
    assert!(refused.contains("row-level security"), "{refused}");
    of_them.execute(&spend).await.unwrap();

    for table in ["service_item", "service_assistant", "spending"] {
        assert_eq!(rows(&of_us, table).await, 0, "{table}");
        assert_eq!(rows(&database, table).await, 0, "for nobody: {table}");
        let delete = query(AssertSqlSafe(format!("DELETE FROM {table}")));
        assert_eq!(of_us.execute(&delete).await.unwrap(), 0, "{table}");
        assert_eq!(rows(&of_them, table).await, 1, "{table}");
        assert_eq!(rows(&database.of_all_tenants(), table).await, 1, "{table}");
    }
    // The tenant itself reads, changes and deletes as ever.
    theirs.put_item(&item(&["notes"], "x", json!({ "v": 2 }))).await.unwrap();
    let all = ItemFilter { limit: 10, ..ItemFilter::default() };
    let found = theirs.items(&all, now()).await.unwrap();
    assert_eq!(found.iter().map(|item| &item.value).collect::<Vec<_>>(), [&json!({ "v": 2 })]);
    assert!(theirs.choose_assistant(assistant.id, 1).await.unwrap());
    assert!(theirs.delete_assistant(assistant.id).await.unwrap());
    theirs.close().await;
}

/// A row in each table of a thread, by columns that have no default.
const OF_A_THREAD: [(&str, &str); 12] = [
    (
        "thread",
        "INSERT INTO thread (id, graph, namespace, tenant) VALUES ($1, 'swarm', '', 'theirs')",
    ),
    (
        "step",
        "INSERT INTO step (thread_id, run, seq, schema_version, codec, kind, hash, frontier, delta) \
         VALUES ($1, $1, 1, 1, 0, 'input', '', '', '')",
    ),
    (
        "snapshot",
        "INSERT INTO snapshot (thread_id, seq, schema_version, codec, state) VALUES ($1, 1, 1, 0, '')",
    ),
    (
        "pending",
        "INSERT INTO pending (thread_id, step, task, codec, body) VALUES ($1, 2, 0, 0, '')",
    ),
    (
        "effect",
        "INSERT INTO effect (thread_id, step, started_at, task, number, attempt, request_codec, kind, status, name, key, \
            request) VALUES ($1, 2, now(), 0, 0, 1, 0, 'tool', 'started', '', '', '')",
    ),
    (
        "effect_count",
        "INSERT INTO effect_count (thread_id, step, task, effects) VALUES ($1, 2, 0, 1)",
    ),
    ("blob", "INSERT INTO blob (thread_id, step, codec, hash, body) VALUES ($1, 1, 0, '', '')"),
    ("run", "INSERT INTO run (thread_id, id, number, status) VALUES ($1, $1, 1, 'running')"),
    (
        "event",
        "INSERT INTO event (thread_id, run, first_id, step, events, codec, body) VALUES ($1, $1, 1, 1, 1, 0, '')",
    ),
    (
        "thread_stop",
        "INSERT INTO thread_stop (thread_id, tenant, fence, asked_at) VALUES ($1, 'theirs', 0, now())",
    ),
    (
        "archive_file",
        "INSERT INTO archive_file (name, thread_id, tenant) VALUES ('x', $1, 'theirs')",
    ),
    ("trace_debt", "INSERT INTO trace_debt (thread_id, from_run, to_run) VALUES ($1, 1, 1)"),
];

/// What the service keeps of a thread.
const OF_THE_SERVICE: [&str; 6] = [
    "service_thread",
    "thread_mark",
    "service_run",
    "service_cron",
    "service_delivery",
    "service_push",
];

fn hourly(id: Uuid) -> Cron {
    Cron {
        id,
        tenant: "theirs".to_owned(),
        assistant: Uuid::nil(),
        thread: None,
        schedule: "0 * * * *".to_owned(),
        timezone: None,
        keeps_thread: false,
        user: String::new(),
        maker: None,
        paused: None,
        payload: json!({}),
        work: json!({}),
        metadata: json!({}),
        enabled: true,
        next_at: Some(now()),
        end_at: None,
        created_at: now(),
        updated_at: now(),
    }
}

/// S3.04: a thread, its steps, journal, events and runs are their tenant's, whichever statement forgets its `WHERE`; those who look
/// after the runs of all tenants see them.
#[tokio::test]
async fn threads_and_their_runs_are_visible_to_their_tenant_and_to_their_workers() {
    let Some(server) = TestDatabase::make().await else { return };
    let database = Database::open(&server.url).await.unwrap();
    let of_them = database.of_tenant("theirs");
    let of_us = database.of_tenant("ours");
    let thread = Uuid::now_v7();
    for (table, insert) in OF_A_THREAD {
        let insert = query(insert).bind(thread);
        for other in [&of_us, &database] {
            let refused = other.execute(&insert).await.unwrap_err().to_string();
            assert!(refused.contains("row-level security"), "{table}: {refused}");
        }
        of_them.execute(&insert).await.unwrap();
    }
    let theirs = Kept::new(database.clone(), "theirs");
    let ours = Kept::new(database.clone(), "ours");
    let begin = Begin { owner: "one", now: now() };
    theirs.note_thread(thread, &json!({ "a": "x" }), None, now()).await.unwrap();
    let run = theirs.add_run(&support::run(thread), begin).await.unwrap().unwrap();
    let cron = hourly(Uuid::now_v7());
    let webhook = NewDelivery::webhook("http://h.test".to_owned());
    theirs.put_cron(&cron, true).await.unwrap();
    theirs.add_delivery(run.id, &webhook, now()).await.unwrap();
    theirs.put_push(run.id, "p", &json!({}), now()).await.unwrap();

    let tables = OF_A_THREAD.iter().map(|(table, _)| *table).chain(OF_THE_SERVICE);
    for table in tables {
        assert_eq!(rows(&of_us, table).await, 0, "{table}");
        assert_eq!(rows(&database, table).await, 0, "for nobody: {table}");
        let delete = query(AssertSqlSafe(format!("DELETE FROM {table}")));
        assert_eq!(of_us.execute(&delete).await.unwrap(), 0, "{table}");
        assert_eq!(database.execute(&delete).await.unwrap(), 0, "{table}");
        assert_eq!(rows(&of_them, table).await, 1, "{table}");
        assert_eq!(rows(&database.of_all_tenants(), table).await, 1, "{table}");
    }
    assert_eq!(rows(&of_us, "status_count").await, 0);
    assert!(rows(&of_them, "status_count").await > 0);
    // Ids of theirs lead nowhere for us.
    assert!(ours.add_run(&support::run(thread), begin).await.is_err());
    assert!(ours.find_run(run.id).await.unwrap().is_none());
    let cancelled = ours.ask_to_cancel(run.thread, run.id, Cancel::Interrupt, now()).await.unwrap();
    assert_eq!(cancelled, None);
    assert!(
        ours.end_run(run.thread, run.id, Ended::new(RunStatus::Error), now())
            .await
            .unwrap()
            .is_none()
    );
    assert!(!ours.delete_run(thread, run.id).await.unwrap());
    assert!(ours.thread_meta(thread).await.unwrap().updated_at.is_none());
    ours.note_thread(thread, &json!({ "b": 2 }), None, now()).await.unwrap();
    assert_eq!(theirs.thread_meta(thread).await.unwrap().metadata, json!({ "a": "x" }));
    assert!(ours.cron(cron.id).await.unwrap().is_none());
    let changed = Cron { schedule: "* * * * *".to_owned(), ..cron.clone() };
    assert!(!ours.put_cron(&changed, false).await.unwrap());
    assert!(ours.put_cron(&changed, true).await.is_err());
    assert_eq!(theirs.cron(cron.id).await.unwrap().unwrap().schedule, "0 * * * *");
    // A process that drives the runs of all tenants finds them, whichever tenant is its own.
    let silent = now() + chrono::TimeDelta::hours(1);
    assert_eq!(ours.abandoned_runs("two", &[], silent, 9, 0).await.unwrap(), [run.id]);
    assert_eq!(ours.other_owners("two").await.unwrap(), ["one"]);
    assert_eq!(ours.due_crons(now(), 9, 0).await.unwrap().len(), 1);
    assert!(ours.claim_cron(&cron, "two", now(), chrono::TimeDelta::seconds(9)).await.unwrap());
    let cancelled =
        theirs.ask_to_cancel(run.thread, run.id, Cancel::Interrupt, now()).await.unwrap();
    assert_eq!(cancelled, Some(RunStatus::Running));
    assert_eq!(ours.runs_of("one").await.unwrap(), [(run.id, Some(Cancel::Interrupt))]);
    assert!(
        theirs
            .end_run(run.thread, run.id, Ended::new(RunStatus::Interrupted), now())
            .await
            .unwrap()
            .is_some()
    );
    let due = ours.due_deliveries(now(), &[], 9).await.unwrap();
    assert_eq!(due.iter().map(|one| one.tenant.as_str()).collect::<Vec<_>>(), ["theirs"]);
    assert!(!ours.claim_delivery(due[0].id, now(), chrono::TimeDelta::seconds(9)).await.unwrap());
    assert!(theirs.claim_delivery(due[0].id, now(), chrono::TimeDelta::seconds(9)).await.unwrap());
    let later = NewRun { due_at: now() + chrono::TimeDelta::hours(1), ..support::run(thread) };
    let waits = theirs.add_run(&later, begin).await.unwrap().unwrap();
    assert_eq!(waits.status, RunStatus::Pending);
    let waiting = ours.waiting_threads(later.due_at, 9, 0).await.unwrap();
    assert_eq!(waiting, [(thread, "theirs".to_owned())]);
    theirs.close().await;
}
