//! Serves the text files of one directory to models: list, read by lines, search.
//!
//! Enter at [`Server::open`]; the tools are in `tools`. Invariant: no file outside of the directory is ever opened,
//! with any path, link or race: every open goes through a capability of the directory itself. Answers are sorted and
//! depend on the files alone. Deliberately absent: any write.

mod search;
mod tools;
mod tree;

use std::path::PathBuf;

pub use search::{Hit, Search};
pub use tools::Server;
pub use tree::{Entry, Excerpt, Listing, Tree};

/// Options of `perihelion mcp files`.
#[derive(Clone, Debug, clap::Args)]
pub struct Options {
    /// Directory to serve. Files outside it cannot be read.
    #[arg(long, value_name = "DIR")]
    pub root: PathBuf,
    /// Maximum size of the text in one result in bytes.
    #[arg(long, default_value_t = 64 * 1024, value_parser = clap::value_parser!(u32).range(256..=16_777_216))]
    pub max_bytes: u32,
}

/// Why a path could not be listed, read or searched.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("cannot serve the directory {}: {source}", path.display())]
    Root { path: PathBuf, source: std::io::Error },
    #[error("no such file or directory: {path}{hint}")]
    NotFound { path: String, hint: String },
    #[error("outside the served directory, or not readable: {0}")]
    Outside(String),
    #[error("this is a directory; call list on it: {0}")]
    IsDirectory(String),
    #[error("not a text file: {0}")]
    Binary(String),
    #[error("too large to read ({bytes} bytes, at most {most}): {path}")]
    TooLarge { path: String, bytes: u64, most: u64 },
    #[error("the file ends before line {start}; it has {total} lines: {path}")]
    PastTheEnd { path: String, start: usize, total: usize },
    #[error("not a valid regular expression: {0}")]
    Regex(#[source] regex::Error),
    #[error("the search took longer than {0} s; name a path, or search for plain text")]
    TooLong(f64),
    #[error("the search text is empty")]
    EmptyQuery,
    #[error("cannot read {path}: {source}")]
    Io { path: String, source: std::io::Error },
    #[error("the reading task was aborted: {0}")]
    Aborted(#[from] tokio::task::JoinError),
}

type Result<T, E = Error> = std::result::Result<T, E>;
