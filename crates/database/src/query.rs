//! One statement with its values.

use sqlx::{
    Postgres, SqlSafeStr, SqlStr, Sqlite, postgres::PgArguments, query::Query as Statement,
    sqlite::SqliteArguments,
};

use crate::Value;

/// One statement with placeholders `$1`, `$2`, … and the values for them, in their order.
#[derive(Clone, Debug)]
pub struct Query {
    sql: SqlStr,
    values: Vec<Value>,
    is_repeatable: bool,
    is_prepared: bool,
}

/// Begins a statement; text that was put together at run time stands in [`sqlx::AssertSqlSafe`], which says that
/// nothing of it came from outside.
pub fn query(sql: impl SqlSafeStr) -> Query {
    let sql = sql.into_sql_str();
    let values = Vec::new();
    Query { sql, values, is_repeatable: false, is_prepared: true }
}

impl Query {
    /// Adds the value of the next placeholder.
    #[must_use]
    pub fn bind(mut self, value: impl Into<Value>) -> Self {
        self.values.push(value.into());
        self
    }

    /// Says that a statement that writes may run twice: it is sent once more when its connection broke.
    #[must_use]
    pub fn repeatable(self) -> Self {
        Self { is_repeatable: true, ..self }
    }

    /// Says that the text was made for one occasion: it is not kept prepared for a next one.
    #[must_use]
    pub fn unprepared(self) -> Self {
        Self { is_prepared: false, ..self }
    }

    pub(crate) fn is_repeatable(&self) -> bool {
        self.is_repeatable
    }

    pub(crate) fn for_sqlite(
        &self,
    ) -> Result<Statement<'static, Sqlite, SqliteArguments>, sqlx::Error> {
        let mut arguments = SqliteArguments::default();
        self.values.iter().try_for_each(|value| value.add_to_sqlite(&mut arguments))?;
        Ok(sqlx::query_with(self.sql.clone(), arguments).persistent(self.is_prepared))
    }

    pub(crate) fn for_postgres(
        &self,
    ) -> Result<Statement<'static, Postgres, PgArguments>, sqlx::Error> {
        let mut arguments = PgArguments::default();
        self.values.iter().try_for_each(|value| value.add_to_postgres(&mut arguments))?;
        // What is best for a list depends on how long it is, and on how large the table has become: a plan that a connection
        // keeps from when both were small goes through the table for each statement.
        let has_list = |value: &Value| matches!(value, Value::Ints(_) | Value::Texts(_));
        let is_kept = self.is_prepared && !self.values.iter().any(has_list);
        Ok(sqlx::query_with(self.sql.clone(), arguments).persistent(is_kept))
    }
}
