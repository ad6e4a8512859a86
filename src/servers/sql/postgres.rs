//! Postgres, spoken to inside a read-only transaction with a statement time limit.
//!
//! The statement is wrapped so that the server itself renders every value as text and stops after the row
//! limit: `SELECT "c1"::text … FROM (statement) AS "q"("c1", …) LIMIT n`.

use std::time::Duration;

use futures::TryStreamExt;
use serde_json::Value;
use sqlx::postgres::{PgConnectOptions, PgDatabaseError, PgPool, PgPoolOptions, PgRow};
use sqlx::{
    AssertSqlSafe, Column as _, Connection, Executor, PgConnection, Row, SqlSafeStr, Statement,
    TypeInfo,
};

use super::Error;
use super::database::{Answer, Collector, Column, Limits, Table, quoted};
use super::guard::{Guarded, TableName};

/// Longest time spent counting the rows of a described table.
const COUNT_LIMIT: Duration = Duration::from_secs(2);
/// What a silent server is granted beyond the statement's own time limit.
const GRACE: Duration = Duration::from_secs(5);
/// Longest time until a connection stands.
const CONNECT_LIMIT: Duration = Duration::from_secs(10);
/// The code with which the server reports that it stopped a statement.
const QUERY_CANCELED: &str = "57014";

/// A connected Postgres database.
pub struct Postgres {
    pool: PgPool,
}

impl Postgres {
    pub async fn open(url: &str) -> Result<Self, Error> {
        let options: PgConnectOptions = url.parse().map_err(Error::Connect)?;
        let options = options.application_name("perihelion-sql");
        // A first connection of its own: a pool would retry a refused one until its time is up.
        let mut first = tokio::time::timeout(CONNECT_LIMIT, PgConnection::connect_with(&options))
            .await
            .map_err(|_| Error::Connect(sqlx::Error::PoolTimedOut))?
            .map_err(Error::Connect)?;
        let superuser: String = sqlx::query_scalar("SELECT current_setting('is_superuser')")
            .fetch_one(&mut first)
            .await
            .map_err(database_error)?;
        first.close().await.map_err(Error::Connect)?;
        let pool = PgPoolOptions::new()
            .max_connections(3)
            .acquire_timeout(CONNECT_LIMIT)
            .connect_lazy_with(options);
        if superuser == "on" {
            tracing::warn!(
                "the sql server is connected as a Postgres superuser; give it a role of its own that \
                 may only SELECT from the tables meant for models"
            );
        }
        Ok(Self { pool })
    }

    pub async fn tables(&self) -> Result<Vec<Table>, Error> {
        let rows = sqlx::query(
            "SELECT n.nspname::text, c.relname::text, c.relkind IN ('v', 'm'), pg_table_is_visible(c.oid), \
                    array(SELECT a.attname::text FROM pg_attribute a WHERE a.attrelid = c.oid \
                          AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attnum) \
             FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace \
             WHERE c.relkind IN ('r', 'p', 'v', 'm', 'f') \
               AND n.nspname <> 'information_schema' AND n.nspname NOT LIKE 'pg\\_%' \
               AND has_schema_privilege(n.oid, 'USAGE') \
               AND (has_table_privilege(c.oid, 'SELECT') OR has_any_column_privilege(c.oid, 'SELECT')) \
             ORDER BY 1, 2",
        )
        .fetch_all(&self.pool)
        .await
        .map_err(database_error)?;
        rows.iter()
            .map(|row| {
                let key = TableName {
                    schema: row.try_get(0)?,
                    name: row.try_get(1)?,
                    unqualified: row.try_get(3)?,
                };
                let kind = if row.try_get(2)? { "view" } else { "table" };
                Ok(Table { name: key.shown(), kind: kind.into(), columns: row.try_get(4)?, key })
            })
            .collect::<Result<_, sqlx::Error>>()
            .map_err(database_error)
    }

