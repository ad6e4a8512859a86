//! SQLite behind its worker: what may be read, and that every query ends.

use std::time::Duration;

use perihelion_sql::{Database, Error, Limits, Options};
use serde_json::{Value, json};

use crate::support::{File, LIMITS, options};

const SCHEMA: &str = "
    CREATE TABLE open (id INTEGER PRIMARY KEY, note TEXT, amount REAL, raw BLOB);
    CREATE TABLE secret (x TEXT); INSERT INTO secret VALUES ('hush');
    CREATE VIEW hushed AS SELECT length(x) AS n FROM (SELECT x FROM secret) AS inner_part;
    CREATE VIRTUAL TABLE papers USING fts5(title, body);
    INSERT INTO papers VALUES ('one', 'the quick fox'), ('two', 'a slow dog');
    INSERT INTO open VALUES (1, 'first', 1.5, x'0001'), (2, NULL, NULL, NULL), (3, 'third', 3, NULL)";

async fn rows(database: &Database, sql: &str) -> Vec<Vec<Value>> {
    match database.query(sql, None).await {
        Ok(answer) => answer.rows,
        Err(error) => panic!("{sql}: {error}"),
    }
}

#[tokio::test]
async fn tables_that_are_not_permitted_cannot_be_read_and_tables_derived_from_permitted_ones_can() {
    let file = File::with(SCHEMA).await;
    let database = file.open_only(&["open", "hushed", "PAPERS"]).await;
    assert_eq!(
        rows(&database, "WITH c AS (SELECT * FROM open) SELECT count(*) FROM c").await,
        [[3]]
    );
    assert_eq!(rows(&database, "SELECT n FROM hushed").await, [[4]]);
    let found = "SELECT title FROM papers WHERE papers MATCH 'fox' ORDER BY rank";
    assert_eq!(rows(&database, found).await, [["one"]]);
    for sql in
        ["SELECT * FROM secret", "SELECT * FROM papers_content", "SELECT * FROM sqlite_master"]
    {
        let refused = database.query(sql, None).await.unwrap_err();
        assert!(matches!(refused, Error::Refused(_)), "{sql}: {refused}");
    }
}

/// S4.05
#[tokio::test]
async fn a_function_that_checks_no_clock_is_ended_with_its_process() {
    let file = File::with(SCHEMA).await;
    let limits = Limits { timeout: Duration::from_millis(300), ..LIMITS };
    let database = Database::open(Options { limits, ..options(&file.path) }).await.unwrap();
    // Within the bound on length, and still minutes of comparing.
    let sql = "SELECT instr(printf('%.*c', 1900000, 'a'), printf('%.*c', 900000, 'a') || 'b')";
    for _ in 0..3 {
        let stopped = database.query(sql, None).await.unwrap_err();
        assert!(matches!(stopped, Error::Timeout { .. }), "{stopped}");
    }
    // The next question has a process of its own.
    assert_eq!(rows(&database, "SELECT 1").await, [[1]]);
}

#[tokio::test]
async fn an_endless_query_is_stopped_and_a_long_text_is_an_error() {
    let file = File::with(SCHEMA).await;
    let limits = Limits { timeout: Duration::from_millis(300), ..LIMITS };
    let database = Database::open(Options { limits, ..options(&file.path) }).await.unwrap();
    let endless =
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n";
    assert!(matches!(database.query(endless, None).await, Err(Error::Timeout { .. })));
    let long = database.query("SELECT length(printf('%.*c', 9000000, 'a'))", None).await;
    // SQLite's printf gives NULL or an error beyond the bound; never the text.
    assert!(long.is_err() || long.unwrap().rows[0][0].as_i64().unwrap_or(0) <= 2_000_000);
    assert_eq!(rows(&database, "SELECT 1").await, [[1]]);
}

