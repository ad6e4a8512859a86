//! Where the two databases speak differently.

/// Which SQL a database speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dialect {
    Sqlite,
    Postgres,
}

impl Dialect {
    /// Returns the text of one's own dialect.
    pub fn pick<'a>(self, sqlite: &'a str, postgres: &'a str) -> &'a str {
        match self {
            Self::Sqlite => sqlite,
            Self::Postgres => postgres,
        }
    }

    /// Returns what says of a column that it is one of a list, which is bound as [`crate::Value::Ints`] or [`crate::Value::Texts`] at a
    /// placeholder, as in `id {one_of}`.
    ///
    /// Postgres looks each up in an index or a hash table; of a sub-query it may go through the list once for each row.
    pub fn one_of(self, placeholder: &str) -> String {
        match self {
            Self::Sqlite => format!("IN (SELECT value FROM json_each({placeholder}))"),
            Self::Postgres => format!("= ANY({placeholder})"),
        }
    }
}
