//! Serves a database to models: its tables, their columns, and single SELECT statements.
//!
//! Enter at [`Server::open`]; the tools are in `tools`, their work in the crate `perihelion-sql`. Invariant: the
//! command line alone determines the readable data, the readers and the limits, never a model. Deliberately absent: any
//! write, any statement that did not pass the guard.

mod tools;

use std::path::PathBuf;
use std::time::Duration;

pub use perihelion_sql::{Database, Error, Filter};
pub use tools::Server;

/// The argument by which this program reads SQLite files for itself.
pub(super) const WORKER: &str = "sql-worker";

/// Options of `perihelion mcp sql`.
#[derive(Clone, clap::Args)]
pub struct Options {
    /// SQLite file (a path or sqlite:PATH) or Postgres URL (postgres://USER:PASSWORD@HOST/DATABASE).
    #[arg(long, env = "PERIHELION_SQL_DATABASE", hide_env_values = true)]
    pub database: String,
    /// Tables and views that can be read. Defaults to all, without system tables.
    #[arg(long, value_delimiter = ',', value_name = "NAME,…")]
    pub tables: Vec<String>,
    /// Condition that visible rows of a table must meet. {tenant} is replaced by the value of --tenant.
    #[arg(long, value_name = "TABLE:CONDITION")]
    pub filter: Vec<Filter>,
    /// Value of {tenant} in filters.
    #[arg(long, env = "PERIHELION_SQL_TENANT")]
    pub tenant: Option<String>,
    /// Maximum number of rows in a result.
    #[arg(long, default_value_t = 200, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub max_rows: u32,
    /// Maximum number of columns in a result.
    #[arg(long, default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..=2_000))]
    pub max_columns: u32,
    /// Maximum length of a cell in bytes. Longer cells are truncated.
    #[arg(long, alias = "max-cells-bytes", default_value_t = 2_000, value_parser = clap::value_parser!(u32).range(16..=10_000_000))]
    pub max_cell_bytes: u32,
    /// Maximum duration of a query in seconds.
    #[arg(long, default_value_t = 15, value_parser = clap::value_parser!(u32).range(1..=3_600))]
    pub timeout_sec: u32,
    /// Maximum cost of a query, as estimated by Postgres.
    #[arg(long, value_name = "COST")]
    pub max_cost: Option<f64>,
    /// Describe tables without ranges and frequent values.
    #[arg(long)]
    pub no_profile: bool,
    /// Add a tool that exports results as CSV, XLSX or JSON files to this directory.
    #[arg(long, value_name = "DIRECTORY")]
    pub export_dir: Option<PathBuf>,
}

/// Reads the arguments of `perihelion mcp sql` out of a servers file.
#[derive(clap::Parser)]
struct Line {
    #[command(flatten)]
    options: Options,
}

/// Opens a Postgres database as a server with these arguments would, and returns what should be changed about its role.
///
/// # Errors
/// As [`Database::open`]; unreadable arguments have no warnings.
pub async fn warnings(arguments: &[String]) -> Result<Vec<String>, Error> {
    let words = std::iter::once("sql").chain(arguments.iter().map(String::as_str));
    let Ok(Line { options }) = <Line as clap::Parser>::try_parse_from(words) else {
        return Ok(Vec::new());
    };
    if !options.database.starts_with("postgres") {
        return Ok(Vec::new());
    }
    let database = Database::open(options.settings()?).await?;
    Ok(database.warnings().to_vec())
}

impl std::fmt::Debug for Options {
    /// Leaves the database out, because its URL can contain a password.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Options").field("max_rows", &self.max_rows).finish_non_exhaustive()
    }
}

impl Options {
    /// Returns the options of the database.
    ///
    /// # Errors
    /// [`Error::Worker`] when this program cannot find itself.
    pub fn settings(&self) -> Result<perihelion_sql::Options, Error> {
        let program = std::env::current_exe().map_err(|error| Error::Worker(error.into()))?;
        Ok(perihelion_sql::Options {
            database: self.database.clone(),
            tables: self.tables.clone(),
            filters: self.filter.clone(),
            tenant: self.tenant.clone(),
            limits: perihelion_sql::Limits {
                max_rows: self.max_rows as usize,
                max_columns: self.max_columns as usize,
                max_cell_bytes: self.max_cell_bytes as usize,
                timeout: Duration::from_secs(self.timeout_sec.into()),
            },
            max_cost: self.max_cost,
            profile: !self.no_profile,
            worker: (program, vec!["mcp".into(), WORKER.into()]),
        })
    }
}
