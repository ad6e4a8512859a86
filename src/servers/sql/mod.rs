//! Serves a database to models: its tables, their columns, and single SELECT statements.
//!
//! Enter at [`Server::open`]; the tools are in `tools`. Invariant: four layers stand between a model and
//! the data, and none relies on another: the [`guard`], a connection that cannot write, the database's own
//! permissions (SQLite's authorizer, the Postgres role), and limits on rows, cells and time.
//! Deliberately absent: any write, any statement that did not pass the guard.
//!
//! For Postgres, connect as a role of its own that owns nothing and may only `SELECT` from the tables meant
//! for models; a superuser's read-only transaction can still read files of the server.

mod authorizer;
mod database;
pub mod guard;
mod hint;
mod postgres;
mod sqlite;
mod table;
mod tools;

use std::time::Duration;

pub use database::{Answer, Database, Description, Limits, Table};
pub use tools::Server;

/// What `perihelion mcp sql` is told.
#[derive(Clone, clap::Args)]
pub struct Options {
    /// SQLite file (a path or sqlite:PATH) or Postgres URL (postgres://USER:PASSWORD@HOST/DATABASE).
    #[arg(long, env = "PERIHELION_SQL_DATABASE", hide_env_values = true)]
    pub database: String,
    /// Only these tables and views may be read; by default all of the database's own.
    #[arg(long, value_delimiter = ',', value_name = "NAME,…")]
    pub tables: Vec<String>,
    /// Most rows in an answer.
    #[arg(long, default_value_t = 200, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub max_rows: u32,
    /// Most columns in an answer.
    #[arg(long, default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..=2_000))]
    pub max_columns: u32,
    /// Longest text of one cell, in bytes; longer ones are cut.
    #[arg(long, alias = "max-cells-bytes", default_value_t = 2_000, value_parser = clap::value_parser!(u32).range(16..=10_000_000))]
    pub max_cell_bytes: u32,
    /// A query that runs longer is stopped, in seconds.
    #[arg(long, default_value_t = 15, value_parser = clap::value_parser!(u32).range(1..=3_600))]
    pub timeout_sec: u32,
}

impl std::fmt::Debug for Options {
    /// Leaves the database out: its URL may hold a password.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Options").field("limits", &self.limits()).finish_non_exhaustive()
    }
}

impl Options {
    /// Returns the bounds that every query runs under.
    pub fn limits(&self) -> Limits {
        Limits {
            max_rows: self.max_rows as usize,
            max_columns: self.max_columns as usize,
            max_cell_bytes: self.max_cell_bytes as usize,
            timeout: Duration::from_secs(self.timeout_sec.into()),
        }
    }
}

/// Why a statement did not run, or the database could not be opened.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The guard refused the statement; it never reached the database.
    #[error("refused: {0}")]
    Refused(#[from] guard::Refusal),
    /// The database answered with an error of its own, in its own words.
    #[error("the database says: {message}{hint}")]
    Database { message: String, hint: String },
    /// The time limit stopped the query.
    #[error(
        "the query was stopped after {} s; narrow it, or aggregate in fewer rows",
        limit.as_secs()
    )]
    Timeout { limit: Duration },
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
    /// The database could not be opened or reached; the URL is not repeated.
    #[error("cannot open the database: {0}")]
    Connect(#[source] sqlx::Error),
}
