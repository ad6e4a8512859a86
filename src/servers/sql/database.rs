//! One face for both databases: what there is, and what a guarded statement yields within its limits.

use std::time::Duration;

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use super::guard::{Dialect, Guarded, Policy, TableName};
use super::postgres::Postgres;
use super::sqlite::Sqlite;
use super::{Error, Options, hint};
use crate::config::strict::nearest;

/// Most bytes of cells in one answer, whatever the row limit allows.
pub(super) const MAX_ANSWER_BYTES: usize = 512 * 1024;
/// Rows shown when a table is described.
pub(super) const SAMPLE_ROWS: usize = 3;

/// The bounds of one query.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    pub max_rows: usize,
    pub max_columns: usize,
    /// Longest text of one cell, in bytes.
    pub max_cell_bytes: usize,
    pub timeout: Duration,
}

/// What a query yielded.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct Answer {
    /// Names of the columns, in order.
    pub columns: Vec<String>,
    /// One array of values per row, in the order of the columns.
    pub rows: Vec<Vec<Value>>,
    /// Number of rows in this answer.
    pub row_count: usize,
    /// Rows, columns or the ends of long cells were left out to keep within the limits.
    pub truncated: bool,
    /// Time the query took, in milliseconds.
    pub elapsed_ms: u64,
}

/// A table or view that may be read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Table {
    /// As a statement writes it.
    pub name: String,
    /// `table` or `view`.
    pub kind: String,
    /// Names of its columns, in order.
    pub columns: Vec<String>,
    #[serde(skip)]
    pub(super) key: TableName,
}

/// One column of a described table.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Column {
    pub name: String,
    /// As the database declares it.
    #[serde(rename = "type")]
    pub data_type: String,
    pub nullable: bool,
    pub primary_key: bool,
}

/// A table in full: columns, size, a few rows.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Description {
    /// As a statement writes it.
    pub name: String,
    /// `table` or `view`.
    pub kind: String,
    pub columns: Vec<Column>,
    /// Number of rows; absent where counting took too long.
    pub row_count: Option<i64>,
    /// The first few rows.
    pub sample: Answer,
}

enum Engine {
    Sqlite(Sqlite),
    Postgres(Postgres),
}

/// An opened database, its permitted tables and its limits.
pub struct Database {
    engine: Engine,
    /// Tables that the operator named, folded to lower case; empty permits all.
    only: Vec<String>,
    limits: Limits,
}

impl Database {
    /// Opens the database read-only.
    ///
    /// # Errors
    /// When it is not there, cannot be reached, or lacks a table named in `--tables`.
    pub async fn open(options: &Options) -> Result<Self, Error> {
        let only: Vec<String> =
            options.tables.iter().map(|t| t.trim().to_ascii_lowercase()).collect();
        let url = options.database.as_str();
        let engine = if url.starts_with("postgres://") || url.starts_with("postgresql://") {
            Engine::Postgres(Postgres::open(url).await?)
        } else if url.contains("://") && !url.starts_with("sqlite://") {
            let scheme = url.split("://").next().unwrap_or_default();
            return Err(Error::BadDatabase(format!("{scheme}://…")));
        } else {
            let path = url.strip_prefix("sqlite://").or_else(|| url.strip_prefix("sqlite:"));
            Engine::Sqlite(Sqlite::open(path.unwrap_or(url), &only).await?)
        };
        let database = Self { engine, only, limits: options.limits() };
        let found = database.tables().await?;
        for wanted in &database.only {
            if !found.iter().any(|table| is_named(table, wanted)) {
                let names = database.engine_tables().await?;
                return Err(Error::NoSuchTableOption {
                    name: wanted.clone(),
                    hint: did_you_mean(wanted, &names),
                });
            }
        }
        Ok(database)
    }

    /// Returns the language that statements must be written in.
    pub fn dialect(&self) -> Dialect {
        match self.engine {
            Engine::Sqlite(_) => Dialect::Sqlite,
            Engine::Postgres(_) => Dialect::Postgres,
        }
    }

