//! Stores documents and finds passages for a question in them, with page, section and quote.
//!
//! Enter at [`Server::open`]; the tools are in `tools`, their results in `answers`. Invariants: a quote is the text
//! between `start` and `end`, counted in characters. With a directory, no file outside of it is read. Documents are
//! parsed in a separate process. Deliberately absent: answers. Texts are found by vector search with an embeddings
//! endpoint, otherwise by keyword search, and a configured model describes documents.

mod answers;
mod tools;

use std::path::PathBuf;

use perihelion_ingest::OWNER;
pub use tools::Server;

/// The field in which a call names its tenant.
pub const TENANT_META: &str = "dev.perihelion/tenant";

/// Options of `perihelion mcp documents`.
#[derive(Clone, Debug, clap::Args)]
pub struct Options {
    /// Database for the documents. Defaults to the database for threads [env: DATABASE_URL]
    #[arg(long, value_name = "URL")]
    pub database: Option<String>,
    /// Collection for adding and searching. Defaults to adding to `default` and searching all collections
    #[arg(long, value_name = "NAME")]
    pub collection: Option<String>,
    /// Owner of the documents
    #[arg(long, value_name = "NAME", default_value = OWNER)]
    pub owner: String,
    /// Only add files in this directory. Defaults to all files that this user can read
    #[arg(long, value_name = "DIR")]
    pub root: Option<PathBuf>,
    /// Use keyword search only, without an embeddings endpoint
    #[arg(long)]
    pub words_only: bool,
    /// Store documents without descriptions by a model
    #[arg(long = "no-descriptions", alias = "undescribed")]
    pub undescribed: bool,
    /// Reject adding and deleting documents
    #[arg(long)]
    pub read_only: bool,
}

/// Errors of this server itself; those of other crates are passed on.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("cannot serve the directory {}: {source}", path.display())]
    Root { path: PathBuf, source: std::io::Error },
    #[error("no HTTP client can be made for the embeddings endpoint and the parser: {0}")]
    Client(#[source] reqwest::Error),
    #[error("pass either `path` or `text`")]
    PathOrText,
    #[error("cannot read {path}: {source}")]
    File { path: String, source: std::io::Error },
    #[error("this server only reads: it was started with --read-only")]
    ReadOnly,
}

type Result<T, E = crate::Cause> = std::result::Result<T, E>;
