//! Statements that grow by conditions.

use perihelion_database::{Dialect, Query, Value, query};
use serde_json::Value as Json;
use sqlx::AssertSqlSafe;

/// How a field of a JSON object is compared, in the words of each dialect.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Comparison {
    sqlite: &'static str,
    postgres: &'static str,
}

impl Comparison {
    /// Reads the name of a comparison.
    pub(crate) fn of(name: &str) -> Option<Self> {
        let of_both = |operator| Some(Self { sqlite: operator, postgres: operator });
        match name {
            "$eq" => Some(Self { sqlite: "IS", postgres: "IS NOT DISTINCT FROM" }),
            "$ne" => Some(Self { sqlite: "IS NOT", postgres: "IS DISTINCT FROM" }),
            "$gt" => of_both(">"),
            "$gte" => of_both(">="),
            "$lt" => of_both("<"),
            "$lte" => of_both("<="),
            _ => None,
        }
    }
}

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

    /// Appends the condition that the field `name` of a JSON object in `column` compares so with a value.
    pub(crate) fn compares(
        &mut self,
        column: &str,
        name: &str,
        Comparison { sqlite, postgres }: Comparison,
        wanted: &Json,
    ) -> &mut Self {
        match self.dialect {
            Dialect::Postgres => self
                .text("(")
                .text(column)
                .text(" -> ")
                .value(name)
                .text(") ")
                .text(postgres)
                .text(" ")
                .value(wanted.clone()),
            Dialect::Sqlite => self
                .text("(SELECT h.value FROM json_each(")
                .text(column)
                .text(") h WHERE h.key = ")
                .value(name)
                .text(") ")
                .text(sqlite)
                .text(" json_extract(")
                .value(wanted.clone())
                .text(", '$')"),
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
