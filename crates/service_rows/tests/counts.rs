//! Counts by status, which the database keeps, next to the rows that they count.
#![expect(clippy::unwrap_used, reason = "a test ends at what it did not expect")]

mod support;

use perihelion_database::{Database, query};
use perihelion_service_rows::{Begin, Ended, Kept, RunStatus, ThreadFilter};
use perihelion_test_database::TestDatabase;
use sqlx::AssertSqlSafe;
use support::{now, run};
use uuid::Uuid;

const COUNTED: &str = "SELECT subject || ' ' || tenant || ' ' || graph || ' ' || status, CAST(sum(number) AS bigint) \
    FROM status_count GROUP BY tenant, subject, graph, status HAVING sum(number) <> 0";

const ROWS: &str = "SELECT 'thread ' || tenant || ' ' || graph || ' ' || \
        CASE WHEN status = 'idle' AND error IS NOT NULL THEN 'failed' ELSE status END AS shown, count(*) \
    FROM thread WHERE root_id IS NULL GROUP BY shown \
    UNION ALL SELECT 'run ' || tenant || '  ' || status AS shown, count(*) FROM service_run GROUP BY shown";

async fn read(database: &Database, text: &'static str) -> Vec<(String, i64)> {
    let rows = database.fetch_all(&query(text)).await.unwrap();
    let mut read: Vec<_> =
        rows.iter().map(|row| (row.get(0).unwrap(), row.get(1).unwrap())).collect();
    read.sort();
    read
}

/// Numbers that look random (the multiplier is Knuth's, of MMIX).
struct Random(u64);

impl Random {
    fn below(&mut self, most: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        usize::try_from(self.0 >> 33).unwrap() % most
    }

    fn one_of<'a>(&mut self, of: &[&'a str]) -> &'a str {
        of[self.below(of.len())]
    }
}

/// Changes rows as programs of any version could, one statement after another.
async fn change(database: Database, mut random: Random, changes: usize) {
    let mut threads: Vec<Uuid> = Vec::new();
    for _ in 0..changes {
        let status = random.one_of(&["idle", "busy", "interrupted", "failed", "queued"]);
        let tenant = random.one_of(&["ours", "theirs"]);
        let run_status = random.one_of(&["pending", "error", "success", "error"]);
        let action = random.below(10);
        let at = random.below(threads.len().max(1));
        let Some(&thread) = threads.get(at).filter(|_| action > 1) else {
            let id = Uuid::now_v7();
            let root = threads.get(at).filter(|_| action == 1);
            let made = query(
                "INSERT INTO thread (id, root_id, status, graph, namespace, tenant, created_at, updated_at) \
                 VALUES ($1, $2, $3, $4, '', $5, $6, $6)",
            );
            let made = made.bind(id).bind(root.copied()).bind(status);
            let made = made.bind(random.one_of(&["swarm", "document"])).bind(tenant).bind(now());
            database.execute(&made).await.unwrap();
            if root.is_none() {
                threads.push(id);
            }
            continue;
        };
        let text = match action {
            2 => "DELETE FROM thread WHERE root_id = $1",
            3 => "UPDATE thread SET error = CASE WHEN error IS NULL THEN 'broke' END WHERE id = $1",
            4 | 5 => {
                "INSERT INTO service_run (id, thread_id, assistant, tenant, status, multitask, kwargs, metadata, due_at, \
                    created_at, updated_at) SELECT $3, id, id, tenant, $2, 'enqueue', '{}', '{}', updated_at, updated_at, \
                    updated_at FROM thread WHERE id = $1"
            }
            6 => "UPDATE service_run SET status = $2 WHERE thread_id = $1",
            7 if random.below(4) == 0 => "DELETE FROM service_run WHERE thread_id = $1",
            8 if random.below(8) == 0 => "DELETE FROM thread WHERE id = $1 OR root_id = $1",
            _ => "UPDATE thread SET status = $2 WHERE id = $1",
        };
        let word = if text.contains("service_run") { run_status } else { status };
        let change = query(AssertSqlSafe(text)).bind(thread);
        let change = if text.contains("$2") { change.bind(word) } else { change };
        let change = if text.contains("$3") { change.bind(Uuid::now_v7()) } else { change };
        database.execute(&change).await.unwrap();
        if text.starts_with("DELETE FROM thread WHERE id") {
            threads.swap_remove(at);
        }
    }
}

