//! Postgres behind a role that may only read.

use std::time::Duration;

use perihelion_sql::{Database, Error, Limits, Options};
use serde_json::json;

use crate::support::{LIMITS, Server, names, options};

const SCHEMA: &str = "
    CREATE TABLE orders (id serial PRIMARY KEY, customer text NOT NULL, total numeric(10,2), tenant text);
    COMMENT ON TABLE orders IS 'What customers bought.';
    INSERT INTO orders (customer, total, tenant) VALUES ('Ada', 12.50, 'a'), ('Bob', NULL, 'b'), ('Cy', 3, 'a');
    CREATE TABLE \"Orders\" (x text); INSERT INTO \"Orders\" VALUES ('capital');
    CREATE TABLE secret (x text); INSERT INTO secret VALUES ('hush');
    CREATE VIEW visible AS SELECT customer, total FROM orders WHERE tenant = 'a';
    GRANT SELECT ON orders, \"Orders\", visible, secret TO {role};";

#[tokio::test]
async fn only_the_tables_named_exactly_are_open_and_no_name_leads_past_them() {
    let Some(server) = Server::with(SCHEMA).await else { return };
    let only = Options { tables: names(&["orders"]), ..options(&server.url) };
    let database = Database::open(only).await.unwrap();
    assert_eq!(database.query("SELECT count(*) FROM orders", None).await.unwrap().rows, [[3]]);
    for sql in [
        "SELECT * FROM \"Orders\"",
        "SELECT * FROM secret",
        "WITH a AS (SELECT * FROM public.secret) SELECT * FROM a",
        "SELECT o.pg_sleep FROM orders o",
        "SELECT f.ts_stat FROM (SELECT 'SELECT x FROM secret'::text AS q) f",
        "WITH only AS (SELECT 1 AS x) SELECT * FROM only secret",
    ] {
        let refused = database.query(sql, None).await.unwrap_err();
        assert!(matches!(refused, Error::Refused(_)), "{sql}: {refused}");
    }
    let unknown = Options { tables: names(&["ORDERS"]), ..options(&server.url) };
    assert!(matches!(Database::open(unknown).await, Err(Error::NoSuchTableOption { .. })));
    drop(database);
    server.drop().await;
}

#[tokio::test]
async fn a_complaint_of_the_database_quotes_no_value_of_a_row() {
    let Some(server) = Server::with(SCHEMA).await else { return };
    let only = Options { tables: names(&["visible"]), ..options(&server.url) };
    let database = Database::open(only).await.unwrap();
    let error = database.query("SELECT customer::int FROM visible", None).await.unwrap_err();
    let message = error.to_string();
    assert!(message.contains("invalid input syntax for type integer"), "{message}");
    assert!(
        !message.contains("Ada") && !message.contains("Cy") && !message.contains("Bob"),
        "{message}"
    );
    drop(database);
    server.drop().await;
}

#[tokio::test]
async fn rows_of_other_tenants_are_invisible_to_every_statement() {
    let Some(server) = Server::with(SCHEMA).await else { return };
    let filtered = Options {
        filters: vec!["orders:tenant = {tenant}".parse().unwrap()],
        tenant: Some("a".into()),
        tables: names(&["orders"]),
        ..options(&server.url)
    };
    let database = Database::open(filtered).await.unwrap();
    for sql in [
        "SELECT count(*) FROM orders",
        "SELECT count(*) FROM orders WHERE tenant = 'b' OR true",
        "SELECT count(*) FROM public.orders AS o LEFT JOIN orders p ON p.id = o.id",
        "SELECT max(n) FROM (SELECT count(*) OVER w AS n FROM generate_series(1, 9) AS g(i) \
         WINDOW w AS (ORDER BY i ROWS BETWEEN (SELECT count(*) - 1 FROM orders) PRECEDING AND CURRENT ROW)) q",
    ] {
        assert_eq!(database.query(sql, None).await.unwrap().rows, [[2]], "{sql}");
    }
    let described = database.describe("orders").await.unwrap();
    assert_eq!((described.row_count, described.sample.row_count), (Some(2), 2));
    assert!(!json!(described).to_string().contains("Bob"));
    assert!(database.find_values("Bob", None, None).await.unwrap().values.is_empty());
    drop(database);
    let without = Options {
        filters: vec!["orders:tenant = {tenant}".parse().unwrap()],
        ..options(&server.url)
    };
    let error = Database::open(without).await.err().unwrap();
    assert!(error.to_string().contains("no --tenant was given"), "{error}");
    server.drop().await;
}

