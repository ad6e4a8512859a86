//! The profile of a table: columns with ranges and frequent values, its size, a few rows.

use std::time::Duration;

use perihelion_analysis::{Catalogue, Dialect, kind_of};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use crate::answer::{Answer, Limits, Reference, Table, summary};
use crate::database::{Database, find, quoted};
use crate::{Error, Result};

const SAMPLE_ROWS: usize = 3;
/// Longest time spent on one look at a table.
const LOOK_LIMIT: Duration = Duration::from_secs(2);
/// Rows that are read for ranges and frequent values.
pub(crate) const PROFILED_ROWS: usize = 10_000;
/// Most columns that are looked at.
const PROFILED_COLUMNS: usize = 40;
/// A column with more different values has no frequent ones.
const MAX_DISTINCT: u64 = 50;
/// Frequent values that are shown.
const FREQUENT: usize = 8;

/// One column of a described table.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct Column {
    pub name: String,
    /// As the database declares it.
    #[serde(rename = "type")]
    pub data_type: String,
    pub nullable: bool,
    pub primary_key: bool,
    /// What the database's makers wrote about it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub comment: Option<String>,
    /// Smallest value among the rows looked at.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub min: Option<Value>,
    /// Largest value among the rows looked at.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max: Option<Value>,
    /// Values that occur most, where there are few different ones.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub frequent: Vec<Value>,
}

/// A table in full: columns, keys, size, a few rows.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Description {
    /// As a statement writes it.
    pub name: String,
    /// `table` or `view`.
    pub kind: String,
    /// What the database's makers wrote about it.
    pub comment: Option<String>,
    pub columns: Vec<Column>,
    pub foreign_keys: Vec<Reference>,
    /// Number of rows; absent if they could not be counted.
    pub row_count: Option<i64>,
    /// Ranges and frequent values are those of the first rows only; others may be in the rest.
    pub is_sample: bool,
    /// The first few rows.
    pub sample: Answer,
    /// Why the rows could not be counted or read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
}

impl Database {
    /// Returns a table's columns, size and first rows.
    ///
    /// # Errors
    /// [`Error::UnknownTable`] with the nearest name, or when the database fails.
    pub async fn describe(&self, name: &str) -> Result<Description> {
        let catalogue = self.catalogue().await?;
        let table = find(&catalogue, name)?;
        let from = quoted(&table.name);
        let limits = Limits { max_rows: SAMPLE_ROWS, ..self.limits() };
        let look = Limits { max_rows: 1, timeout: limits.timeout.min(LOOK_LIMIT), ..limits };
        let count = self.own(&format!("SELECT count(*) FROM {from}"), &catalogue, look).await;
        let (count, uncounted) = or_problem(count)?;
        let row_count = count.rows.first().and_then(|row| row.first()?.as_i64());
        // A role may not be permitted to read every column.
        let readable = table.columns.iter().map(|column| self.dialect().quote(&column.name));
        let names = match self.dialect() {
            Dialect::Postgres => readable.collect::<Vec<_>>().join(", "),
            _ => "*".to_owned(),
        };
        let sample = format!("SELECT {names} FROM {from} LIMIT {SAMPLE_ROWS}");
        let (sample, problem) = or_problem(self.own(&sample, &catalogue, limits).await)?;
        let mut columns: Vec<Column> = table
            .columns
            .iter()
            .map(|column| Column {
                name: column.name.clone(),
                data_type: column.data_type.clone(),
                nullable: column.nullable,
                primary_key: table.primary_key.contains(&column.name),
                comment: column.comment.clone(),
                ..Column::default()
            })
            .collect();
        if self.profiles() {
            let rows = format!("(SELECT {names} FROM {from} LIMIT {PROFILED_ROWS}) AS p");
            self.profile(&rows, &catalogue, &mut columns).await;
        }
        let Table { name, kind, comment, foreign_keys, .. } = summary(table);
        Ok(Description {
            name,
            kind,
            comment,
            columns,
            foreign_keys,
            row_count,
            is_sample: row_count.is_none_or(|count| count > PROFILED_ROWS as i64),
            sample,
            problem: problem.or(uncounted),
        })
    }

    /// Adds ranges and frequent values of rows; those that take too long are left out.
    async fn profile(&self, rows: &str, catalogue: &Catalogue, columns: &mut [Column]) {
        let limits = Limits {
            max_rows: FREQUENT,
            max_columns: PROFILED_COLUMNS * 3,
            max_cell_bytes: 80,
            timeout: LOOK_LIMIT,
        };
        let looked: Vec<usize> = (0..columns.len())
            .filter(|at| is_ordered(&columns[*at].data_type, self.dialect()))
            .take(PROFILED_COLUMNS)
            .collect();
        let items: Vec<String> = looked
            .iter()
            .map(|at| {
                let name = self.dialect().quote(&columns[*at].name);
                // Postgres has no smallest value of a domain of an enumeration.
                let is_enum = kind_of(&columns[*at].data_type) == "enum";
                let value = if is_enum { format!("{name}::text") } else { name };
                format!("min({value}), max({value}), count(DISTINCT {value})")
            })
            .collect();
        if items.is_empty() {
            return;
        }
        let sql = format!("SELECT {} FROM {rows}", items.join(", "));
        let Ok(answer) = self.own(&sql, catalogue, limits).await else { return };
        let Some(cells) = answer.rows.first() else { return };
        for (place, at) in looked.iter().enumerate() {
            let cell = |offset: usize| cells.get(place * 3 + offset).filter(|v| !v.is_null());
            let column = &mut columns[*at];
            column.min = cell(0).cloned();
            column.max = cell(1).cloned();
            let distinct = cell(2).and_then(Value::as_u64).unwrap_or(0);
            if distinct == 0 || distinct > MAX_DISTINCT || column.primary_key {
                continue;
            }
            let name = self.dialect().quote(&column.name);
            let sql = format!(
                "SELECT {name} FROM {rows} WHERE {name} IS NOT NULL GROUP BY {name} ORDER BY count(*) DESC, {name} LIMIT {FREQUENT}"
            );
            if let Ok(answer) = self.own(&sql, catalogue, limits).await {
                column.frequent = answer.rows.into_iter().flatten().collect();
            }
        }
    }
}

/// Returns what was read, or nothing with the problem if the database could not read it.
fn or_problem(read: Result<Answer>) -> Result<(Answer, Option<String>)> {
    match read {
        Ok(answer) => Ok((answer, None)),
        Err(error @ (Error::Database { .. } | Error::Timeout { .. })) => {
            Ok((Answer::default(), Some(error.to_string())))
        }
        Err(error) => Err(error),
    }
}

/// Returns whether values of a type have an order.
fn is_ordered(data_type: &str, dialect: Dialect) -> bool {
    let kind = kind_of(data_type).to_ascii_lowercase();
    match dialect {
        Dialect::Postgres => {
            ["char", "text", "enum", "int", "num", "double", "real", "date", "time"]
                .iter()
                .any(|part| kind.contains(part))
                && !["[]", "point", "range"].iter().any(|part| kind.contains(part))
        }
        _ => !kind.contains("blob"),
    }
}