    pub async fn columns(&self, table: &TableName) -> Result<Vec<Column>, Error> {
        let rows = sqlx::query(
            "SELECT a.attname::text, format_type(a.atttypid, a.atttypmod), NOT a.attnotnull, \
                    EXISTS (SELECT 1 FROM pg_index i WHERE i.indrelid = a.attrelid AND i.indisprimary \
                            AND a.attnum = ANY (i.indkey)) \
             FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid \
             JOIN pg_namespace n ON n.oid = c.relnamespace \
             WHERE n.nspname = $1 AND c.relname = $2 AND a.attnum > 0 AND NOT a.attisdropped \
             ORDER BY a.attnum",
        )
        .bind(&table.schema)
        .bind(&table.name)
        .fetch_all(&self.pool)
        .await
        .map_err(database_error)?;
        rows.iter()
            .map(|row| {
                Ok(Column {
                    name: row.try_get(0)?,
                    data_type: row.try_get(1)?,
                    nullable: row.try_get(2)?,
                    primary_key: row.try_get(3)?,
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
        let outcome = tokio::time::timeout(limits.timeout + GRACE, self.run_unbounded(sql, limits));
        match outcome.await {
            Ok(Err(sqlx::Error::Database(error)))
                if error.code().as_deref() == Some(QUERY_CANCELED) =>
            {
                Err(Error::Timeout { limit: limits.timeout })
            }
            Ok(outcome) => outcome.map_err(database_error),
            Err(_) => Err(Error::Timeout { limit: limits.timeout }),
        }
    }

    async fn run_unbounded(&self, sql: &Guarded, limits: Limits) -> Result<Answer, sqlx::Error> {
        let mut transaction = self.pool.begin_with("BEGIN TRANSACTION READ ONLY").await?;
        sqlx::query(
            "SELECT set_config('statement_timeout', $1, true), \
                    set_config('standard_conforming_strings', 'on', true)",
        )
        .bind(limits.timeout.as_millis().to_string())
        .execute(&mut *transaction)
        .await?;
        // Preparing names the columns, and reports errors in terms of the statement as it was sent.
        let text = AssertSqlSafe(sql.as_str().to_owned()).into_sql_str();
        let statement = (&mut *transaction).prepare(text).await?;
        let columns = statement.columns();
        let names = columns.iter().map(|column| column.name().to_owned()).collect();
        let types: Vec<String> =
            columns.iter().map(|column| column.type_info().name().to_owned()).collect();
        let mut collector = Collector::new(names, limits);
        if !types.is_empty() {
            let wrapped = AssertSqlSafe(wrap(sql, types.len(), limits));
            let mut rows = sqlx::query(wrapped).persistent(false).fetch(&mut *transaction);
            while let Some(row) = rows.try_next().await? {
                if !collector.push(cells(&row, &types)) {
                    break;
                }
            }
        }
        transaction.rollback().await?;
        Ok(collector.answer)
    }
}

fn wrap(sql: &Guarded, columns: usize, limits: Limits) -> String {
    let aliases: Vec<String> = (1..=columns).map(|number| format!("\"c{number}\"")).collect();
    // One character more than fits, so that the cut is noticed.
    let most = limits.max_cell_bytes + 1;
    let values: Vec<String> = aliases
        .iter()
        .take(limits.max_columns)
        .map(|alias| format!("left({alias}::text, {most})"))
        .collect();
    format!(
        "SELECT {} FROM ({}) AS \"q\"({}) LIMIT {}",
        values.join(", "),
        sql.as_str(),
        aliases.join(", "),
        limits.max_rows + 1
    )
}

fn cells<'a>(row: &'a PgRow, types: &'a [String]) -> impl Iterator<Item = Value> + 'a {
    (0..row.len()).map(|index| match row.try_get::<Option<String>, _>(index) {
        Ok(Some(text)) => cell(text, types.get(index).map_or("", String::as_str)),
        _ => Value::Null,
    })
}

/// Turns the server's text back into a number, truth value or JSON where the type says it is one.
fn cell(text: String, data_type: &str) -> Value {
    match data_type {
        "BOOL" => Value::Bool(text == "true"),
        "INT2" | "INT4" | "INT8" | "OID" => {
            text.parse::<i64>().map_or(Value::String(text), Value::from)
        }
        "FLOAT4" | "FLOAT8" | "JSON" | "JSONB" => {
            serde_json::from_str(&text).unwrap_or(Value::String(text))
        }
        // A decimal number becomes a JSON number only where that loses nothing.
        "NUMERIC" => match text.parse::<f64>().ok().and_then(serde_json::Number::from_f64) {
            Some(number) if text.len() <= 15 => {
                text.parse::<i64>().map_or(Value::Number(number), Value::from)
            }
            _ => Value::String(text),
        },
        _ => Value::String(text),
    }
}

fn database_error(error: sqlx::Error) -> Error {
    let sqlx::Error::Database(error) = error else {
        return Error::Database { message: error.to_string(), hint: String::new() };
    };
    let mut message = error.message().to_owned();
    if let Some(error) = error.try_downcast_ref::<PgDatabaseError>() {
        for more in [error.detail(), error.hint()].into_iter().flatten() {
            message.push_str(&format!(" ({more})"));
        }
    }
    Error::Database { message, hint: String::new() }
}
