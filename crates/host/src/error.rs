//! Errors of hosted graphs.

use std::path::PathBuf;
use std::sync::Arc;

/// The fix for an environment without the package.
const ENVIRONMENT: &str = "activate a Python environment that has perihelion-agents, or create one in .venv next to the file";

/// Why the graphs of a `langgraph.json` cannot be hosted, or a child did not answer.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("cannot read {}: {source}", path.display())]
    Read { path: PathBuf, source: std::io::Error },
    #[error("{} is not a langgraph.json: {source}", path.display())]
    Parse { path: PathBuf, source: serde_json::Error },
    /// A quote in the environment file is not closed.
    #[error("{} has a quote in line {line} that is not closed; close it", path.display())]
    Unclosed { path: PathBuf, line: usize },
    /// A field of the file is not supported.
    #[error("{} has {field}, which is not supported; {way_out}", path.display())]
    Unsupported { path: PathBuf, field: String, way_out: &'static str },
    #[error("{} has no graphs; add graphs: {{\"agent\": \"./agent.py:graph\"}}", .0.display())]
    NoGraphs(PathBuf),
    #[error(
        "hosted graphs need a database that their process can open; pass --database with a file or Postgres"
    )]
    InMemory,
    #[error(transparent)]
    Database(#[from] perihelion_database::Error),
    #[error("cannot encrypt the checkpoints of hosted graphs: {0}")]
    Key(#[from] perihelion_settings::config::NoKey),
    #[error("cannot start {}: {source}; {}", python.display(), ENVIRONMENT)]
    Start { python: PathBuf, source: std::io::Error },
    /// The first child process ended before it had loaded the graphs, or a child did not load them in time.
    #[error("{} cannot load the graphs; see its output for the reason. If perihelion is missing there, {}", .0.display(), ENVIRONMENT)]
    Load(PathBuf),
    /// The last child process ended, and another one could not load the graphs a moment ago.
    #[error("cannot load the graphs again: {0}")]
    Reload(Arc<Error>),
    /// The child process ended, or did not answer in time.
    #[error("the process of the graphs ended; see its output for the reason")]
    Gone,
    #[error("the process of the graphs sent an invalid frame: {0}")]
    Frame(#[from] serde_json::Error),
    /// Python raised an exception.
    #[error("{kind}: {message}")]
    Python { kind: String, message: String, traceback: String },
    #[error("the process of the graphs answered with {0} out of turn")]
    OutOfTurn(&'static str),
}
