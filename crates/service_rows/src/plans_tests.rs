//! Plans of the statements that list threads, on many threads.

use chrono::{DateTime, TimeDelta, Utc};
use perihelion_database::{Database, Dialect, query};
use perihelion_test_database::TestDatabase;
use serde_json::{Value, json};

use crate::sql::Statement;
use crate::{COUNTED, Kept, RunSearch, RunStatus, ThreadFilter, ThreadOrder};

const THREADS: u32 = 20_000;

/// Every 1,000th is under way, every 500th waits for a person; each user has 20.
const FILL: &str = "INSERT INTO thread (id, created_at, updated_at, status, graph, namespace, tenant)
     SELECT md5(n::text)::uuid, now() - n * interval '1 second', now() - n * interval '1 second',
        CASE WHEN n % 1000 = 1 THEN 'busy' WHEN n % 500 = 2 THEN 'interrupted' ELSE 'idle' END, 'swarm', '', 'default'
     FROM generate_series(1, $1) AS n";

/// A run of each thread; its messages have a word that all have, and every 5,000th a rare one.
const RUNS: &str = "INSERT INTO service_run (id, thread_id, assistant, tenant, status, multitask, kwargs, metadata, \
     base_step, last_step, due_at, created_at, updated_at)
     SELECT md5('r' || n)::uuid, md5(n::text)::uuid, md5('a')::uuid, 'default', 'success', 'enqueue', '{}', '{}', 0, 3,
        now(), now() - n * interval '1 second', now() FROM generate_series(1, $1) AS n";

const WORDS: &str = "INSERT INTO conversation_word (word, thread_id, step, tenant)
     SELECT w, md5(n::text)::uuid, 3, 'default' FROM generate_series(1, $1) AS n, generate_series(1, 2) AS w
     WHERE w = 1 OR n % 5000 = 0";

const NOTE: &str = "INSERT INTO service_thread (thread_id, tenant, metadata, config)
     SELECT md5(n::text)::uuid, 'default',
        jsonb_build_object('graph_id', 'swarm', 'app', 'web', 'user', 'u' || n % 1000), '{}'
     FROM generate_series(1, $1) AS n";

fn now() -> DateTime<Utc> {
    DateTime::from_timestamp(1_800_000_000, 0).unwrap()
}

fn filter(metadata: Value) -> ThreadFilter {
    ThreadFilter { metadata, limit: 10, ..ThreadFilter::default() }
}

impl Kept {
    /// Returns how the database would perform a statement, a line a step.
    pub(crate) async fn plan(&self, of: Statement) -> String {
        let column = match self.database.dialect() {
            Dialect::Sqlite => 3,
            Dialect::Postgres => 0,
        };
        let rows = self.of_tenant().fetch_all(&of.explained()).await.unwrap();
        let lines: Vec<String> = rows.iter().map(|row| row.get(column).unwrap()).collect();
        lines.join("\n")
    }
}

/// X1: a page costs the same whether a tenant has a thousand threads or a million.
#[tokio::test]
async fn a_page_of_many_threads_is_read_off_an_index_of_postgres() {
    let Some(server) = TestDatabase::make().await else { return };
    let database = Database::open(&server.url).await.unwrap();
    assert!(!database.is_exempt().await.unwrap(), "policies are in the way of indexes");
    for fill in [FILL, NOTE] {
        database.of_all_tenants().execute(&query(fill).bind(THREADS)).await.unwrap();
    }
    for analyze in ["ANALYZE thread", "ANALYZE service_thread", "ANALYZE thread_mark"] {
        database.execute(&query(analyze)).await.unwrap();
    }
    let kept = Kept::new(database, "default");
    let all = filter(json!({}));
    let waiting = ThreadFilter { statuses: vec!["interrupted".into()], ..all.clone() };
    let failed = ThreadFilter { statuses: vec!["failed".into(), "stopped".into()], ..all.clone() };
    let busy = ThreadFilter { statuses: vec!["busy".into(), "queued".into()], ..all.clone() };
    let made = ThreadFilter { order: ThreadOrder::Created, ..all.clone() };
    let without = ThreadFilter { without: vec!["user".into()], ..all.clone() };
    let first = ThreadFilter { ascending: true, ..all.clone() };
    let lists = [
        (all, "thread_rested_of_tenant"),
        (first, "thread_rested_of_tenant"),
        (waiting, "thread_unsettled"),
        (failed, "thread_unsettled"),
        (busy, "thread_active"),
        (made, "thread_created"),
        (without, "thread_rested_of_tenant"),
        (filter(json!({ "user": "u7" })), "thread_mark_found"),
        (filter(json!({ "app": "web" })), "thread_rested_of_tenant"),
        (filter(json!({ "graph_id": "swarm" })), "thread_rested_of_tenant"),
        (filter(json!({ "n": 1 })), "thread_rested_of_tenant"),
    ];
    for (list, index) in lists {
        let plan = kept.plan(kept.page(&list)).await;
        assert!(!plan.contains("Seq Scan"), "{list:?}\n{plan}");
        assert!(plan.contains(index), "{list:?} by {index}:\n{plan}");
    }
    assert_eq!(kept.threads(&filter(json!({ "user": "u7" }))).await.unwrap().1, 20);
}

