//! SQLite, opened so that it cannot write: read-only file, `query_only`, authorizer, limits, deadline.

use std::path::Path;
use std::time::Duration;

use futures::TryStreamExt;
use serde_json::Value;
use sqlx::sqlite::{
    SqliteConnectOptions, SqlitePool, SqlitePoolOptions, SqliteRow, SqliteValueRef,
};
use sqlx::{
    AssertSqlSafe, Column as _, Decode, Executor, Row, SqlSafeStr, Statement, TypeInfo, ValueRef,
};

use super::Error;
use super::authorizer::{Permissions, restrict};
use super::database::{Answer, Collector, Column, Limits, Table, quoted};
use super::guard::{Guarded, TableName};

/// Virtual-machine steps between two looks at the clock.
const STEPS_PER_CHECK: i32 = 2_000;
/// Longest time spent counting the rows of a described table.
const COUNT_LIMIT: Duration = Duration::from_secs(2);

/// An opened SQLite file.
pub struct Sqlite {
    /// Runs this program's own statements about the schema.
    catalogue: SqlitePool,
    /// Runs models' statements.
    guarded: SqlitePool,
}

impl Sqlite {
    pub async fn open(path: &str, only: &[String]) -> Result<Self, Error> {
        if !Path::new(path).is_file() {
            return Err(Error::NoFile(path.to_owned()));
        }
        let options = SqliteConnectOptions::new()
            .filename(path)
            .read_only(true)
            .create_if_missing(false)
            .busy_timeout(Duration::from_secs(5))
            .pragma("query_only", "ON")
            .pragma("trusted_schema", "OFF");
        let pool = || SqlitePoolOptions::new().max_connections(2);
        let catalogue = pool().connect_with(options.clone()).await.map_err(Error::Connect)?;
        let tables = only.iter().map(|name| name.strip_prefix("main.").unwrap_or(name).to_owned());
        // One per process: SQLite keeps the pointer for as long as a connection lives.
        let permissions: &'static Permissions =
            Box::leak(Box::new(Permissions { tables: tables.collect() }));
        let guarded = pool()
            .after_connect(move |connection, _| {
                Box::pin(async move {
                    restrict(&mut connection.lock_handle().await?, permissions);
                    Ok(())
                })
            })
            .connect_with(options)
            .await
            .map_err(Error::Connect)?;
        Ok(Self { catalogue, guarded })
    }

    pub async fn tables(&self) -> Result<Vec<Table>, Error> {
        let rows = sqlx::query(
            "SELECT m.name, m.type, group_concat(c.name, char(31)) \
             FROM (SELECT name, type FROM sqlite_schema WHERE type IN ('table', 'view') \
                   AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\') m, pragma_table_info(m.name) c \
             GROUP BY m.name, m.type ORDER BY m.name",
        )
        .fetch_all(&self.catalogue)
        .await
        .map_err(database_error)?;
        rows.iter()
            .map(|row| {
                let columns: String = row.try_get(2)?;
                let key =
                    TableName { schema: "main".into(), name: row.try_get(0)?, unqualified: true };
                Ok(Table {
                    name: key.shown(),
                    kind: row.try_get(1)?,
                    columns: columns.split('\u{1f}').map(str::to_owned).collect(),
                    key,
                })
            })
            .collect::<Result<_, sqlx::Error>>()
            .map_err(database_error)
    }

    pub async fn columns(&self, table: &TableName) -> Result<Vec<Column>, Error> {
        let rows = sqlx::query("SELECT name, type, \"notnull\", pk FROM pragma_table_info(?)")
            .bind(&table.name)
            .fetch_all(&self.catalogue)
            .await
            .map_err(database_error)?;
        rows.iter()
            .map(|row| {
                Ok(Column {
                    name: row.try_get(0)?,
                    data_type: row.try_get(1)?,
                    nullable: row.try_get::<i64, _>(2)? == 0,
                    primary_key: row.try_get::<i64, _>(3)? > 0,
                })
            })
            .collect::<Result<_, sqlx::Error>>()
            .map_err(database_error)
    }