#[tokio::test]
async fn a_role_with_grants_of_columns_sees_those_columns_alone() {
    let schema = "
        CREATE TABLE people (id int PRIMARY KEY, secret text UNIQUE, name text, born date);
        INSERT INTO people VALUES (1, 'hush', 'Ada', '1990-01-01'), (2, 'hush!', 'Bob', '1991-01-01');
        GRANT SELECT (id, name, born) ON people TO {role};";
    let Some(server) = Server::with(schema).await else { return };
    let database = server.open().await;
    let listed = database.tables().await.unwrap();
    assert_eq!(listed[0].columns, ["id", "name", "born"]);
    let described = database.describe("people").await.unwrap();
    assert_eq!((described.row_count, described.sample.columns.len()), (Some(2), 3));
    assert_eq!(described.columns[2].min, Some(json!("1990-01-01")), "{described:?}");
    let found = database.find_values("ada", None, None).await.unwrap();
    assert_eq!((found.values.len(), found.incomplete), (1, false));
    let error = database.query("SELECT * FROM people", None).await.unwrap_err().to_string();
    assert!(
        error.ends_with("permission denied; instead of *, list columns that describe_table shows"),
        "{error}"
    );
    drop(database);
    server.drop().await;
}

#[tokio::test]
async fn values_of_enums_and_domains_are_found_and_described() {
    let schema = "
        CREATE TYPE mood AS ENUM ('calm', 'cheerful'); CREATE DOMAIN label AS varchar(20); CREATE DOMAIN tag AS label;
        CREATE DOMAIN price AS int; CREATE DOMAIN state AS mood;
        CREATE TABLE things (mood mood, label label, tag tag, price price, state state, span int4range);
        INSERT INTO things VALUES ('cheerful', 'Cheerful', 'cheerful', 3, 'cheerful', '[1,2)'), ('calm', 'b', 'c', 4, 'calm', NULL);
        GRANT SELECT ON things TO {role};";
    let Some(server) = Server::with(schema).await else { return };
    let database = server.open().await;
    let found = database.find_values("cheerful", None, None).await.unwrap();
    let mut columns: Vec<&str> = found.values.iter().map(|value| value.column.as_str()).collect();
    columns.sort_unstable();
    assert_eq!((columns, found.incomplete), (vec!["label", "mood", "state", "tag"], false));
    let described = database.describe("things").await.unwrap();
    let types: Vec<&str> = described.columns.iter().map(|one| one.data_type.as_str()).collect();
    assert_eq!(
        types,
        [
            "mood (enum)",
            "label (text)",
            "tag (text)",
            "price (number)",
            "state (enum)",
            "int4range"
        ]
    );
    let frequent = &described.columns[0].frequent;
    assert_eq!(frequent.len(), 2, "{described:?}");
    drop(database);
    server.drop().await;
}

#[tokio::test]
async fn a_query_over_the_cost_limit_does_not_run() {
    let Some(server) = Server::with(SCHEMA).await else { return };
    let cheap = Options { max_cost: Some(1_000.0), ..options(&server.url) };
    let database = Database::open(cheap).await.unwrap();
    database.query("SELECT * FROM orders", None).await.unwrap();
    let dear = "SELECT count(*) FROM orders a, orders b, orders c, orders d";
    let refused = database.query(dear, None).await.unwrap_err();
    assert!(matches!(refused, Error::TooCostly { .. }), "{refused}");
    let misspelled = database.query("SELECT custmer FROM orders", None).await.unwrap_err();
    assert!(misspelled.to_string().contains("; did you mean customer?"), "{misspelled}");
    let validation = database.validate(dear).await.unwrap();
    assert!(!validation.valid && validation.estimated_cost.unwrap() > 1_000.0);
    drop(database);
    server.drop().await;
}

/// S4.05
#[tokio::test]
async fn a_statement_that_outlives_its_time_is_ended_and_its_connection_is_not_used_again() {
    let Some(server) = Server::with(SCHEMA).await else { return };
    let limits = Limits { timeout: Duration::from_secs(1), ..LIMITS };
    let database = Database::open(Options { limits, ..options(&server.url) }).await.unwrap();
    for sql in [
        "SELECT count(*) FROM generate_series(1, (SELECT 1000000000)) AS g(i)",
        "SELECT strpos(string_agg(repeat('a', 9999), ''), repeat('a', 9999) || 'b') FROM generate_series(1, 100000) g(i)",
        "SELECT count(*) FROM generate_series(1, 100000) a(i), generate_series(1, 100000) b(j) WHERE repeat('ab', i) LIKE '%ba%ba%' || j",
    ] {
        let stopped = database.query(sql, None).await;
        assert!(
            matches!(stopped, Err(Error::Timeout { .. })) || stopped.is_ok(),
            "{sql}: {stopped:?}"
        );
    }
    assert_eq!(database.query("SELECT 1", None).await.unwrap().rows, [[1]]);
    drop(database);
    server.drop().await;
}

