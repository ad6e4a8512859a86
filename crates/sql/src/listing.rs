//! What is said of tables and statements, in words of its own.

use perihelion_analysis::ForeignKey;
use schemars::JsonSchema;
use serde::Serialize;

use crate::database::kind;

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

/// Tells of a table.
pub fn summary(table: &perihelion_analysis::Table) -> Table {
    let reference = |key: &ForeignKey| Reference {
        columns: key.columns.clone(),
        table: key.table.shown(),
        to: key.to.clone(),
    };
    Table {
        name: table.name.shown(),
        kind: kind(table.is_view).to_owned(),
        comment: table.comment.clone(),
        columns: table.columns.iter().map(|column| column.name.clone()).collect(),
        types: table.columns.iter().map(|column| column.data_type.clone()).collect(),
        primary_key: table.primary_key.clone(),
        foreign_keys: table.foreign_keys.iter().map(reference).collect(),
    }
}
