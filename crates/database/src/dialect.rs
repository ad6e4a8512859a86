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

    /// Returns a sub-query of the elements of a list that is bound as [`crate::Value::Ints`] or
    /// [`crate::Value::Texts`] at a placeholder, as in `id IN {each}`.
    pub fn each(self, placeholder: &str) -> String {
        match self {
            Self::Sqlite => format!("(SELECT value FROM json_each({placeholder}))"),
            Self::Postgres => format!("(SELECT unnest({placeholder}))"),
        }
    }
}