/// S4.05
#[tokio::test]
async fn rows_columns_and_cells_are_cut_to_the_limits_and_the_answer_reports_it() {
    let file = File::with(SCHEMA).await;
    let limits = Limits { max_rows: 2, max_columns: 3, max_cell_bytes: 16, ..LIMITS };
    let database = Database::open(Options { limits, ..options(&file.path) }).await.unwrap();
    let query = async |sql: &str| database.query(sql, None).await.unwrap();
    let whole = query("SELECT id, note FROM open WHERE id < 3").await;
    assert!(!whole.truncated);
    assert_eq!(whole.rows[1], [json!(2), Value::Null]);
    let cut = query("SELECT id FROM open").await;
    assert_eq!((cut.row_count, cut.truncated), (2, true));
    let narrow = query("SELECT * FROM open LIMIT 1").await;
    assert_eq!((narrow.columns.len(), narrow.truncated), (3, true));
    let cell = query("SELECT 'äääääääääääää' AS long").await;
    assert_eq!((cell.rows[0][0].as_str(), cell.truncated), (Some("ääääääää…"), true));
    let kinds = query("SELECT amount, raw, 1e999 FROM open LIMIT 1").await;
    assert_eq!(kinds.rows[0], [json!(1.5), json!("<2 bytes>"), json!("inf")]);
    let one = database.query("SELECT id FROM open", Some(1)).await.unwrap();
    assert_eq!((one.row_count, one.truncated), (1, true));
}

#[tokio::test]
async fn a_file_that_takes_the_place_of_another_is_read_at_once() {
    let file = File::with(SCHEMA).await;
    let database = file.open().await;
    assert_eq!(rows(&database, "SELECT count(*) FROM open").await, [[3]]);
    let other = File::with("CREATE TABLE open (id INTEGER); INSERT INTO open VALUES (7)").await;
    std::fs::rename(&other.path, &file.path).unwrap();
    assert_eq!(rows(&database, "SELECT id FROM open").await, [[7]]);
}

#[tokio::test]
async fn an_altered_table_is_read_with_its_new_columns() {
    let schema = "CREATE TABLE sales (id INTEGER, cost REAL, total REAL); INSERT INTO sales VALUES (1, 5, 9)";
    let file = File::with(schema).await;
    let database = file.open().await;
    let read = async || database.query("SELECT * FROM sales", None).await.unwrap();
    assert_eq!(read().await.columns, ["id", "cost", "total"]);
    file.run("ALTER TABLE sales DROP COLUMN cost; ALTER TABLE sales ADD COLUMN tax REAL").await;
    let altered = read().await;
    assert_eq!(altered.columns, ["id", "total", "tax"]);
    assert_eq!(altered.rows, [[json!(1), json!(9.0), Value::Null]]);
}

#[tokio::test]
async fn values_of_an_unknown_column_are_an_error_with_the_nearest_name() {
    let file = File::with(SCHEMA).await;
    let database = file.open().await;
    let found = database.find_values("first", None, Some("NOTE")).await.unwrap();
    assert_eq!(found.values[0].value, "first");
    let error = database.find_values("first", None, Some("nota")).await.unwrap_err().to_string();
    assert!(error.contains("no such column: nota; did you mean note?"), "{error}");
}

#[tokio::test]
async fn mathematics_regular_expressions_and_text_search_are_there() {
    let file = File::with(SCHEMA).await;
    let database = file.open().await;
    let answer = rows(
        &database,
        "SELECT ceil(1.2), floor(1.8), sqrt(9), power(2, 10), round(ln(exp(1)), 6), log(100), ceil(7), 'abc' REGEXP '^a', 1 << 4, - -1",
    )
    .await;
    assert_eq!(json!(answer), json!([[2.0, 1.0, 3.0, 1024.0, 1.0, 2.0, 7, 1, 16, 1]]));
}

#[tokio::test]
async fn a_misspelt_column_in_double_quotes_is_an_error_and_not_a_text() {
    let file = File::with(SCHEMA).await;
    let error = file.open().await.query("SELECT \"nota\" FROM open", None).await.unwrap_err();
    let message = error.to_string();
    assert!(
        message.contains("no such column: nota;") && message.contains("did you mean note?"),
        "{message}"
    );
}

