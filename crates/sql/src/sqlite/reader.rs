//! Reads one SQLite file: its contents, and the result of a statement within its limits.

use std::collections::HashSet;
use std::path::Path;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use futures::TryStreamExt;
use perihelion_analysis::guard::TableName;
use perihelion_analysis::{Catalogue, Table};
use serde_json::Value;
use sqlx::sqlite::{
    SqliteConnectOptions, SqlitePool, SqlitePoolOptions, SqliteRow, SqliteValueRef,
};
use sqlx::types::Json;
use sqlx::{
    AssertSqlSafe, Column as _, Decode, Executor, Row, SqlSafeStr, Statement, TypeInfo, ValueRef,
};

use super::authorizer::{Permissions, Rules, inside_view, restrict};
use crate::answer::{Answer, Collector, Limits};
use crate::{Error, Result, hint};

/// Virtual-machine steps between two looks at the clock.
const STEPS_PER_CHECK: i32 = 2_000;
/// Beginnings of the messages with which a statement may end while it reads rows.
const MESSAGES: &[&str] = &[
    "ESCAPE expression must be a single character",
    "JSON cannot hold BLOB values",
    "JSON path error",
    "LIKE or GLOB pattern too complex",
    "a percentile is made of numbers",
    "bad JSON path",
    "database disk image is malformed",
    "database is locked",
    "datatype mismatch",
    "disk I/O error",
    "frame ending offset must be a non-negative",
    "frame starting offset must be a non-negative",
    "fts5: syntax error",
    "fts5: parser stack overflow",
    "integer overflow",
    "invalid Unicode escape",
    "invalid regular expression",
    "json_object() labels must be TEXT",
    "malformed JSON",
    "malformed MATCH expression",
    "not authorized",
    "out of memory",
    "argument of ntile must be a positive integer",
    "second argument to nth_value must be a positive integer",
    "string or blob too big",
    "the part of a percentile is not within its bounds",
    "the part of a percentile must be the same for all rows",
    "unable to use function MATCH in the requested context",
    "unknown special query",
    "unterminated string",
];

pub struct Reader {
    /// Runs this program's own statements about the schema.
    pub(super) catalogue: SqlitePool,
    /// Runs models' statements.
    guarded: SqlitePool,
    only: HashSet<String>,
    permissions: &'static Permissions,
    /// The schema's version that the permissions were made for.
    version: AtomicI64,
}

impl Reader {
    pub async fn open(path: &str, only: &[String]) -> Result<Self> {
        if !Path::new(path).is_file() {
            return Err(Error::NoFile(path.to_owned()));
        }
        let options = SqliteConnectOptions::new()
            .filename(path)
            .read_only(true)
            .create_if_missing(false)
            .busy_timeout(Duration::from_secs(5))
            .pragma("query_only", "ON")
            .pragma("trusted_schema", "OFF")
            // What is sorted stays within the bound on memory, and fills no disk.
            .pragma("temp_store", "MEMORY");
        let pool = || SqlitePoolOptions::new().max_connections(1);
        let catalogue = pool().connect_with(options.clone()).await.map_err(connect)?;
        // One per process: SQLite keeps the pointer for as long as a connection lives.
        let permissions: &'static Permissions = Box::leak(Box::default());
        let guarded = pool()
            .after_connect(move |connection, _| {
                Box::pin(async move {
                    restrict(&mut connection.lock_handle().await?, permissions);
                    Ok(())
                })
            })
            .connect_with(options)
            .await
            .map_err(connect)?;
        let only = only
            .iter()
            .map(|name| name.to_ascii_lowercase())
            .map(|name| name.strip_prefix("main.").map_or(name.clone(), str::to_owned))
            .collect();
        Ok(Self { catalogue, guarded, only, permissions, version: AtomicI64::new(-1) })
    }

    pub async fn catalogue(&self) -> Result<Catalogue> {
        self.tables().await.map(|tables| Catalogue { tables }).map_err(database_error)
    }

    async fn tables(&self) -> Result<Vec<Table>, sqlx::Error> {
        let rows: Vec<(String, bool)> = sqlx::query_as(
            "SELECT name, type = 'view' FROM sqlite_schema WHERE type IN ('table', 'view') \
             AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\' ORDER BY name",
        )
        .fetch_all(&self.catalogue)
        .await?;
        let hidden = self.parts_of_virtual_tables().await?;
        let mut tables = Vec::new();
        for (name, is_view) in rows {
            if hidden.contains(&name.to_ascii_lowercase()) {
                continue;
            }
            let read = sqlx::query_scalar(include_str!("table.sql")).bind(&name).bind(is_view);
            tables.push(match read.fetch_one(&self.catalogue).await {
                Ok(Json(table)) => table,
                // A view over what is missing, or a table of a module that is missing, is listed without columns.
                Err(sqlx::Error::Database(_)) => {
                    Table { name: in_main(name), is_view, ..Table::default() }
                }
                Err(error) => return Err(error),
            });
        }
        Ok(tables)
    }

