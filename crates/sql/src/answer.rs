//! The result of a query within its limits.

use std::time::{Duration, Instant};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use perihelion_analysis::ForeignKey;

/// Most bytes of cells in one answer, whatever the row limit allows.
const MAX_ANSWER_BYTES: usize = 512 * 1024;

#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Limits {
    pub max_rows: usize,
    pub max_columns: usize,
    pub max_cell_bytes: usize,
    pub timeout: Duration,
}

/// What a query yielded.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
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

/// Collects rows until a limit is reached.
pub struct Collector {
    limits: Limits,
    bytes: usize,
    answer: Answer,
}

impl Collector {
    pub fn new(mut columns: Vec<String>, limits: Limits) -> Self {
        let truncated = columns.len() > limits.max_columns;
        columns.truncate(limits.max_columns);
        Self { limits, bytes: 0, answer: Answer { columns, truncated, ..Answer::default() } }
    }

    /// Takes a row's cells; returns false if there is no space for it or any after it.
    pub fn push(&mut self, cells: impl Iterator<Item = Value>) -> bool {
        if self.answer.rows.len() == self.limits.max_rows || self.bytes > MAX_ANSWER_BYTES {
            self.answer.truncated = true;
            return false;
        }
        let width = self.answer.columns.len();
        let row: Vec<Value> = cells.take(width).map(|cell| self.fit(cell)).collect();
        self.answer.rows.push(row);
        true
    }

    pub fn has_no_columns(&self) -> bool {
        self.answer.columns.is_empty()
    }

    pub fn finish(self, started: Instant) -> Answer {
        let row_count = self.answer.rows.len();
        let elapsed_ms = u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX);
        Answer { row_count, elapsed_ms, ..self.answer }
    }

    fn fit(&mut self, cell: Value) -> Value {
        let cell = match cell {
            Value::Array(_) | Value::Object(_) => {
                let text = cell.to_string();
                if text.len() <= self.limits.max_cell_bytes {
                    self.bytes += text.len() + 16;
                    return cell;
                }
                Value::String(text)
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

/// A table or view that may be read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Table {
    /// As a statement writes it.
    pub name: String,
    /// `table` or `view`.
    pub kind: String,
    /// What the database's makers wrote about it.
    pub comment: Option<String>,
    /// Names of its columns, in order.
    pub columns: Vec<String>,
    /// Their types as the database declares them, in the same order.
    pub types: Vec<String>,
    /// Columns of the primary key.
    pub primary_key: Vec<String>,
    pub foreign_keys: Vec<Reference>,
}

/// Columns that refer to another table.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Reference {
    pub columns: Vec<String>,
    /// The table that they refer to.
    pub table: String,
    /// Its columns, in the same order.
    pub to: Vec<String>,
}

/// What is known of a statement before it runs.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct Validation {
    /// It would run.
    pub valid: bool,
    /// Why it would not, for the one who wrote it.
    pub problem: Option<String>,
    /// The statement as it would run.
    pub sql: Option<String>,
    /// Tables that it reads.
    pub tables: Vec<String>,
    /// The database's estimate, where it makes one.
    pub estimated_cost: Option<f64>,
    pub estimated_rows: Option<f64>,
    /// Aggregates that may count rows more than once, because a join multiplies them.
    pub warnings: Vec<String>,
}

pub fn summary(table: &perihelion_analysis::Table) -> Table {
    let reference = |key: &ForeignKey| Reference {
        columns: key.columns.clone(),
        table: key.table.shown(),
        to: key.to.clone(),
    };
    Table {
        name: table.name.shown(),
        kind: if table.is_view { "view" } else { "table" }.to_owned(),
        comment: table.comment.clone(),
        columns: table.columns.iter().map(|column| column.name.clone()).collect(),
        types: table.columns.iter().map(|column| column.data_type.clone()).collect(),
        primary_key: table.primary_key.clone(),
        foreign_keys: table.foreign_keys.iter().map(reference).collect(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn cells_of_every_kind_count_by_their_length() {
        let limits = Limits {
            max_rows: 10_000,
            max_columns: 1,
            max_cell_bytes: 2_000,
            timeout: Duration::from_secs(1),
        };
        for cell in [json!("x".repeat(1_000)), json!(["x".repeat(1_000)])] {
            let mut collector = Collector::new(vec!["c".into()], limits);
            while collector.push(std::iter::once(cell.clone())) {}
            let rows = collector.answer.rows.len();
            assert!(collector.answer.truncated && rows < 600, "{rows} rows");
        }
    }
}