/// The backend of a statement without a caller is ended, so its connection must not serve the next one.
#[tokio::test]
async fn a_caller_that_stops_waiting_ends_no_other_callers_statement() {
    let Some(server) = Server::with(SCHEMA).await else { return };
    let database = server.open().await;
    let sql = "SELECT count(*) FROM generate_series(1, (SELECT 300000)) AS g(i)";
    for wait in (1..80).step_by(2) {
        let stopped = database.query(sql, None);
        let _ = tokio::time::timeout(Duration::from_millis(wait), stopped).await;
        let next = database.query(sql, None).await;
        assert!(next.is_ok(), "after {wait} ms: {next:?}");
    }
    drop(database);
    server.drop().await;
}

#[tokio::test]
async fn missing_restrictions_of_the_role_are_reported() {
    let Some(server) = Server::with(SCHEMA).await else { return };
    let database = server.open().await;
    let warnings = database.warnings().join("\n");
    assert!(warnings.contains("temp_file_limit") && !warnings.contains("superuser"), "{warnings}");
    drop(database);
    let admin = std::env::var("TEST_DATABASE_URL").unwrap();
    let database = Database::open(options(&admin)).await.unwrap();
    assert!(database.warnings().join("\n").contains("superuser"));
    drop(database);
    server.drop().await;
}

/// S2.05: What Postgres reads is what the guard wrote: the tables of a view made from it are those that were reported.
#[tokio::test]
async fn postgres_reads_the_written_statement_as_the_guard_did() {
    use perihelion_analysis::Dialect;
    use perihelion_analysis::guard::{Permitted, Policy, guard};
    use sqlx::{AssertSqlSafe, Executor};

    let Some(server) = Server::with(SCHEMA).await else { return };
    let database = server.open().await;
    let catalogue = database.catalogue().await.unwrap();
    let tables = catalogue.tables.iter().filter(|table| table.name.name != "secret");
    let policy = Policy {
        tables: tables
            .map(|table| Permitted {
                name: table.name.clone(),
                columns: table.columns.iter().map(|column| column.name.clone()).collect(),
                filter: None,
            })
            .collect(),
        ..Policy::default()
    };
    let mut owner = server.owner().await;
    let mut read = 0;
    for seed in 0..4_000_u64 {
        let sql = crate::reading::statement(seed);
        let Ok(written) = guard(&sql, Dialect::Postgres, &policy) else { continue };
        let view = format!("CREATE TEMP VIEW written AS {}", written.as_str());
        // Postgres may still find fault with types or names; then it reads nothing.
        if owner.execute(AssertSqlSafe(view)).await.is_err() {
            continue;
        }
        read += 1;
        let found: Vec<String> = sqlx::query_scalar(
            "SELECT DISTINCT c.relname::text FROM pg_depend d JOIN pg_rewrite r ON r.oid = d.objid \
             JOIN pg_class c ON c.oid = d.refobjid \
             WHERE d.classid = 'pg_rewrite'::regclass AND d.refclassid = 'pg_class'::regclass \
               AND r.ev_class = 'written'::regclass AND c.oid <> r.ev_class ORDER BY 1",
        )
        .fetch_all(&mut owner)
        .await
        .unwrap();
        let calls: Vec<String> = sqlx::query_scalar(
            "SELECT DISTINCT p.proname::text FROM pg_rewrite r, \
                    regexp_matches(r.ev_action::text, ':funcid ([0-9]+)', 'g') f, pg_proc p \
             WHERE r.ev_class = 'written'::regclass AND p.oid = f[1]::oid AND p.prokind = 'f'",
        )
        .fetch_all(&mut owner)
        .await
        .unwrap();
        let mut reported: Vec<String> =
            written.tables().iter().map(|table| table.name.clone()).collect();
        reported.sort();
        // A table of which nothing is used is not noted by Postgres.
        assert!(
            found.iter().all(|name| reported.contains(name)),
            "seed {seed}: {sql}\n{}\nread: {found:?}, reported: {reported:?}",
            written.as_str()
        );
        for bad in ["pg_sleep", "ts_stat", "pg_read_file", "query_to_xml"] {
            assert!(!calls.iter().any(|call| call == bad), "seed {seed}: {sql}: {calls:?}");
        }
        owner.execute("DROP VIEW written").await.unwrap();
    }
    assert!(read > 50, "only {read} statements reached Postgres");
    drop((database, owner));
    server.drop().await;
}