    /// Returns the tables that may be read, by name.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn tables(&self) -> Result<Vec<Table>, Error> {
        let mut tables = self.engine_tables().await?;
        tables.retain(|table| {
            self.only.is_empty() || self.only.iter().any(|wanted| is_named(table, wanted))
        });
        Ok(tables)
    }

    /// Returns a table's columns, size and first rows.
    ///
    /// # Errors
    /// [`Error::UnknownTable`] with the nearest name, or when the database fails.
    pub async fn describe(&self, name: &str) -> Result<Description, Error> {
        let tables = self.tables().await?;
        let wanted = name.trim().replace('"', "").to_ascii_lowercase();
        let Some(table) = tables.iter().find(|table| is_named(table, &wanted)) else {
            return Err(Error::UnknownTable {
                name: name.into(),
                hint: did_you_mean(name, &tables),
            });
        };
        let limits = Limits { max_rows: SAMPLE_ROWS, ..self.limits };
        let (columns, row_count) = match &self.engine {
            Engine::Sqlite(db) => {
                (db.columns(&table.key).await?, db.count(&table.key, limits).await?)
            }
            Engine::Postgres(db) => {
                (db.columns(&table.key).await?, db.count(&table.key, limits).await?)
            }
        };
        let sample =
            Guarded::ours(format!("SELECT * FROM {} LIMIT {SAMPLE_ROWS}", quoted(&table.key)));
        let sample = self.run(&sample, limits).await?;
        Ok(Description {
            name: table.name.clone(),
            kind: table.kind.clone(),
            columns,
            row_count,
            sample,
        })
    }

    /// Guards a model's statement, runs it and returns what it yields within the limits.
    ///
    /// # Errors
    /// [`Error::Refused`] before anything runs; the database's own error with a hint; or a time-out.
    pub async fn query(&self, sql: &str) -> Result<Answer, Error> {
        let tables = self.tables().await?;
        let policy = Policy { tables: tables.iter().map(|table| table.key.clone()).collect() };
        let statement = super::guard::guard(sql, self.dialect(), &policy)?;
        match self.run(&statement, self.limits).await {
            Err(Error::Database { message, hint }) if hint.is_empty() => {
                let hint = hint::for_message(&message, statement.as_str(), &tables);
                Err(Error::Database { message, hint })
            }
            other => other,
        }
    }

    async fn engine_tables(&self) -> Result<Vec<Table>, Error> {
        match &self.engine {
            Engine::Sqlite(db) => db.tables().await,
            Engine::Postgres(db) => db.tables().await,
        }
    }

    async fn run(&self, statement: &Guarded, limits: Limits) -> Result<Answer, Error> {
        let started = crate::clock::monotonic();
        let mut answer = match &self.engine {
            Engine::Sqlite(db) => db.run(statement, limits).await?,
            Engine::Postgres(db) => db.run(statement, limits).await?,
        };
        answer.row_count = answer.rows.len();
        answer.elapsed_ms = u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX);
        Ok(answer)
    }
}

fn is_named(table: &Table, lowercase: &str) -> bool {
    let full = format!("{}.{}", table.key.schema, table.key.name).to_ascii_lowercase();
    full == lowercase || (table.key.unqualified && table.key.name.to_ascii_lowercase() == lowercase)
}

fn did_you_mean(name: &str, tables: &[Table]) -> String {
    let nearest = nearest(name, tables.iter().map(|table| table.name.as_str()))
        .map_or_else(String::new, |best| format!("; did you mean {best}?"));
    let names: Vec<&str> = tables.iter().take(40).map(|table| table.name.as_str()).collect();
    if names.is_empty() { nearest } else { format!("{nearest} Tables: {}", names.join(", ")) }
}

/// Writes a known table's name as an identifier of either dialect.
pub(super) fn quoted(key: &TableName) -> String {
    let quote = |name: &str| format!("\"{}\"", name.replace('"', "\"\""));
    format!("{}.{}", quote(&key.schema), quote(&key.name))
}

/// Collects rows until a limit is reached.
pub(super) struct Collector {
    limits: Limits,
    bytes: usize,
    pub(super) answer: Answer,
}

impl Collector {
    pub(super) fn new(mut columns: Vec<String>, limits: Limits) -> Self {
        let truncated = columns.len() > limits.max_columns;
        columns.truncate(limits.max_columns);
        Self { limits, bytes: 0, answer: Answer { columns, truncated, ..Answer::default() } }
    }

    /// Takes a row's cells; returns false when there is no room for it or any after it.
    pub(super) fn push(&mut self, cells: impl Iterator<Item = Value>) -> bool {
        if self.answer.rows.len() == self.limits.max_rows || self.bytes > MAX_ANSWER_BYTES {
            self.answer.truncated = true;
            return false;
        }
        let width = self.answer.columns.len();
        let row: Vec<Value> = cells.take(width).map(|cell| self.fit(cell)).collect();
        self.answer.rows.push(row);
        true
    }

    fn fit(&mut self, cell: Value) -> Value {
        let cell = match cell {
            Value::Array(_) | Value::Object(_) => {
                let text = cell.to_string();
                if text.len() > self.limits.max_cell_bytes { Value::String(text) } else { cell }
            }
            other => other,
        };
        let Value::String(mut text) = cell else {
            self.bytes += 16;
            return cell;
        };
        if text.len() > self.limits.max_cell_bytes {
            text.truncate(text.floor_char_boundary(self.limits.max_cell_bytes));
            text.push('…');
            self.answer.truncated = true;
        }
        self.bytes += text.len() + 16;
        Value::String(text)
    }
}