    pub async fn count(&self, table: &TableName, limits: Limits) -> Result<Option<i64>, Error> {
        let limits = Limits { timeout: limits.timeout.min(COUNT_LIMIT), max_rows: 1, ..limits };
        let sql = Guarded::ours(format!("SELECT count(*) FROM {}", quoted(table)));
        match self.run(&sql, limits).await {
            Ok(answer) => Ok(answer.rows.first().and_then(|row| row.first()?.as_i64())),
            Err(Error::Timeout { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }

    pub async fn run(&self, sql: &Guarded, limits: Limits) -> Result<Answer, Error> {
        let mut connection = self.guarded.acquire().await.map_err(Error::Connect)?;
        let deadline = crate::clock::monotonic() + limits.timeout;
        connection
            .lock_handle()
            .await
            .map_err(Error::Connect)?
            .set_progress_handler(STEPS_PER_CHECK, move || crate::clock::monotonic() < deadline);
        let failed = |error: sqlx::Error| match database_error(error) {
            Error::Database { message, .. } if message == "interrupted" => {
                Error::Timeout { limit: limits.timeout }
            }
            other => other,
        };
        let text = || AssertSqlSafe(sql.as_str().to_owned()).into_sql_str();
        let statement = (&mut *connection).prepare(text()).await.map_err(failed)?;
        let columns = statement.columns().iter().map(|column| column.name().to_owned()).collect();
        let mut collector = Collector::new(columns, limits);
        let mut rows = sqlx::query(text()).persistent(false).fetch(&mut *connection);
        while let Some(row) = rows.try_next().await.map_err(failed)? {
            if !collector.push(cells(&row)) {
                break;
            }
        }
        Ok(collector.answer)
    }
}

fn cells(row: &SqliteRow) -> impl Iterator<Item = Value> + '_ {
    (0..row.len()).map(|index| row.try_get_raw(index).map_or(Value::Null, cell))
}

fn cell(raw: SqliteValueRef<'_>) -> Value {
    if raw.is_null() {
        return Value::Null;
    }
    let kind = raw.type_info().name().to_owned();
    match kind.as_str() {
        "INTEGER" => {
            <i64 as Decode<'_, sqlx::Sqlite>>::decode(raw).map_or(Value::Null, Value::from)
        }
        // JSON has no infinity; it becomes text.
        "REAL" => <f64 as Decode<'_, sqlx::Sqlite>>::decode(raw).map_or(Value::Null, |number| {
            serde_json::Number::from_f64(number)
                .map_or_else(|| Value::String(number.to_string()), Value::Number)
        }),
        _ => <&[u8] as Decode<'_, sqlx::Sqlite>>::decode(raw).map_or(Value::Null, |bytes| {
            match std::str::from_utf8(bytes) {
                Ok(text) if kind != "BLOB" => Value::String(text.to_owned()),
                _ => Value::String(format!("<{} bytes>", bytes.len())),
            }
        }),
    }
}

fn database_error(error: sqlx::Error) -> Error {
    match error {
        sqlx::Error::Database(error) => {
            Error::Database { message: error.message().to_owned(), hint: String::new() }
        }
        other => Error::Database { message: other.to_string(), hint: String::new() },
    }
}

#[cfg(test)]
mod tests {
    use sqlx::ConnectOptions;

    use super::*;

    async fn open(only: &[&str]) -> (tempfile::TempDir, Sqlite) {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("test.db");
        let options = SqliteConnectOptions::new().filename(&path).create_if_missing(true);
        let mut connection = options.connect().await.unwrap();
        let schema = "CREATE TABLE open (id INTEGER PRIMARY KEY, note TEXT, amount REAL, raw BLOB);
            CREATE TABLE secret (x TEXT); INSERT INTO secret VALUES ('hush');
            CREATE VIEW hushed AS SELECT length(x) AS n FROM secret;
            INSERT INTO open VALUES (1, 'first', 1.5, x'0001'), (2, NULL, NULL, NULL), (3, 'third', 3, NULL)";
        sqlx::raw_sql(schema).execute(&mut connection).await.unwrap();
        sqlx::Connection::close(connection).await.unwrap();
        let only: Vec<String> = only.iter().map(|name| (*name).to_owned()).collect();
        let sqlite = Sqlite::open(path.to_str().unwrap(), &only).await.unwrap();
        (home, sqlite)
    }

