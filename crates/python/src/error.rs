//! Why an operation of the core failed, and the Python exception for it.

use pyo3::PyErr;
use pyo3::exceptions::{PyConnectionError, PyRuntimeError, PyValueError};

/// Why an operation of the core failed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("SQLite failed: {0}")]
    Sqlite(#[from] rusqlite::Error),
    #[error("PostgreSQL refused a statement: {}", with_source(.0))]
    Postgres(#[source] tokio_postgres::Error),
    #[error("PostgreSQL cannot be reached; check the connection string and the server: {}", with_source(.0))]
    Connect(#[source] tokio_postgres::Error),
    #[error("the TLS settings of the connection string are invalid: {0}")]
    Tls(#[source] Box<dyn std::error::Error + Send + Sync>),
    #[error("unknown type of column: {0}")]
    Column(String),
    #[error(
        "another SQLite library in this process has the file open, which voids its locks; \
         close that connection or use another file: {0}"
    )]
    OpenElsewhere(String),
    #[error("the database is closed; open a new saver or store")]
    Closed,
    #[error("a file cannot be opened: {0}")]
    File(#[from] std::io::Error),
    #[error("a value has {0} bytes; store it elsewhere and keep its address in the state")]
    TooLong(usize),
    #[error("stored bytes are damaged: {0}")]
    Damaged(&'static str),
    #[error(
        "stored bytes are encrypted with another key; pass the key they were written with as encryption_key"
    )]
    Key,
    #[error("an encryption key has {0} bytes; pass 16 or 32 bytes")]
    KeyLength(usize),
}

/// Returns the message of a PostgreSQL error with its cause, which its own text leaves out.
fn with_source(error: &tokio_postgres::Error) -> String {
    match std::error::Error::source(error) {
        Some(source) => format!("{error}: {source}"),
        None => error.to_string(),
    }
}

impl From<tokio_postgres::Error> for Error {
    fn from(error: tokio_postgres::Error) -> Self {
        Self::Postgres(error)
    }
}

impl Error {
    /// Whether the connection was lost, so that another may work.
    pub fn is_lost_connection(&self) -> bool {
        matches!(self, Self::Postgres(error) if error.is_closed())
    }
}

impl From<Error> for PyErr {
    fn from(error: Error) -> Self {
        let text = error.to_string();
        match error {
            Error::Connect(_) => PyConnectionError::new_err(text),
            Error::Tls(_) | Error::KeyLength(_) | Error::Key | Error::TooLong(_) => {
                PyValueError::new_err(text)
            }
            _ => PyRuntimeError::new_err(text),
        }
    }
}
