//! The layers behind the guard, each without those before it.

use sqlx::ConnectOptions;

use super::*;

#[path = "../../../tests/databases/reading.rs"]
mod reading;

const SCHEMA: &str = "
    CREATE TABLE open (id INTEGER PRIMARY KEY, note TEXT); INSERT INTO open VALUES (1, 'a'), (2, 'b');
    CREATE TABLE secret (x TEXT); INSERT INTO secret VALUES ('hush');
    CREATE VIEW hushed AS SELECT length(x) AS n FROM (SELECT x FROM secret) AS part;
    CREATE VIRTUAL TABLE papers USING fts5(body); INSERT INTO papers VALUES ('a fox');
    CREATE TABLE papers_private (x TEXT); INSERT INTO papers_private VALUES ('hush');
    CREATE VIRTUAL TABLE papers_hidden USING fts5(body); INSERT INTO papers_hidden VALUES ('hush')";
const LIMITS: Limits =
    Limits { max_rows: 10, max_columns: 10, max_cell_bytes: 100, timeout: Duration::from_secs(20) };

async fn open(only: &[&str]) -> (tempfile::TempDir, Reader) {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("test.db");
    let options = SqliteConnectOptions::new().filename(&path).create_if_missing(true);
    let mut connection = options.connect().await.unwrap();
    sqlx::raw_sql(SCHEMA).execute(&mut connection).await.unwrap();
    sqlx::Connection::close(connection).await.unwrap();
    let only: Vec<String> = only.iter().map(|name| (*name).to_owned()).collect();
    let reader = Reader::open(path.to_str().unwrap(), &only).await.unwrap();
    (home, reader)
}

/// S2.05
#[tokio::test]
async fn without_the_guard_the_authorizer_still_refuses_writes_and_hidden_tables() {
    let (_home, reader) = open(&["open", "hushed", "papers"]).await;
    for sql in [
        "DELETE FROM open",
        "UPDATE open SET note = ''",
        "INSERT INTO open (note) VALUES ('x')",
        "DROP TABLE open",
        "CREATE TEMP TABLE t (x)",
        "ATTACH DATABASE ':memory:' AS other",
        "PRAGMA query_only = OFF",
        "PRAGMA table_info(open)",
        "SELECT * FROM secret",
        "SELECT * FROM papers_private",
        "SELECT * FROM papers_hidden_content",
        "SELECT (SELECT x FROM secret) FROM open",
        "SELECT * FROM sqlite_master",
        "SELECT * FROM pragma_database_list",
        "SELECT load_extension('x')",
        "SELECT randomblob(8)",
        "BEGIN",
        // Names of what is permitted, given to what is not.
        "WITH open AS (SELECT * FROM secret) SELECT * FROM open",
        "WITH hushed AS (SELECT * FROM secret) SELECT * FROM hushed",
        "WITH hushed(n) AS NOT MATERIALIZED (SELECT x FROM secret) SELECT n FROM hushed",
        "SELECT * FROM (SELECT * FROM secret) AS hushed",
        "SELECT * FROM (SELECT * FROM secret) 'part'",
        "SELECT * FROM (SELECT * FROM (SELECT * FROM secret) AS part) AS hushed",
    ] {
        let refused = match reader.run(sql, LIMITS).await {
            Ok(answer) => panic!("{sql}: {answer:?}"),
            Err(error) => error.to_string(),
        };
        assert!(
            refused.contains("not authorized")
                || refused.contains("prohibited")
                || refused.contains("no such table"),
            "{sql}: {refused}"
        );
    }
    for (sql, expected) in [
        ("SELECT n FROM hushed", 4),
        ("WITH c AS (SELECT * FROM open) SELECT count(*) FROM c", 2),
        ("SELECT count(*) FROM (SELECT * FROM open) AS t", 2),
        ("SELECT count(*) FROM papers WHERE papers MATCH 'fox'", 1),
    ] {
        let answer = reader.run(sql, LIMITS).await;
        assert_eq!(answer.unwrap().rows, [[Value::from(expected)]], "{sql}");
    }
}

/// The authorizer alone, against statements that try to be read in two ways.
#[tokio::test]
async fn no_generated_statement_reads_a_hidden_table_past_the_authorizer() {
    let (_home, reader) = open(&["open", "hushed", "papers"]).await;
    let mut answered = 0;
    for seed in 0..6_000 {
        let sql = reading::statement(seed);
        if let Ok(answer) = reader.run(&sql, LIMITS).await {
            answered += 1;
            let text = format!("{:?}", answer.rows);
            // The text of a statement may stand in a cell; what the table holds may not.
            assert!(!text.contains("hush"), "seed {seed}: {sql}: {text}");
        }
    }
    assert!(answered > 50, "only {answered} statements ran");
}

#[tokio::test]
async fn without_guard_and_authorizer_the_connection_still_cannot_write() {
    let (_home, reader) = open(&[]).await;
    for sql in ["DELETE FROM open", "DROP TABLE open", "PRAGMA query_only = OFF; DELETE FROM open"]
    {
        let run = sqlx::raw_sql(AssertSqlSafe(sql)).execute(&reader.catalogue).await;
        let error = run.unwrap_err().to_string();
        assert!(error.contains("readonly database"), "{sql}: {error}");
    }
}
