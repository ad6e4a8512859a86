//! Why rows could not be read or written.

use uuid::Uuid;

/// Why rows could not be read or written; the text tells the reader what to do next.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error(transparent)]
    Database(#[from] perihelion_database::Error),
    /// A value that cannot be encrypted, or read again.
    #[error("cannot encrypt or decrypt a stored value: {0}")]
    Sealed(String),
    #[error("unknown thread: {0}")]
    UnknownThread(Uuid),
    #[error("this version does not know a stored {what}: {found}")]
    UnknownWord { what: &'static str, found: String },
}

impl Error {
    /// Returns whether a row was refused because an equal one is there.
    pub fn is_duplicate(&self) -> bool {
        matches!(self, Self::Database(error) if error.is_duplicate())
    }

    /// Returns whether the database could not be used for now, so that trying again may help.
    pub fn is_passing(&self) -> bool {
        matches!(self, Self::Database(error) if error.is_passing())
    }
}