    const LIMITS: Limits = Limits {
        max_rows: 2,
        max_columns: 3,
        max_cell_bytes: 16,
        timeout: Duration::from_secs(20),
    };

    /// Runs a statement as if the guard were not there.
    async fn unguarded(db: &Sqlite, sql: &str) -> Result<Answer, Error> {
        db.run(&Guarded::ours(sql.to_owned()), LIMITS).await
    }

    #[tokio::test]
    async fn without_the_guard_the_authorizer_still_refuses_writes_and_hidden_tables() {
        let (_home, db) = open(&["open", "hushed"]).await;
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
            "SELECT * FROM sqlite_master",
            "SELECT * FROM pragma_database_list",
            "SELECT load_extension('x')",
            "SELECT randomblob(8)",
            "BEGIN",
        ] {
            let error = unguarded(&db, sql).await.unwrap_err().to_string();
            assert!(
                error.contains("not authorized") || error.contains("prohibited"),
                "{sql}: {error}"
            );
        }
        // A permitted view may read what it is made of.
        let answer = unguarded(&db, "SELECT n FROM hushed").await.unwrap();
        assert_eq!(answer.rows, [[Value::from(4)]]);
    }

    #[tokio::test]
    async fn without_guard_and_authorizer_the_connection_still_cannot_write() {
        let (_home, db) = open(&[]).await;
        for sql in
            ["DELETE FROM open", "DROP TABLE open", "PRAGMA query_only = OFF; DELETE FROM open"]
        {
            let error = sqlx::raw_sql(AssertSqlSafe(sql)).execute(&db.catalogue).await.unwrap_err();
            assert!(error.to_string().contains("readonly database"), "{sql}: {error}");
        }
    }

    #[tokio::test]
    async fn an_endless_query_is_stopped_at_the_time_limit() {
        let (_home, db) = open(&[]).await;
        let sql = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n";
        let limits = Limits { timeout: Duration::from_millis(50), ..LIMITS };
        let stopped = db.run(&Guarded::ours(sql.to_owned()), limits).await;
        assert!(matches!(stopped, Err(Error::Timeout { .. })), "{stopped:?}");
        // The connection is as good as before.
        assert_eq!(unguarded(&db, "SELECT 1").await.unwrap().rows, [[Value::from(1)]]);
    }

    #[tokio::test]
    async fn rows_columns_and_cells_are_cut_to_the_limits_and_the_answer_says_so() {
        let (_home, db) = open(&[]).await;
        let whole = unguarded(&db, "SELECT id, note FROM open WHERE id < 3").await.unwrap();
        assert!(!whole.truncated);
        assert_eq!(whole.rows[1], [Value::from(2), Value::Null]);
        let rows = unguarded(&db, "SELECT id FROM open").await.unwrap();
        assert_eq!((rows.rows.len(), rows.truncated), (2, true));
        let columns = unguarded(&db, "SELECT * FROM open LIMIT 1").await.unwrap();
        assert_eq!((columns.columns.len(), columns.truncated), (3, true));
        let cell = unguarded(&db, "SELECT 'äääääääääääää' AS long").await.unwrap();
        assert_eq!((cell.rows[0][0].as_str(), cell.truncated), (Some("ääääääää…"), true));
        let kinds = unguarded(&db, "SELECT amount, raw, 1e999 FROM open LIMIT 1").await.unwrap();
        assert_eq!(kinds.rows[0], [Value::from(1.5), "<2 bytes>".into(), "inf".into()]);
    }

    #[tokio::test]
    async fn a_misspelt_column_in_double_quotes_is_an_error_and_not_a_text() {
        let (_home, db) = open(&[]).await;
        let error = unguarded(&db, "SELECT \"nota\" FROM open").await.unwrap_err();
        assert!(error.to_string().contains("no such column: \"nota\""), "{error}");
    }
}
