//! No statement of a request reads a whole table of Postgres: what a run costs does not grow with other threads.

use std::collections::BTreeMap;

use sqlx::PgConnection;

use super::saying;
use super::served::Served;

/// Threads beside the one that is used, and copies of each of its rows.
const OTHERS: usize = 2_000;

/// Copies the rows of the one thread for others. Neither triggers nor references look at the copies.
const FILL: &str = "
SET session_replication_role = replica;
CREATE TEMPORARY TABLE other AS SELECT gen_random_uuid() AS id FROM generate_series(1, {others});
DO $$ DECLARE of record; BEGIN
    FOR of IN SELECT c.table_name AS name, string_agg(quote_ident(c.column_name), ', ') AS columns,
            CASE WHEN c.table_name = 'thread' THEN 'jsonb_build_object(''id'', other.id)'
                WHEN bool_or(c.column_name = 'id') THEN 'jsonb_build_object(''thread_id'', other.id, ''id'', gen_random_uuid())'
                ELSE 'jsonb_build_object(''thread_id'', other.id)' END AS new
        FROM information_schema.columns c JOIN information_schema.tables t USING (table_schema, table_name)
        WHERE table_schema = 'public' AND table_type = 'BASE TABLE' AND c.is_generated = 'NEVER'
        GROUP BY c.table_name HAVING c.table_name = 'thread' OR bool_or(c.column_name = 'thread_id')
    LOOP
        EXECUTE format('INSERT INTO %1$I (%2$s) OVERRIDING SYSTEM VALUE SELECT %2$s FROM
            (SELECT (jsonb_populate_record(r, %3$s)).* FROM %1$I r, other) copy ON CONFLICT DO NOTHING',
            of.name, of.columns, of.new);
    END LOOP;
END $$";

/// Rows that were read by scans of whole tables, by table; with what the connection itself read.
async fn scanned(admin: &mut PgConnection) -> BTreeMap<String, i64> {
    sqlx::raw_sql("SELECT pg_stat_clear_snapshot()").execute(&mut *admin).await.unwrap();
    let read =
        "SELECT relname::text, seq_tup_read FROM pg_stat_user_tables WHERE schemaname = 'public'";
    sqlx::query_as::<_, (String, i64)>(read).fetch_all(admin).await.unwrap().into_iter().collect()
}

/// X1: neither a turn nor an opened thread reads a table of threads as a whole.
#[tokio::test]
async fn requests_read_no_table_of_threads_as_a_whole() {
    let mut served = Served::postgres().await;
    let thread = served.thread().await;
    let requests = async |served: &Served| {
        let asked = served.post(&format!("/threads/{thread}/runs/wait"), &saying("hello")).await;
        assert_eq!(asked.0, 200, "{}", asked.1);
        for path in ["state", "history"] {
            let (code, found) = served.get(&format!("/threads/{thread}/{path}")).await;
            assert_eq!(code, 200, "{found}");
        }
    };
    requests(&served).await;
    let mut admin = served.on_postgres().connect().await;
    let fill = FILL.replace("{others}", &OTHERS.to_string());
    sqlx::raw_sql(sqlx::AssertSqlSafe(fill)).execute(&mut admin).await.unwrap();
    sqlx::raw_sql("SELECT pg_stat_force_next_flush()").execute(&mut admin).await.unwrap();
    let before = scanned(&mut admin).await;
    // A connection keeps a plan after five times: here that of a new database, which has no statistics yet.
    for _ in 0..8 {
        requests(&served).await;
    }
    served.stop().await;
    let others = "SELECT COUNT(*) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()
        AND backend_type = 'client backend'";
    // What a connection counted is known when it has ended.
    while sqlx::query_scalar::<_, i64>(others).fetch_one(&mut admin).await.unwrap() > 0 {
        tokio::task::yield_now().await;
    }
    let after = scanned(&mut admin).await;
    let scans: Vec<(&String, i64)> = after
        .iter()
        .map(|(table, rows)| (table, rows - before.get(table).copied().unwrap_or_default()))
        .filter(|(_, rows)| *rows >= OTHERS as i64)
        .collect();
    assert!(scans.is_empty(), "rows read by scans: {scans:?}");
}