/// The total of a long list is not counted to its end, and never says that there is nothing behind a page where there is.
#[tokio::test]
async fn a_total_is_counted_so_far_and_no_further() {
    let Some(server) = TestDatabase::make().await else { return };
    let database = Database::open(&server.url).await.unwrap();
    database.of_all_tenants().execute(&query(FILL).bind(THREADS)).await.unwrap();
    let kept = Kept::new(database, "default");
    let (page, total) = kept.threads(&filter(json!({}))).await.unwrap();
    assert_eq!((page.len(), total), (10, u64::from(COUNTED) + 10));
    let late = ThreadFilter { offset: THREADS - 15, ..filter(json!({})) };
    let (page, total) = kept.threads(&late).await.unwrap();
    assert_eq!((page.len(), total), (10, u64::from(THREADS)));
    assert_eq!(kept.count_threads(&filter(json!({}))).await.unwrap(), u64::from(THREADS));
}

/// Threads under way stand among the others where their last change belongs, on either database.
#[tokio::test]
async fn running_threads_are_sorted_by_their_last_change() {
    let server = TestDatabase::make().await;
    let mut databases = vec![Database::open("memory:").await.unwrap()];
    if let Some(server) = &server {
        databases.push(Database::open(&server.url).await.unwrap());
    }
    for database in databases {
        let add = query(
            "INSERT INTO thread (id, created_at, updated_at, status, graph, namespace, tenant) \
             VALUES ($1, $2, $2, $3, 'swarm', '', 'default')",
        );
        let mut ids = Vec::new();
        for (age, status) in
            [(4, "idle"), (3, "busy"), (2, "interrupted"), (1, "busy"), (0, "idle")]
        {
            let id = uuid::Uuid::now_v7();
            let at = now() - TimeDelta::seconds(age);
            let add = add.clone().bind(id).bind(at).bind(status);
            database.of_all_tenants().execute(&add).await.unwrap();
            ids.push(id);
        }
        let kept = Kept::new(database, "default");
        let listed = async |filter: ThreadFilter| -> Vec<uuid::Uuid> {
            kept.threads(&filter).await.unwrap().0.into_iter().map(|one| one.id).collect()
        };
        let oldest = ThreadFilter { ascending: true, ..filter(json!({})) };
        assert_eq!(listed(oldest.clone()).await, ids);
        assert_eq!(listed(ThreadFilter { limit: 2, offset: 2, ..oldest }).await, ids[2..4]);
        ids.reverse();
        assert_eq!(listed(filter(json!({}))).await, ids);
    }
}