/// X1: what is counted is what there is, after any changes, also by several connections at once.
#[tokio::test(flavor = "multi_thread")]
async fn counts_by_status_equal_the_rows_after_random_changes() {
    let given = std::env::var("COUNTS_SEED").ok().and_then(|seed| seed.parse().ok());
    let seed: u64 = given.unwrap_or_else(|| Uuid::new_v4().as_u64_pair().0);
    println!("COUNTS_SEED={seed}");
    let server = TestDatabase::make().await;
    let place = tempfile::tempdir().unwrap();
    let file = format!("sqlite://{}", place.path().join("counts.db").display());
    for url in [Some(file), server.as_ref().map(|server| server.url.clone())].into_iter().flatten()
    {
        let database = Database::open(&url).await.unwrap().of_all_tenants();
        let parts: Vec<_> = (0..4)
            .map(|part| tokio::spawn(change(database.clone(), Random(seed ^ part), 700)))
            .collect();
        for part in parts {
            part.await.unwrap();
        }
        let rows = read(&database, ROWS).await;
        assert_eq!(read(&database, COUNTED).await, rows, "{url}");
        assert!(rows.len() > 10, "{rows:?}");
        database.close().await;
    }
}

/// X1: Postgres replaces the changes of a tenant by their sums, so that a count reads few rows.
#[tokio::test]
async fn postgres_sums_the_changes_of_a_tenant() {
    let Some(server) = TestDatabase::make().await else { return };
    let database = Database::open(&server.url).await.unwrap().of_all_tenants();
    let fill = "INSERT INTO thread (id, status, graph, namespace, tenant)
        SELECT md5(n::text)::uuid, 'idle', 'swarm', '', 'ours' FROM generate_series(1, 30000) AS n";
    database.execute(&query(fill)).await.unwrap();
    let one_by_one = "SELECT count(*) FROM status_count";
    let stored: i64 =
        database.fetch_optional(&query(one_by_one)).await.unwrap().unwrap().get(0).unwrap();
    // One change in five hundred sums: never to do so in thirty thousand has the probability 10^-26.
    assert!(stored < 30_000, "{stored}");
    database.execute(&query("SELECT sum_status_counts('ours')")).await.unwrap();
    assert_eq!(read(&database, COUNTED).await, [("thread ours swarm idle".to_owned(), 30_000)]);
    database.close().await;
}

/// A stopped run is not a failed one, and a failed run counts even though its thread is at rest.
#[tokio::test]
async fn threads_are_counted_in_the_words_of_lists() {
    let server = TestDatabase::make().await;
    for url in ["memory:".to_owned()].into_iter().chain(server.iter().map(|one| one.url.clone())) {
        let database = Database::open(&url).await.unwrap();
        let all = database.of_all_tenants();
        let mut threads = Vec::new();
        for (status, error) in
            [("idle", None), ("idle", Some("broke")), ("failed", None), ("failed", None)]
        {
            let id = Uuid::now_v7();
            let made = query(
                "INSERT INTO thread (id, status, error, runs, graph, namespace, tenant, created_at, updated_at) \
                 VALUES ($1, $2, $3, 1, 'swarm', '', 'ours', $4, $4)",
            );
            all.execute(&made.bind(id).bind(status).bind(error).bind(now())).await.unwrap();
            threads.push(id);
        }
        for (thread, status) in [(threads[2], "failed"), (threads[3], "cancelled")] {
            let ran = query(
                "INSERT INTO run (thread_id, id, number, status, started_at) VALUES ($1, $2, 1, $3, $4)",
            );
            all.execute(&ran.bind(thread).bind(Uuid::now_v7()).bind(status).bind(now()))
                .await
                .unwrap();
        }
        let ours = Kept::new(database.clone(), "ours");
        let counted = ours.threads_by_status().await.unwrap();
        let words = [("failed", 2), ("idle", 1), ("stopped", 1)];
        assert_eq!(counted, words.map(|(status, count)| (status.to_owned(), count)), "{url}");
        let failed = ThreadFilter {
            statuses: vec!["failed".to_owned(), "stopped".to_owned()],
            ..ThreadFilter::default()
        };
        assert_eq!(ours.count_threads(&failed).await.unwrap(), 3, "{url}");
        assert_eq!(ours.threads(&ThreadFilter { limit: 9, ..failed }).await.unwrap().1, 3, "{url}");
        let begin = Begin { owner: "one", now: now() };
        let added = ours.add_run(&run(threads[0]), begin).await.unwrap().unwrap();
        ours.end_run(added.thread, added.id, Ended::new(RunStatus::Success), now()).await.unwrap();
        assert_eq!(ours.runs_by_status().await.unwrap(), [(RunStatus::Success, 1)], "{url}");
        assert!(
            Kept::new(database.clone(), "theirs").threads_by_status().await.unwrap().is_empty()
        );
        database.close().await;
    }
}
