//! Why rows could not be read or written.

use uuid::Uuid;

pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Why rows could not be read or written; the text contains the next step for the reader.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error(transparent)]
    Database(#[from] perihelion_database::Error),
    #[error("cannot encrypt or decrypt a stored value: {0}")]
    Sealed(#[source] perihelion_database::Cause),
    #[error("unknown thread: {0}")]
    UnknownThread(Uuid),
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