/// What is noted later is found, and what it replaced is not: the database keeps the marks itself.
#[tokio::test]
async fn marks_follow_the_stored_notes() {
    let Some(server) = TestDatabase::make().await else { return };
    let database = Database::open(&server.url).await.unwrap();
    database.of_all_tenants().execute(&query(FILL).bind(1)).await.unwrap();
    let kept = Kept::new(database.clone(), "default");
    let thread = kept.threads(&filter(json!({}))).await.unwrap().0[0].id;
    let found = async |metadata: Value| kept.threads(&filter(metadata)).await.unwrap().1;
    kept.note_thread(thread, &json!({ "user": "a", "n": 1, "in": { "x": "y" } }), None, now())
        .await
        .unwrap();
    for wanted in [json!({ "user": "a" }), json!({ "n": 1 }), json!({ "in": { "x": "y" } })] {
        assert_eq!(found(wanted.clone()).await, 1, "{wanted}");
    }
    kept.note_thread(thread, &json!({ "user": "b" }), None, now()).await.unwrap();
    assert_eq!((found(json!({ "user": "a" })).await, found(json!({ "user": "b" })).await), (0, 1));
    assert_eq!(found(json!({ "user": "b", "n": 2 })).await, 0);
    let other = Kept::new(database.clone(), "other");
    assert_eq!(other.threads(&filter(json!({ "user": "b" }))).await.unwrap().1, 0);
    // A mark goes with its thread.
    database.of_all_tenants().execute(&query("DELETE FROM thread")).await.unwrap();
    let left = query("SELECT count(*) FROM thread_mark");
    let left = database.of_all_tenants().fetch_optional(&left).await.unwrap().unwrap();
    assert_eq!(left.get::<i64>(0).unwrap(), 0);
}

/// X1: the file of one machine has the same indexes; what is noted is looked through in the order of the list.
#[tokio::test]
async fn a_page_of_many_threads_is_read_off_an_index_of_sqlite() {
    let kept = Kept::new(Database::open("memory:").await.unwrap(), "default");
    let all = filter(json!({}));
    let waiting = ThreadFilter { statuses: vec!["interrupted".into()], ..all.clone() };
    let busy = ThreadFilter { statuses: vec!["busy".into()], ..all.clone() };
    let made = ThreadFilter { order: ThreadOrder::Created, ..all.clone() };
    let lists = [
        (all, "thread_rested_of_tenant"),
        (waiting, "thread_unsettled"),
        (busy, "thread_active"),
        (made, "thread_created"),
    ];
    for (list, index) in lists {
        let plan = kept.plan(kept.page(&list)).await;
        assert!(plan.contains(index), "{list:?} by {index}:\n{plan}");
    }
}

/// X1: a page of runs, too, however rare or usual its words are.
#[tokio::test]
async fn a_page_of_many_runs_is_read_off_an_index() {
    let usual = RunSearch { limit: 10, ..RunSearch::default() };
    let failed = RunSearch { statuses: vec![RunStatus::Error], ..usual.clone() };
    let since = RunSearch { since: Some(now()), ..usual.clone() };
    let next = RunSearch { after: Some((now(), uuid::Uuid::nil())), ..usual.clone() };
    let thread = RunSearch { thread: Some(uuid::Uuid::nil()), ..usual.clone() };
    let rare = RunSearch { words: vec![vec![2]], ..usual.clone() };
    let common = RunSearch { words: vec![vec![1]], ..usual.clone() };

    let sqlite = Kept::new(Database::open("memory:").await.unwrap(), "default");
    for search in [&usual, &failed, &since, &next, &thread, &rare] {
        let plan = sqlite.plan(sqlite.page_of_runs(search)).await;
        // The page itself is scanned once more for what is listed of it.
        assert!(plan.contains("SEARCH r USING INDEX service_run_"), "{search:?}\n{plan}");
        assert!(!plan.contains("SCAN k"), "{search:?}\n{plan}");
    }

    let Some(server) = TestDatabase::make().await else { return };
    let database = Database::open(&server.url).await.unwrap();
    for fill in [FILL, RUNS, WORDS] {
        database.of_all_tenants().execute(&query(fill).bind(THREADS)).await.unwrap();
    }
    for analyze in ["ANALYZE thread", "ANALYZE service_run", "ANALYZE conversation_word"] {
        database.execute(&query(analyze)).await.unwrap();
    }
    let kept = Kept::new(database, "default");
    for (search, found) in
        [(usual, 10), (failed, 0), (since, 0), (next, 10), (thread, 0), (rare, 4), (common, 10)]
    {
        let plan = kept.plan(kept.page_of_runs(&search)).await;
        let reads_all = |table: &str| plan.contains(&format!("Seq Scan on {table}"));
        assert!(!reads_all("service_run") && !reads_all("conversation_word"), "{search:?}\n{plan}");
        assert_eq!(kept.find_runs(&search).await.unwrap().len(), found, "{search:?}");
    }
}
