//! The same statements on SQLite, in memory and Postgres.
#![expect(
    clippy::unwrap_used,
    reason = "clippy exempts only the test functions themselves, not what they share"
)]

use chrono::{DateTime, Utc};
use perihelion_database::{Database, Error, Value, query};
use perihelion_test_database::TestDatabase;
use serde_json::{Value as Json, json};
use sqlx::AssertSqlSafe;
use uuid::Uuid;

/// Databases of every kind; Postgres where `TEST_DATABASE_URL` names a server.
struct Kinds {
    databases: Vec<Database>,
    _directory: tempfile::TempDir,
    server: Option<TestDatabase>,
}

async fn kinds() -> Kinds {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("deep/er.db");
    let mut databases = vec![
        Database::open("memory:").await.unwrap(),
        Database::open(path.to_str().unwrap()).await.unwrap(),
    ];
    let mut server = None;
    if let Some(made) = TestDatabase::make().await {
        databases.push(Database::open(&made.url).await.unwrap());
        server = Some(made);
    }
    Kinds { databases, _directory: directory, server }
}

impl Kinds {
    async fn end(self) {
        for database in &self.databases {
            database.close().await;
        }
        drop(self.server);
    }
}

async fn make_table(database: &Database) {
    let types = database.dialect().pick(
        "id BLOB PRIMARY KEY, n INTEGER, r REAL, b INTEGER, t TEXT, y BLOB, at INTEGER, j TEXT",
        "id uuid PRIMARY KEY, n bigint, r double precision, b boolean, t text, y bytea, at timestamptz, j jsonb",
    );
    database.execute(&query(AssertSqlSafe(format!("CREATE TABLE kept ({types})")))).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn every_type_is_returned_as_it_was_bound_and_null_as_null() {
    let kinds = kinds().await;
    for database in &kinds.databases {
        make_table(database).await;
        let id = Uuid::new_v4();
        let empty = Uuid::new_v4();
        let at = DateTime::<Utc>::from_timestamp_micros(1_790_000_000_123_456).unwrap();
        let insert =
            "INSERT INTO kept (id, n, r, b, t, y, at, j) VALUES ($1, $2, $3, $4, $5, $6, $7, $8)";
        let full = query(insert)
            .bind(id)
            .bind(7_i64)
            .bind(0.5)
            .bind(true)
            .bind("größe")
            .bind(vec![0_u8, 255])
            .bind(at)
            .bind(json!({ "a": [1] }));
        assert_eq!(database.execute(&full).await.unwrap(), 1);
        let nulls = query(insert)
            .bind(empty)
            .bind(Value::Int(None))
            .bind(Value::Real(None))
            .bind(Value::Bool(None))
            .bind(None::<String>)
            .bind(Value::Bytes(None))
            .bind(Value::Time(None))
            .bind(Value::Json(None));
        database.execute(&nulls).await.unwrap();

        let read = "SELECT id, n, r, b, t, y, at, j FROM kept WHERE id = $1";
        let row = database.fetch_optional(&query(read).bind(id)).await.unwrap().unwrap();
        assert_eq!(row.get::<Uuid>(0).unwrap(), id);
        assert_eq!(row.get::<i64>(1).unwrap(), 7);
        assert_eq!(row.get::<f64>(2).unwrap(), 0.5);
        assert!(row.get::<bool>(3).unwrap());
        assert_eq!(row.get::<String>(4).unwrap(), "größe");
        assert_eq!(row.get::<Vec<u8>>(5).unwrap(), [0, 255]);
        assert_eq!(row.get::<DateTime<Utc>>(6).unwrap(), at);
        assert_eq!(row.get::<Json>(7).unwrap(), json!({ "a": [1] }));
        assert_eq!(row.get::<i64>("n").unwrap(), 7, "a column is known by its name as well");
        for wrong in [row.get::<i64>(4).unwrap_err(), row.get::<i64>("t").unwrap_err()] {
            assert!(matches!(wrong, Error::Column { .. }), "{wrong}");
        }
        let unknown = row.get::<i64>("missing").unwrap_err().to_string();
        assert!(unknown.starts_with("column missing of a stored row"), "{unknown}");
        let row = database.fetch_optional(&query(read).bind(empty)).await.unwrap().unwrap();
        assert_eq!(row.get::<Option<i64>>(1).unwrap(), None);
        assert_eq!(row.get::<Option<DateTime<Utc>>>(6).unwrap(), None);

        let again = database.execute(&full).await.unwrap_err();
        assert!(again.is_duplicate(), "{again}");
    }
    kinds.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_number_that_its_type_does_not_have_is_refused() {
    let kinds = kinds().await;
    for database in &kinds.databases {
        let read = async |number: i64| {
            let read = query("SELECT CAST($1 AS bigint) AS n").bind(number);
            database.fetch_optional(&read).await.unwrap().unwrap()
        };
        let row = read(-5).await;
        assert!(row.get::<u64>("n").unwrap_err().to_string().contains("-5"));
        assert_eq!(row.get::<u32>("n").unwrap(), u32::MAX - 4, "of a column of 32 bits");
        let row = read(1 << 32).await;
        assert!(row.get::<u32>("n").unwrap_err().to_string().contains("4294967296"));
        assert_eq!(row.get::<u64>("n").unwrap(), 1 << 32);
    }
    kinds.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn lists_are_bound_as_one_value() {
    let kinds = kinds().await;
    for database in &kinds.databases {
        make_table(database).await;
        for n in 0..5_i64 {
            let insert = query("INSERT INTO kept (id, n, t) VALUES ($1, $2, $3)");
            let insert = insert.bind(Uuid::new_v4()).bind(n).bind(format!("t{n}"));
            database.execute(&insert).await.unwrap();
        }
        let one_of = database.dialect().one_of("$1");
        let numbers = format!("SELECT count(*) FROM kept WHERE n {one_of}");
        let numbers = query(AssertSqlSafe(numbers)).bind(vec![1_i64, 3, 9]);
        let row = database.fetch_optional(&numbers).await.unwrap().unwrap();
        assert_eq!(row.get::<i64>(0).unwrap(), 2);
        let texts = format!("SELECT count(*) FROM kept WHERE t {one_of}");
        let texts = query(AssertSqlSafe(texts)).bind(vec!["t0".to_owned(), "x'".to_owned()]);
        let row = database.fetch_optional(&texts).await.unwrap().unwrap();
        assert_eq!(row.get::<i64>(0).unwrap(), 1);
    }
    kinds.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_dropped_or_rolled_back_transaction_has_no_effect_and_the_next_one_works() {
    let kinds = kinds().await;
    for database in &kinds.databases {
        make_table(database).await;
        let insert = || query("INSERT INTO kept (id) VALUES ($1)").bind(Uuid::new_v4());
        let count = || query("SELECT count(*) FROM kept");
        let mut dropped = database.begin().await.unwrap();
        dropped.execute(&insert()).await.unwrap();
        drop(dropped);
        let mut undone = database.begin().await.unwrap();
        undone.execute(&insert()).await.unwrap();
        undone.roll_back().await.unwrap();
        let mut kept = database.begin().await.unwrap();
        kept.execute(&insert()).await.unwrap();
        let inside = kept.fetch_optional(&count()).await.unwrap().unwrap();
        assert_eq!(inside.get::<i64>(0).unwrap(), 1);
        kept.commit().await.unwrap();
        let row = database.fetch_optional(&count()).await.unwrap().unwrap();
        assert_eq!(row.get::<i64>(0).unwrap(), 1);
    }
    kinds.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failure_of_the_work_rolls_it_back_and_is_returned() {
    let kinds = kinds().await;
    for database in &kinds.databases {
        make_table(database).await;
        let insert = query("INSERT INTO kept (id) VALUES ($1)").bind(Uuid::new_v4());
        for (reported, left) in [(Err("refused".to_owned()), 0), (Ok(()), 1)] {
            let mut transaction = database.begin_long().await.unwrap();
            transaction.execute(&insert).await.unwrap();
            let reported = reported.map_err(Reported);
            assert_eq!(transaction.settle(reported.clone()).await, reported);
            let rows = database.fetch_all(&query("SELECT id FROM kept")).await.unwrap();
            assert_eq!(rows.len(), left);
        }
        let mut transaction = database.begin().await.unwrap();
        let refused = transaction.execute(&insert).await.unwrap_err();
        assert!(refused.is_duplicate(), "{refused}");
        let reported = transaction.settle(Err::<(), _>(refused)).await.unwrap_err();
        assert!(reported.is_duplicate(), "{reported}");
    }
    kinds.end().await;
}

/// A failure of a room above.
#[derive(Clone, Debug, PartialEq)]
struct Reported(String);

impl From<Error> for Reported {
    fn from(error: Error) -> Self {
        Self(error.to_string())
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reading_transaction_sees_one_snapshot_and_delays_no_writer() {
    let kinds = kinds().await;
    // A database in memory has one connection, for readers and writers alike.
    for database in &kinds.databases[1..] {
        make_table(database).await;
        let insert = || query("INSERT INTO kept (id) VALUES ($1)").bind(Uuid::new_v4());
        let all = query("SELECT id FROM kept");
        database.execute(&insert()).await.unwrap();
        let mut reading = database.begin_reading().await.unwrap();
        assert_eq!(reading.fetch_all(&all).await.unwrap().len(), 1);
        database.execute(&insert()).await.unwrap();
        assert_eq!(reading.fetch_all(&all).await.unwrap().len(), 1);
        reading.commit().await.unwrap();
        assert_eq!(database.fetch_all(&all).await.unwrap().len(), 2);
    }
    kinds.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_written_row_is_returned_and_a_row_with_a_missing_reference_is_an_orphan() {
    let kinds = kinds().await;
    for database in &kinds.databases {
        make_table(database).await;
        let child = database.dialect().pick("id BLOB", "id uuid");
        let child = format!("CREATE TABLE child ({child} REFERENCES kept (id))");
        database.execute(&query(AssertSqlSafe(child))).await.unwrap();
        let id = Uuid::new_v4();
        let orphan = query("INSERT INTO child (id) VALUES ($1) RETURNING id").bind(id);
        let refused = database.execute_returning(&orphan).await.unwrap_err();
        assert!(refused.is_orphan() && !refused.is_duplicate(), "{refused}");
        let parent = query("INSERT INTO kept (id, n) VALUES ($1, 3) RETURNING n").bind(id);
        let row = database.execute_returning(&parent).await.unwrap().unwrap();
        assert_eq!(row.get::<i64>("n").unwrap(), 3);
        assert!(database.execute_returning(&orphan).await.unwrap().is_some());
        let kept = query("SELECT n FROM kept WHERE id = $1").bind(id);
        let row = database.fetch_short(&kept).await.unwrap().unwrap();
        assert_eq!(row.get::<i64>(0).unwrap(), 3);
    }
    kinds.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn deleted_data_leaves_no_byte_in_the_files() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("p.db");
    let database = Database::open(path.to_str().unwrap()).await.unwrap();
    make_table(&database).await;
    let secret = "forget-me-".repeat(3000);
    let insert =
        query("INSERT INTO kept (id, t) VALUES ($1, $2)").bind(Uuid::new_v4()).bind(&secret);
    database.execute(&insert).await.unwrap();
    database.execute(&query("DELETE FROM kept")).await.unwrap();
    database.scrub().await.unwrap();
    for entry in std::fs::read_dir(directory.path()).unwrap() {
        let bytes = std::fs::read(entry.unwrap().path()).unwrap();
        let is_there = bytes.windows(10).any(|window| window == b"forget-me-");
        assert!(!is_there);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_database_of_a_newer_version_or_of_another_program_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("p.db");
    let url = path.to_str().unwrap();
    let database = Database::open(url).await.unwrap();
    database.execute(&query("PRAGMA user_version = 1000")).await.unwrap();
    database.close().await;
    let refused = Database::open(url).await.err().unwrap();
    assert!(matches!(refused, Error::Newer { found: 1000, .. }), "{refused}");
    let other = directory.path().join("other.db");
    std::fs::write(&other, b"not a database at all, but long enough to look like something")
        .unwrap();
    let refused = Database::open(other.to_str().unwrap()).await.err().unwrap();
    assert!(matches!(refused, Error::Unreachable { .. }), "{refused}");
}

/// A pooler that shares one connection among clients gives each new client the settings of the one before.
#[tokio::test(flavor = "multi_thread")]
async fn a_pooler_that_shares_connections_is_refused() {
    let Some(made) = TestDatabase::make().await else { return };
    let before = "options=-c%20perihelion.all_tenants%3Doff";
    let separator = if made.url.contains('?') { '&' } else { '?' };
    let shared = format!("{}{separator}{before}", made.url);
    let refusal = Database::open(&shared).await.err().unwrap().to_string();
    assert!(refusal.contains("pool_mode = session"), "{refusal}");
    Database::open(&made.url).await.unwrap().close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn two_statements_that_are_joined_change_both_or_nothing() {
    let kinds = kinds().await;
    for database in &kinds.databases {
        make_table(database).await;
        let insert = |id: Uuid, number: i64| {
            query("INSERT INTO kept (n, id) VALUES ($2, $1)").binds((id, number))
        };
        let [first, second] = [Uuid::new_v4(), Uuid::new_v4()];
        let both = insert(first, 1).and(insert(second, 2), database.dialect());
        database.execute(&both).await.unwrap();
        let numbers = query("SELECT n FROM kept ORDER BY n");
        assert_eq!(database.rows::<i64>(&numbers).await.unwrap(), [1, 2]);
        let refused = insert(Uuid::new_v4(), 3).and(insert(second, 4), database.dialect());
        assert!(database.execute(&refused).await.is_err());
        assert_eq!(database.rows::<i64>(&numbers).await.unwrap(), [1, 2]);
    }
    kinds.end().await;
}
