//! Lists and counts of threads.
//!
//! Invariant: the first threads of a long list are read off an index. No index orders those under way, whose time each commit moves:
//! they are few, and sorted.

use perihelion_database::{Query, Value, query};
use sqlx::AssertSqlSafe;

use super::super::{ThreadFilter, ThreadStatus};
use super::decode::thread_columns;

const COLUMNS: &str = thread_columns!();

/// Threads at the top by status, from the counts that the database keeps with each change.
pub(super) const COUNT: &str = "SELECT status, CAST(sum(number) AS bigint) AS threads
     FROM status_count WHERE subject = 'thread' GROUP BY status";

/// Threads that one index holds in order, or that are few: their condition, and the column of their last change.
///
/// Some conditions imply others: SQLite uses a partial index only if the statement repeats the condition of the index.
type Part = (&'static str, &'static str);

const UNDER_WAY: Part = (" AND status = 'busy' AND status IN ('queued', 'busy')", "updated_at");
const AT_REST: Part = (" AND status <> 'busy'", "rested_at");
const UNSETTLED: Part = (" AND status <> 'busy' AND status <> 'idle'", "rested_at");
/// At rest after a run that failed: [`ThreadInfo::overall_status`](super::super::ThreadInfo::overall_status).
const FAILED_AT_REST: Part = (" AND status = 'idle' AND error IS NOT NULL", "rested_at");

pub(super) fn list(filter: &ThreadFilter) -> Query {
    let (text, values) = question(filter);
    values.into_iter().fold(query(AssertSqlSafe(text)), Query::bind)
}

/// Puts the question together: the first threads of each part, and of those the first.
fn question(filter: &ThreadFilter) -> (String, Vec<Value>) {
    let mut values = vec![Value::from(filter.limit.map_or(i64::MAX, i64::from))];
    let wanted = conditions(filter, &mut values);
    // No index has subgraphs' threads in order.
    let parts: &[Part] = if filter.with_children || filter.root.is_some() {
        &[("", "updated_at")]
    } else {
        match filter.status {
            None => &[UNDER_WAY, AT_REST],
            Some(ThreadStatus::Busy) => &[UNDER_WAY],
            Some(ThreadStatus::Idle) => &[AT_REST],
            Some(ThreadStatus::Failed) => &[UNSETTLED, FAILED_AT_REST],
            Some(_) => &[UNSETTLED],
        }
    };
    let part = |(which, changed): &Part| {
        format!(
            "SELECT * FROM (SELECT {COLUMNS} FROM thread WHERE {wanted}{which}
             ORDER BY {changed} DESC, id DESC LIMIT $1) AS part"
        )
    };
    let parts = parts.iter().map(part).collect::<Vec<_>>().join(" UNION ALL ");
    let text = format!(
        "SELECT {COLUMNS} FROM ({parts}) AS listed ORDER BY updated_at DESC, id DESC LIMIT $1"
    );
    (text, values)
}

fn conditions(filter: &ThreadFilter, values: &mut Vec<Value>) -> String {
    let mut wanted = vec!["1 = 1".to_owned()];
    let mut place = |value: Value| {
        values.push(value);
        format!("${}", values.len())
    };
    match filter.root {
        Some(root) => wanted.push(format!("root_id = {}", place(root.0.into()))),
        None if filter.with_children => {}
        None => wanted.push("root_id IS NULL".to_owned()),
    }
    if let Some(before) = filter.updated_before {
        wanted.push(format!("updated_at < {}", place(before.into())));
    }
    // In the text, because it chooses an index.
    wanted.extend(match filter.status {
        Some(ThreadStatus::Idle) => Some("status = 'idle' AND error IS NULL".to_owned()),
        Some(ThreadStatus::Failed) => {
            Some("(status = 'failed' OR status = 'idle' AND error IS NOT NULL)".to_owned())
        }
        Some(status) => Some(format!("status = '{}'", status.as_str())),
        None => None,
    });
    wanted.join(" AND ")
}

#[cfg(test)]
mod tests {
    use perihelion_database::Database;
    use perihelion_test_database::TestDatabase;

    use super::*;

    /// Threads of both kinds, enough for an index to be useful, by a dialect's series function.
    const FILL: &str =
        "INSERT INTO thread (id, created_at, updated_at, status, graph, namespace, tenant)
         SELECT md5(n::text)::uuid, now(), now() - n * interval '1 second',
            CASE WHEN n % 1000 = 1 THEN 'busy' WHEN n % 500 = 2 THEN 'interrupted' ELSE 'idle' END,
            'swarm', '', 'default'
         FROM generate_series(1, 20000) AS n";

    const STATUSES: [Option<ThreadStatus>; 5] = [
        None,
        Some(ThreadStatus::Idle),
        Some(ThreadStatus::Busy),
        Some(ThreadStatus::Interrupted),
        Some(ThreadStatus::Failed),
    ];

    async fn plan(
        database: &Database,
        explain: &str,
        column: usize,
        filter: &ThreadFilter,
    ) -> String {
        let (text, values) = question(filter);
        let explain = query(AssertSqlSafe(format!("{explain} {text}")));
        let rows = database.fetch_all(&values.into_iter().fold(explain, Query::bind)).await;
        let line = |row: &perihelion_database::Row| row.get::<String>(column).unwrap();
        rows.unwrap().iter().map(line).collect::<Vec<_>>().join("\n")
    }

    /// X1: reading a page costs the same for any number of threads.
    #[tokio::test]
    async fn the_first_threads_are_read_off_an_index_of_sqlite() {
        let database = Database::open("memory:").await.unwrap();
        for status in STATUSES {
            let filter = ThreadFilter { status, limit: Some(10), ..ThreadFilter::default() };
            let plan = plan(&database, "EXPLAIN QUERY PLAN", 3, &filter).await;
            let index = match status {
                Some(ThreadStatus::Busy) => "thread_active",
                Some(ThreadStatus::Interrupted) => "thread_unsettled",
                Some(ThreadStatus::Failed) => "thread_failed_at_rest",
                _ => "thread_rested",
            };
            assert!(plan.contains(index), "{status:?}\n{plan}");
        }
    }

    /// X1: neither a scan nor a sort of the whole table.
    #[tokio::test]
    async fn the_first_threads_are_read_off_an_index_of_postgres() {
        let Some(server) = TestDatabase::make().await else { return };
        let database = Database::open(&server.url).await.unwrap().of_all_tenants();
        database.execute(&query(FILL)).await.unwrap();
        database.execute(&query("ANALYZE thread")).await.unwrap();
        for status in STATUSES {
            let filter = ThreadFilter { status, limit: Some(10), ..ThreadFilter::default() };
            let plan = plan(&database, "EXPLAIN (ANALYZE, TIMING off)", 0, &filter).await;
            assert!(!plan.contains("Seq Scan"), "{status:?}\n{plan}");
            // Of threads at rest no more than the page is read, of those under way the 20 that there are.
            let most =
                plan.lines().filter(|line| line.contains("Scan")).filter_map(rows_read).max();
            assert!(most.is_some_and(|most| most <= 20), "{status:?}\n{plan}");
        }
    }

    fn rows_read(line: &str) -> Option<u64> {
        line.split_once("actual rows=")?.1.split(' ').next()?.parse().ok()
    }
}
