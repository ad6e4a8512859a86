//! One statement with its values.

use sqlx::{SqlSafeStr, SqlStr, postgres::PgArguments, sqlite::SqliteArguments};

use crate::Value;

/// One statement with placeholders `$1`, `$2`, … and the values for them, in their order.
#[derive(Clone, Debug)]
pub struct Query {
    pub(crate) sql: SqlStr,
    values: Vec<Value>,
}

/// Begins a statement; text that was put together at run time stands in [`sqlx::AssertSqlSafe`], which says that
/// nothing of it came from outside.
pub fn query(sql: impl SqlSafeStr) -> Query {
    Query { sql: sql.into_sql_str(), values: Vec::new() }
}

impl Query {
    /// Adds the value of the next placeholder.
    #[must_use]
    pub fn bind(mut self, value: impl Into<Value>) -> Self {
        self.values.push(value.into());
        self
    }

    pub(crate) fn for_sqlite(&self) -> Result<SqliteArguments, sqlx::Error> {
        let mut arguments = SqliteArguments::default();
        self.values.iter().try_for_each(|value| value.add_to_sqlite(&mut arguments))?;
        Ok(arguments)
    }

    pub(crate) fn for_postgres(&self) -> Result<PgArguments, sqlx::Error> {
        let mut arguments = PgArguments::default();
        self.values.iter().try_for_each(|value| value.add_to_postgres(&mut arguments))?;
        Ok(arguments)
    }
}
