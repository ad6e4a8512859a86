//! Why a database refused or failed.

use crate::postgres::is_broken;

pub type Cause = Box<dyn std::error::Error + Send + Sync>;

/// Why a database refused or failed; the text contains the next step for the reader.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error(
        "the database {url} was written by a newer version of perihelion (migration {found}, this version knows {known}); upgrade this binary"
    )]
    Newer { url: String, found: i64, known: i64 },
    /// The database cannot be reached; `url` carries no password.
    #[error("cannot open the database {url}: {reason}; check --database or DATABASE_URL")]
    Unreachable {
        url: String,
        #[source]
        reason: Cause,
    },
    /// The disk or the database is full; the attempted write left no change.
    #[error(
        "the database {url} is full: {reason}. Free space and try again; committed data is safe"
    )]
    Full { url: String, reason: String },
    /// Another process has an unfinished write on the file; the attempted write left no change.
    #[error(
        "another process holds a write lock on the database {url}. Continue or stop that process (`fuser` lists it) and try again; nothing committed is lost"
    )]
    Locked { url: String },
    /// The file, or its place, is read-only; there was no write.
    #[error(
        "the database {url} is read-only. Copy it to a writable place, or pass another --database"
    )]
    ReadOnly { url: String },
    #[error(
        "deleted, but the data remains in the log of {url} while another connection reads an older version. The next deletion after it ends removes the data"
    )]
    Unscrubbed { url: String },
    #[error("column {column} of a stored row cannot be read: {source}")]
    Column { column: String, source: Cause },
    #[error("the database failed: {0}")]
    Failed(#[from] sqlx::Error),
}

impl Error {
    /// Returns whether the database could not be used for now: gone, restarting, busy or full.
    ///
    /// The same write can be tried again later.
    pub fn is_passing(&self) -> bool {
        match self {
            Self::Unreachable { .. } | Self::Full { .. } | Self::Locked { .. } => true,
            Self::Failed(error) => is_passing(error),
            _ => false,
        }
    }

    /// Returns whether the database could not be reached, or did not answer; a later attempt may succeed.
    pub fn is_unreachable(&self) -> bool {
        match self {
            Self::Unreachable { .. } => true,
            Self::Failed(error) => is_broken(error),
            _ => false,
        }
    }

    /// Returns whether a row was refused because an equal one is there: a primary key or a unique index.
    pub fn is_duplicate(&self) -> bool {
        let Self::Failed(error) = self else { return false };
        error.as_database_error().is_some_and(|answer| answer.is_unique_violation())
    }

    /// Returns whether a row was refused because a referenced one is missing: a foreign key.
    pub fn is_orphan(&self) -> bool {
        let Self::Failed(error) = self else { return false };
        error.as_database_error().is_some_and(|answer| answer.is_foreign_key_violation())
    }
}

/// Returns whether a statement failed because the database could not be used for now.
pub fn is_passing(error: &sqlx::Error) -> bool {
    let code = error.as_database_error().and_then(|answer| answer.code());
    is_broken(error)
        || code.is_some_and(|code| {
            // Postgres: resources, deadlock. SQLite: busy, and its extended forms.
            let is_class = |class| code.len() == 5 && code.starts_with(class);
            is_class("53") || is_class("40") || ["5", "261", "517"].contains(&&*code)
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_that_does_not_answer_is_unreachable_and_a_refused_statement_is_not() {
        let silence = std::io::Error::from(std::io::ErrorKind::TimedOut);
        assert!(Error::Failed(sqlx::Error::Io(silence)).is_unreachable());
        assert!(!Error::Failed(sqlx::Error::RowNotFound).is_unreachable());
        assert!(!Error::Locked { url: "sqlite:t.db".to_owned() }.is_unreachable());
    }
}
