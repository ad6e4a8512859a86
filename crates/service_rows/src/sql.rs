//! Statements that grow by conditions.

use perihelion_database::{Dialect, Query, Value, query};
use serde_json::Value as Json;
use sqlx::AssertSqlSafe;

/// A statement under construction: fixed text, with values for its placeholders.
#[derive(Debug)]
pub(crate) struct Statement {
    dialect: Dialect,
    text: String,
    values: Vec<Value>,
}

impl Statement {
    pub(crate) fn new(dialect: Dialect, text: &str) -> Self {
        Self { dialect, text: text.to_owned(), values: Vec::new() }
    }

    /// Appends fixed text.
    pub(crate) fn text(&mut self, text: &str) -> &mut Self {
        self.text.push_str(text);
        self
    }

    /// Appends the placeholder of a value.
    pub(crate) fn value(&mut self, value: impl Into<Value>) -> &mut Self {
        self.values.push(value.into());
        let number = self.values.len();
        self.text.push_str(&format!("${number}"));
        self
    }

    /// Appends the condition that a JSON object in `column` has all that `wanted` has.
    pub(crate) fn contains(&mut self, column: &str, wanted: &Json) -> &mut Self {
        match self.dialect {
            Dialect::Postgres => self.text(column).text(" @> ").value(wanted.clone()),
            Dialect::Sqlite => self
                .text("NOT EXISTS (SELECT 1 FROM json_each(")
                .value(wanted.clone())
                .text(") w WHERE NOT EXISTS (SELECT 1 FROM json_each(")
                .text(column)
                .text(") h WHERE h.key = w.key AND h.value IS w.value))"),
        }
    }

    /// Appends a page: at most `limit` rows after `offset`.
    pub(crate) fn page(&mut self, limit: u32, offset: u32) -> &mut Self {
        self.text(" LIMIT ").value(limit).text(" OFFSET ").value(offset)
    }

    pub(crate) fn build(self) -> Query {
        // The text is put together from constants; everything from outside is a value.
        self.values.into_iter().fold(query(AssertSqlSafe(self.text)), Query::bind)
    }
}
