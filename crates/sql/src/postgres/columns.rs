//! The columns of a query, and how their values are read: the server writes each as text.

use perihelion_analysis::guard::Guarded;
use serde_json::Value;
use sqlx::postgres::PgRow;
use sqlx::{
    AssertSqlSafe, Column as _, Connection, Executor, PgConnection, Row, SqlSafeStr, Statement,
    TypeInfo,
};

use super::errors::Failure;
use crate::answer::Limits;

/// Returns the names and types of a query's columns; errors in its text are in the server's words.
pub async fn described(
    connection: &mut PgConnection,
    query: &str,
) -> Result<(Vec<String>, Vec<String>), Failure> {
    let text = AssertSqlSafe(query.to_owned()).into_sql_str();
    let prepared = (&mut *connection).prepare(text).await;
    // What is remembered of a statement is wrong once its tables were altered.
    connection.clear_cached_statements().await?;
    match prepared {
        Ok(statement) => {
            let columns = statement.columns();
            let names = columns.iter().map(|column| column.name().to_owned()).collect();
            let types = columns.iter().map(|column| column.type_info().name().to_owned());
            Ok((names, types.collect()))
        }
        Err(error @ (sqlx::Error::Database(_) | sqlx::Error::Io(_))) => {
            Err(Failure::Reading(error))
        }
        // The driver does not know a type; the server does.
        Err(_) => described_by_server(connection, query).await,
    }
}

async fn described_by_server(
    connection: &mut PgConnection,
    query: &str,
) -> Result<(Vec<String>, Vec<String>), Failure> {
    let none_of = |columns: &str| {
        format!(
            "(SELECT 1) AS one(one) LEFT JOIN (SELECT * FROM ({query}) AS q LIMIT 0) AS nothing{columns} ON false"
        )
    };
    let names = format!(
        "SELECT json_object_keys(row_to_json(line)) FROM (SELECT nothing.* FROM {}) AS line",
        none_of("")
    );
    let names: Vec<String> = sqlx::query_scalar(AssertSqlSafe(names))
        .persistent(false)
        .fetch_all(&mut *connection)
        .await?;
    let columns: Vec<String> = (1..=names.len()).map(|number| format!("c{number}")).collect();
    let types: Vec<String> =
        columns.iter().map(|column| format!("pg_typeof(nothing.{column})")).collect();
    let types = format!(
        "SELECT upper(t.typname::text) FROM {}, unnest(ARRAY[{}]) WITH ORDINALITY AS u(type, place) \
         JOIN pg_catalog.pg_type t ON t.oid = u.type ORDER BY u.place",
        none_of(&format!("({})", columns.join(", "))),
        types.join(", ")
    );
    let types =
        sqlx::query_scalar(AssertSqlSafe(types)).persistent(false).fetch_all(connection).await?;
    Ok((names, types))
}

/// Selects a query's columns as texts that fit.
pub fn wrap(sql: &Guarded, columns: usize, limits: Limits) -> String {
    let aliases: Vec<String> = (1..=columns).map(|number| format!("\"c{number}\"")).collect();
    // One character more than fits, so that the cut is noticed.
    let most = limits.max_cell_bytes + 1;
    let values: Vec<String> = aliases
        .iter()
        .take(limits.max_columns)
        .map(|alias| format!("pg_catalog.left({alias}::pg_catalog.text, {most})"))
        .collect();
    format!(
        "SELECT {} FROM ({}) AS \"q\"({}) LIMIT {}",
        values.join(", "),
        sql.query(),
        aliases.join(", "),
        limits.max_rows + 1
    )
}

pub fn cells<'a>(row: &'a PgRow, types: &'a [String]) -> impl Iterator<Item = Value> + 'a {
    // A database without an encoding may contain bytes that are no text.
    (0..row.len()).map(|index| match row.try_get_unchecked::<Option<&[u8]>, _>(index) {
        Ok(Some(bytes)) => {
            let text = String::from_utf8_lossy(bytes).into_owned();
            cell(text, types.get(index).map_or("", String::as_str))
        }
        _ => Value::Null,
    })
}

/// Turns the server's text back into a number, truth value or JSON, by its type.
fn cell(text: String, data_type: &str) -> Value {
    match data_type {
        "BOOL" => Value::Bool(text == "true"),
        "INT2" | "INT4" | "INT8" | "OID" => {
            text.parse::<i64>().map_or(Value::String(text), Value::from)
        }
        "FLOAT4" | "FLOAT8" => serde_json::from_str(&text).unwrap_or(Value::String(text)),
        "JSON" | "JSONB" => match serde_json::from_str(&text) {
            Ok(value) if is_exact(&value, &text) => value,
            _ => Value::String(text),
        },
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

/// Returns whether reading a JSON text kept all digits of its numbers.
fn is_exact(value: &Value, text: &str) -> bool {
    match value {
        Value::Number(number) => !number.is_f64() || text.contains(&number.to_string()),
        Value::Array(list) => list.iter().all(|value| is_exact(value, text)),
        Value::Object(fields) => fields.values().all(|value| is_exact(value, text)),
        Value::Null | Value::Bool(_) | Value::String(_) => true,
    }
}
