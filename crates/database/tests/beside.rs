//! Other programs that open a database file while we have it open.
#![expect(
    clippy::unwrap_used,
    reason = "clippy exempts only the test functions themselves, not what they share"
)]

use std::time::Duration;

use perihelion_database::{Database, query};
use sqlx::sqlite::SqliteConnectOptions;
use sqlx::{ConnectOptions as _, Connection as _};

/// Says to the child which file is the one, and how many rows it is to find there.
const FILE: &str = "PERIHELION_TEST_BESIDE_FILE";
const ROWS: &str = "PERIHELION_TEST_BESIDE_ROWS";

/// Looks into the file from a process of its own, by SQLite alone, and closes it again.
fn look(path: &str, rows: i64) {
    let name = "writes_after_another_program_closed_the_file_are_visible_to_all";
    let ended = std::process::Command::new(std::env::current_exe().unwrap())
        .args(["--exact", name])
        .env(FILE, path)
        .env(ROWS, rows.to_string())
        .output()
        .unwrap();
    assert!(ended.status.success(), "{}", String::from_utf8_lossy(&ended.stdout));
}

/// X5
#[tokio::test(flavor = "multi_thread")]
async fn writes_after_another_program_closed_the_file_are_visible_to_all() {
    if let Ok(path) = std::env::var(FILE) {
        let options = SqliteConnectOptions::new().filename(path);
        let mut connection = options.connect().await.unwrap();
        let rows: i64 = sqlx::query_scalar("SELECT count(*) FROM kept")
            .fetch_one(&mut connection)
            .await
            .unwrap();
        connection.close().await.unwrap();
        assert_eq!(rows.to_string(), std::env::var(ROWS).unwrap());
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("one.db").to_str().unwrap().to_owned();
    let first = Database::open(&path).await.unwrap();
    first.execute(&query("CREATE TABLE kept (n INTEGER)")).await.unwrap();
    // A program opens its file several times: once for each of its rooms.
    let second = Database::open(&path).await.unwrap();
    let insert = query("INSERT INTO kept VALUES (1)");
    for rows in 1..=4 {
        let database = if rows % 2 == 0 { &first } else { &second };
        database.execute(&insert).await.unwrap();
        look(&path, rows);
    }
    // The end of one of them changes nothing for the other.
    second.close().await;
    look(&path, 4);
    first.execute(&insert).await.unwrap();
    look(&path, 5);
    first.close().await;
    look(&path, 5);
}

/// X5: writing on into a file that others do not find under its name any more would lose what is written.
#[tokio::test]
async fn a_moved_or_replaced_file_is_not_read_or_written_until_it_is_back() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("p.db");
    let moved = directory.path().join("moved.db");
    let database = Database::open(&format!("sqlite:{}", path.display())).await.unwrap();
    let make = query("CREATE TABLE kept (n INTEGER)");
    database.execute(&make).await.unwrap();
    let add = query("INSERT INTO kept VALUES (1)");
    let count = query("SELECT n FROM kept");
    for replaced in [false, true] {
        std::fs::rename(&path, &moved).unwrap();
        if replaced {
            std::fs::write(&path, "").unwrap();
        }
        let refused = database.execute(&add).await.unwrap_err();
        assert!(refused.is_passing(), "{refused}");
        assert!(refused.to_string().contains("moved"), "{refused}");
        assert!(database.fetch_all(&count).await.unwrap_err().is_passing());
        assert!(database.begin().await.is_err());
        std::fs::rename(&moved, &path).unwrap();
        database.execute(&add).await.unwrap();
    }
    assert_eq!(database.fetch_all(&count).await.unwrap().len(), 2);
    database.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn writers_stay_patient_after_a_caller_gave_up_emptying_the_log() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("p.db");
    let database = Database::open(path.to_str().unwrap()).await.unwrap();
    database.execute(&query("CREATE TABLE kept (n INTEGER)")).await.unwrap();
    let add = query("INSERT INTO kept VALUES (1)");
    database.execute(&add).await.unwrap();
    let mut other = SqliteConnectOptions::new().filename(&path).connect().await.unwrap();
    sqlx::raw_sql("BEGIN; SELECT count(*) FROM kept").execute(&mut other).await.unwrap();
    database.execute(&add).await.unwrap();
    for _ in 0..5 {
        let given_up = tokio::time::timeout(Duration::from_millis(10), database.scrub()).await;
        assert!(given_up.is_err(), "the reader prevents it");
    }
    other.close().await.unwrap();
    let mut writer = database.begin().await.unwrap();
    let patience = writer.fetch_optional(&query("PRAGMA busy_timeout")).await.unwrap().unwrap();
    assert_eq!(patience.get::<i64>(0).unwrap(), 15_000, "milliseconds");
    writer.roll_back().await.unwrap();
    database.close().await;
}
