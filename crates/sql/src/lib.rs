//! A database for models: its contents, and single reading statements that always end.
//!
//! Enter at [`Database::open`]. Invariant: four independent layers protect the data from a model. They are the guard
//! (`perihelion_analysis::guard`), a read-only connection, the database's own permissions (SQLite's authorizer, the
//! Postgres role), and external limits on rows, cells and time: SQLite is read in a child process that is killed.
//! Deliberately absent: any write, MCP, models.
//!
//! For Postgres, connect with a separate role that owns no tables and can only `SELECT` from the tables for models; a
//! superuser's read-only transaction can still read files of the server.

mod answer;
mod database;
mod export;
mod hint;
mod postgres;
mod profile;
mod sqlite;
pub mod text;
mod values;
mod worker;

use perihelion_clock as clock;
use std::path::PathBuf;
use std::time::Duration;

pub use answer::{Answer, Limits, Reference, Table, Validation};
pub use database::Database;
pub use export::{Format, export};
pub use profile::{Column, Description};
pub use values::{FoundValue, FoundValues};
pub use worker::serve as serve_worker;

/// The options of a database; all of them come from the operator, never from a model.
#[derive(Clone)]
pub struct Options {
    /// SQLite file (a path or sqlite:PATH) or Postgres URL.
    pub database: String,
    /// Only these tables and views may be read; empty for all of the database's own.
    pub tables: Vec<String>,
    /// Conditions for the visible rows of a table; `{tenant}` is replaced by the tenant.
    pub filters: Vec<Filter>,
    /// The value of `{tenant}` in a filter.
    pub tenant: Option<String>,
    pub limits: Limits,
    /// Postgres refuses to run statements with a higher estimate.
    pub max_cost: Option<f64>,
    /// Descriptions show ranges and frequent values.
    pub profile: bool,
    /// The program that reads SQLite files, and its arguments.
    pub worker: (PathBuf, Vec<String>),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Filter {
    pub table: String,
    pub condition: String,
}

impl std::str::FromStr for Filter {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        match text.split_once(':') {
            Some((table, condition)) if !condition.trim().is_empty() => {
                Ok(Self { table: table.trim().to_owned(), condition: condition.trim().to_owned() })
            }
            _ => Err(Error::BadFilter(text.to_owned())),
        }
    }
}

/// Why a statement did not run, or the database could not be opened.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The guard refused the statement; it never reached the database.
    #[error("refused: {0}")]
    Refused(#[from] perihelion_analysis::guard::Refusal),
    /// The database's own error text, without values of rows.
    #[error("the database says: {message}{hint}")]
    Database { message: String, hint: String },
    /// The time limit stopped the query.
    #[error(
        "the query was stopped after {} s; narrow it, or aggregate in fewer rows",
        limit.as_secs()
    )]
    Timeout { limit: Duration },
    /// The database estimates more work than the operator allows.
    #[error(
        "the query is estimated to cost {estimated:.0}, more than the limit of {limit:.0}; filter or aggregate more narrowly"
    )]
    TooCostly { estimated: f64, limit: f64 },
    /// A table that does not exist or is not permitted.
    #[error("no such table: {name}{hint}")]
    UnknownTable { name: String, hint: String },
    /// `--database` is neither a file nor a Postgres URL.
    #[error("--database must be a SQLite file or a postgres:// URL; this is neither: {0}")]
    BadDatabase(String),
    /// There is no such file.
    #[error("no such SQLite database file: {0}")]
    NoFile(String),
    /// `--tables` names a table that is not there.
    #[error("--tables names a table that the database does not have: {name}{hint}")]
    NoSuchTableOption { name: String, hint: String },
    /// `--filter` is not of the form TABLE:CONDITION.
    #[error(
        "--filter must be TABLE:CONDITION, such as orders:tenant_id = {{tenant}}; this is not: {0}"
    )]
    BadFilter(String),
    /// A filter names a table that is not there, or a tenant that was not given.
    #[error("cannot use --filter for {table}: {reason}")]
    UnusableFilter { table: String, reason: String },
    /// The database could not be opened or reached; the URL is not repeated.
    #[error("cannot open the database: {0}")]
    Connect(String),
    /// The process that reads the database could not be started or ended early.
    #[error("the process that reads the database failed: {0}")]
    Worker(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// A result could not be written as a file.
    #[error("cannot write the result: {0}")]
    Export(#[source] std::io::Error),
}

pub(crate) type Result<T, E = Error> = std::result::Result<T, E>;