#[tokio::test]
async fn a_plan_is_shown_for_readable_tables() {
    let file = File::with(SCHEMA).await;
    let database = file.open_only(&["open"]).await;
    let plan = database.query("EXPLAIN QUERY PLAN SELECT * FROM open", None).await.unwrap();
    assert_eq!(plan.columns, ["id", "parent", "notused", "detail"]);
    assert!(plan.rows[0][3].as_str().unwrap().contains("open"), "{:?}", plan.rows);
    assert!(database.query("EXPLAIN SELECT * FROM open", None).await.unwrap().row_count > 3);
    assert!(database.validate("EXPLAIN QUERY PLAN SELECT * FROM open").await.unwrap().valid);
    for sql in ["EXPLAIN QUERY PLAN SELECT * FROM secret", "EXPLAIN DELETE FROM open"] {
        let refused = database.query(sql, None).await.unwrap_err();
        assert!(matches!(refused, Error::Refused(_)), "{sql}: {refused}");
    }
}

/// S4.05: an index of an expression makes no column of it unique.
#[tokio::test]
async fn a_sum_over_a_join_by_half_of_a_unique_index_is_reported() {
    let schema = "CREATE TABLE tenants (id INTEGER PRIMARY KEY, fee REAL);
        CREATE TABLE users (tenant_id INTEGER, email TEXT, code TEXT);
        CREATE UNIQUE INDEX by_email ON users (tenant_id, lower(email)); CREATE UNIQUE INDEX by_code ON users (code)";
    let file = File::with(schema).await;
    let database = file.open().await;
    let warnings = async |on: &str| {
        let sql = format!("SELECT SUM(t.fee) FROM tenants t JOIN users u ON {on}");
        database.validate(&sql).await.unwrap().warnings
    };
    assert_eq!(warnings("u.tenant_id = t.id").await.len(), 1);
    assert_eq!(warnings("u.code = t.id || ''").await.len(), 1);
    assert_eq!(warnings("u.tenant_id = t.id AND u.code = 'x'").await, [] as [String; 0]);
}

/// A range of the first rows is not the range of the table.
#[tokio::test]
async fn a_description_marks_what_it_read_of_the_first_rows_only() {
    let schema = "CREATE TABLE big (id INTEGER PRIMARY KEY, at TEXT);
        INSERT INTO big WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 12000)
            SELECT i, iif(i > 10000, '2026-11-01', '2020-01-01') FROM n;
        CREATE TABLE small (id INTEGER PRIMARY KEY); INSERT INTO small VALUES (1), (2)";
    let file = File::with(schema).await;
    let database = file.open().await;
    for (table, is_sample) in [("big", true), ("small", false)] {
        let described = database.describe(table).await.unwrap();
        assert_eq!(described.is_sample, is_sample, "{table}");
        let text = perihelion_sql::text::of_description(&described);
        assert_eq!(text.contains("those of the first 10000 rows"), is_sample, "{text}");
    }
}

#[tokio::test]
async fn a_table_is_described_though_a_row_of_it_cannot_be_read() {
    let file = File::with(
        "CREATE TABLE docs (id INTEGER PRIMARY KEY, title TEXT, scan BLOB);
         INSERT INTO docs (title, scan) VALUES ('plan', zeroblob(3000000));
         CREATE VIEW gone AS SELECT x FROM missing;",
    )
    .await;
    let database = file.open().await;
    let described = database.describe("docs").await.unwrap();
    assert_eq!((described.columns.len(), described.row_count), (3, Some(1)));
    let text = perihelion_sql::text::of_description(&described);
    assert!(text.contains("- title: TEXT"), "{text}");
    assert!(
        text.contains("The first rows cannot be shown: the database says: string or blob too big"),
        "{text}"
    );
    let described = database.describe("gone").await.unwrap();
    assert!(described.problem.unwrap().contains("missing"));
}

#[tokio::test]
async fn a_table_of_a_missing_module_does_not_hide_the_others() {
    let file = File::with(
        "CREATE TABLE open (id INTEGER PRIMARY KEY); INSERT INTO open VALUES (1);
         PRAGMA writable_schema = ON;
         INSERT INTO sqlite_schema VALUES ('table', 'alien', 'alien', 0, 'CREATE VIRTUAL TABLE alien USING missing(a)');",
    )
    .await;
    let database = file.open().await;
    let tables = database.catalogue().await.unwrap().tables;
    let columns = tables.iter().map(|table| (table.name.name.as_str(), table.columns.len()));
    assert_eq!(columns.collect::<Vec<_>>(), [("alien", 0), ("open", 1)]);
    assert_eq!(rows(&database, "SELECT id FROM open").await, [[1]]);
}