    /// Returns the lower-case names of tables that only keep the contents of virtual ones.
    async fn parts_of_virtual_tables(&self) -> Result<HashSet<String>, sqlx::Error> {
        let rows: Vec<String> = sqlx::query_scalar(
            "SELECT lower(name) FROM pragma_table_list WHERE schema = 'main' AND type = 'shadow'",
        )
        .fetch_all(&self.catalogue)
        .await?;
        Ok(rows.into_iter().collect())
    }

    /// Passes the present tables to the authorizer, if they changed.
    async fn refresh(&self) -> Result<(), sqlx::Error> {
        let version: i64 = sqlx::query_scalar("SELECT schema_version FROM pragma_schema_version")
            .fetch_one(&self.catalogue)
            .await?;
        if self.version.load(Ordering::Acquire) == version {
            return Ok(());
        }
        let names =
            |sql: &'static str| sqlx::query_scalar::<_, String>(sql).fetch_all(&self.catalogue);
        let present =
            names("SELECT lower(name) FROM sqlite_schema WHERE type IN ('table', 'view')").await?;
        let views = names("SELECT name FROM sqlite_schema WHERE type = 'view'").await?;
        let full_text = names(
            "SELECT lower(name) FROM sqlite_schema WHERE type = 'table' AND sql LIKE 'CREATE VIRTUAL%' AND sql LIKE '%fts%'",
        )
        .await?;
        let parts = self.parts_of_virtual_tables().await?;
        let modules = names("SELECT lower(name) FROM pragma_module_list").await?;
        let permitted = |name: &str| self.only.is_empty() || self.only.contains(name);
        let is_part = |part: &String| {
            part.rsplit_once('_')
                .is_some_and(|(of, _)| permitted(of) && full_text.iter().any(|name| name == of))
        };
        let mut inside_views = HashSet::new();
        let mut connection = self.catalogue.acquire().await?;
        for view in views.iter().filter(|view| permitted(&view.to_ascii_lowercase())) {
            let mut handle = connection.lock_handle().await?;
            inside_views.extend(inside_view(&mut handle, view));
        }
        self.permissions.set(Rules {
            only: self.only.clone(),
            present: present.into_iter().collect(),
            full_text: parts.into_iter().filter(is_part).collect(),
            modules: modules.into_iter().collect(),
            inside_views,
        });
        // The connection knows the former columns: SQLite compares the schema when a statement runs, and not when it is prepared.
        self.guarded.acquire().await?.close().await?;
        self.version.store(version, Ordering::Release);
        Ok(())
    }

    pub async fn run(&self, sql: &str, limits: Limits) -> Result<Answer> {
        self.refresh().await.map_err(database_error)?;
        self.permissions.begin(sql);
        let started = crate::clock::monotonic();
        let mut connection = self.guarded.acquire().await.map_err(connect)?;
        let deadline = started + limits.timeout;
        connection
            .lock_handle()
            .await
            .map_err(connect)?
            .set_progress_handler(STEPS_PER_CHECK, move || crate::clock::monotonic() < deadline);
        // SQLite evaluates a statement on rows that a filter or a view leaves out, and quotes what it cannot use.
        let failed = |error: sqlx::Error| match database_error(error) {
            Error::Database { message, .. } if message == "interrupted" => {
                Error::Timeout { limit: limits.timeout }
            }
            Error::Database { message, .. } => {
                hint::while_running(&message, MESSAGES, "a value that cannot be used", None)
            }
            other => other,
        };
        let text = || AssertSqlSafe(sql.to_owned()).into_sql_str();
        let statement = (&mut *connection).prepare(text()).await.map_err(database_error)?;
        let columns = statement.columns().iter().map(|column| column.name().to_owned()).collect();
        let mut collector = Collector::new(columns, limits);
        let mut rows = sqlx::query(text()).persistent(false).fetch(&mut *connection);
        while let Some(row) = rows.try_next().await.map_err(failed)? {
            if !collector.push(cells(&row)) {
                break;
            }
        }
        Ok(collector.finish(started))
    }
}

/// Returns the full name of a table; SQLite finds each without its schema.
pub(super) fn in_main(name: String) -> TableName {
    TableName { schema: "main".to_owned(), name, unqualified: true }
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

/// Removes SQLite's remarks on quotes, which the guard wrote and not the caller.
fn plain(message: &str) -> String {
    let unquoted = message
        .strip_prefix("no such column: \"")
        .and_then(|rest| rest.split_once("\" - should this be a string literal"));
    unquoted.map_or_else(|| message.to_owned(), |(name, _)| format!("no such column: {name}"))
}

fn connect(error: sqlx::Error) -> Error {
    Error::Connect(error.to_string())
}

pub(super) fn database_error(error: sqlx::Error) -> Error {
    let message = match error {
        sqlx::Error::Database(error) => plain(error.message()),
        other => other.to_string(),
    };
    Error::Database { message, hint: String::new() }
}

#[cfg(test)]
mod tests;
