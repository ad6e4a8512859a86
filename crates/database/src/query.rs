//! One statement with its values, and the differences between the two databases.

use sqlx::{
    AssertSqlSafe, Postgres, SqlSafeStr, SqlStr, Sqlite, postgres::PgArguments,
    query::Query as Statement, sqlite::SqliteArguments,
};

use crate::{StoredRow, Value};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dialect {
    Sqlite,
    Postgres,
}

impl Dialect {
    pub fn pick<'a>(self, sqlite: &'a str, postgres: &'a str) -> &'a str {
        match self {
            Self::Sqlite => sqlite,
            Self::Postgres => postgres,
        }
    }

    /// Returns the condition that a column is in a list, which is bound as [`crate::Value::Ints`] or
    /// [`crate::Value::Texts`] at a placeholder, as in `id {one_of}`.
    ///
    /// Postgres looks each up in an index or a hash table; of a sub-query it may go through the list once for each row.
    pub fn one_of(self, placeholder: &str) -> String {
        match self {
            Self::Sqlite => format!("IN (SELECT value FROM json_each({placeholder}))"),
            Self::Postgres => format!("= ANY({placeholder})"),
        }
    }

    /// Returns the end of a statement that looks up rows of a table, named `name`, for each row of a list: it follows
    /// `SELECT … FROM` and the list.
    ///
    /// Without `OFFSET`, Postgres may join the list with the whole table, until it knows how large that is.
    pub fn look_up(self, table: &str, name: &str, condition: &str) -> String {
        let rows = format!("{table} {name} WHERE {condition}");
        match self {
            Self::Sqlite => format!("CROSS JOIN {rows}"),
            Self::Postgres => format!("CROSS JOIN LATERAL (SELECT * FROM {rows} OFFSET 0) {name}"),
        }
    }
}

/// One statement with placeholders `$1`, `$2`, … and the values for them, in their order.
#[derive(Clone, Debug)]
pub struct Query {
    sql: SqlStr,
    values: Vec<Value>,
    is_repeatable: bool,
    plan: Plan,
    is_several: bool,
}

/// When a connection keeps a statement's plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Plan {
    /// Unless a value is a list.
    WithoutLists,
    Always,
    Never,
}

/// Begins a statement; text that is composed at run time must be [`sqlx::AssertSqlSafe`], which asserts that no part of
/// it came from outside.
pub fn query(sql: impl SqlSafeStr) -> Query {
    let sql = sql.into_sql_str();
    let values = Vec::new();
    Query { sql, values, is_repeatable: false, plan: Plan::WithoutLists, is_several: false }
}

/// Begins a statement that reads rows of a type, as [`Database::rows`](crate::Database::rows) returns them.
pub fn select<T: StoredRow>(from: &'static str) -> Query {
    query(AssertSqlSafe(format!("SELECT {} {from}", T::COLUMNS)))
}

impl Query {
    #[must_use]
    pub fn bind(mut self, value: impl Into<Value>) -> Self {
        self.values.push(value.into());
        self
    }

    /// Adds the values of the next placeholders, in their order.
    #[must_use]
    pub fn binds(mut self, values: impl Values) -> Self {
        values.add_to(&mut self.values);
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
        Self { plan: Plan::Never, ..self }
    }

    /// Says that one plan is best for lists of any length, as for a list that is only turned into rows.
    #[must_use]
    pub fn planned_once(self) -> Self {
        Self { plan: Plan::Always, ..self }
    }

    /// Says that the text for SQLite has several statements; Postgres takes one.
    ///
    /// Those that write happen together or not at all, by [`Database::execute_returning`](crate::Database::execute_returning).
    /// Those that read stand between `BEGIN` and `COMMIT`, for [`Database::fetch_all`](crate::Database::fetch_all) on a file.
    #[must_use]
    pub fn several(self) -> Self {
        Self { is_several: true, ..self }
    }

    /// Joins two statements that write and return nothing into one, so that both happen or neither; each may have one
    /// text with no other statement. On Postgres, neither sees what the other one changes.
    #[must_use]
    pub fn and(mut self, other: Self, dialect: Dialect) -> Self {
        let first = self.sql.as_str();
        let second = other.numbered_from(self.values.len());
        let text = match dialect {
            Dialect::Sqlite => format!("{first}; {second}"),
            Dialect::Postgres => format!("WITH first AS ({first}) {second}"),
        };
        self.sql = AssertSqlSafe(text).into_sql_str();
        self.values.extend(other.values);
        let is_repeatable = self.is_repeatable && other.is_repeatable;
        Self { is_repeatable, is_several: dialect == Dialect::Sqlite, ..self }
    }

    /// Returns the text with the numbers of its placeholders after those of `count` others.
    fn numbered_from(&self, count: usize) -> String {
        let mut parts = self.sql.as_str().split('$');
        let mut text = parts.next().unwrap_or_default().to_owned();
        for part in parts {
            let end = part.find(|sign: char| !sign.is_ascii_digit()).unwrap_or(part.len());
            let (number, rest) = part.split_at(end);
            let number = number.parse::<usize>().map_or(0, |number| number + count);
            text.push_str(&format!("${number}{rest}"));
        }
        text
    }

    pub(crate) fn is_several(&self) -> bool {
        self.is_several
    }

    pub(crate) fn is_repeatable(&self) -> bool {
        self.is_repeatable
    }

    pub(crate) fn for_sqlite(
        &self,
    ) -> Result<Statement<'static, Sqlite, SqliteArguments>, sqlx::Error> {
        let mut arguments = SqliteArguments::default();
        self.values.iter().try_for_each(|value| value.add_to_sqlite(&mut arguments))?;
        Ok(sqlx::query_with(self.sql.clone(), arguments).persistent(self.plan != Plan::Never))
    }

    pub(crate) fn for_postgres(
        &self,
    ) -> Result<Statement<'static, Postgres, PgArguments>, sqlx::Error> {
        let mut arguments = PgArguments::default();
        self.values.iter().try_for_each(|value| value.add_to_postgres(&mut arguments))?;
        // What is best for a list depends on how long it is, and on how large the table has become: a plan that a connection
        // keeps from when both were small goes through the table for each statement.
        let has_list = |value: &Value| matches!(value, Value::Ints(_) | Value::Texts(_));
        let is_kept = match self.plan {
            Plan::Always => true,
            Plan::Never => false,
            Plan::WithoutLists => !self.values.iter().any(has_list),
        };
        Ok(sqlx::query_with(self.sql.clone(), arguments).persistent(is_kept))
    }
}

/// Values of several placeholders: a tuple.
pub trait Values {
    #[doc(hidden)]
    fn add_to(self, values: &mut Vec<Value>);
}

macro_rules! values {
    ($($kind:ident $value:ident),+) => {
        impl<$($kind: Into<Value>),+> Values for ($($kind,)+) {
            fn add_to(self, values: &mut Vec<Value>) {
                let ($($value,)+) = self;
                values.extend([$($value.into()),+]);
            }
        }
    };
}

values!(A a, B b);
values!(A a, B b, C c);
values!(A a, B b, C c, D d);
values!(A a, B b, C c, D d, E e);
values!(A a, B b, C c, D d, E e, F f);
values!(A a, B b, C c, D d, E e, F f, G g);
values!(A a, B b, C c, D d, E e, F f, G g, H h);
