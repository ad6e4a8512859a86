//! Calls the HTTP API that a description describes: `perihelion mcp api --spec FILE`.
//!
//! Enter at [`Server::open`]. Three tools cover any number of operations: find, describe, call. Invariant: no request
//! leaves the origin and prefix of the API's base address, and no credential goes to an address that the operator did
//! not name. Deliberately absent: one tool per operation, because they exceed the context window of any model.

mod adjust;
mod auth;
mod body;
mod calls;
mod checks;
mod client;
mod pages;
mod tools;

use std::path::PathBuf;
use std::time::Duration;

pub(crate) use calls::Api;
pub use tools::Server;

/// Options of `perihelion mcp api`.
#[derive(Clone, clap::Args)]
pub struct Options {
    /// Description of the API in JSON or YAML: OpenAPI 2, 3.0 or 3.1, or a plain list of endpoints.
    #[arg(long, value_name = "FILE")]
    pub spec: PathBuf,
    /// Base URL of all requests. Defaults to the servers in the description.
    #[arg(long, value_name = "URL")]
    pub base_url: Option<String>,
    /// URL of the description, to resolve relative server URLs.
    #[arg(long, value_name = "URL")]
    pub spec_url: Option<String>,
    /// Additional base URLs that a context can select and that receive credentials. Repeatable.
    #[arg(long, value_name = "URL")]
    pub allow_base: Vec<String>,
    /// Variable of the server URL. Repeatable.
    #[arg(long, value_name = "NAME=VALUE", value_parser = pair)]
    pub variable: Vec<(String, String)>,
    /// Header of every request. For secrets, use the environment or --auth instead. Repeatable.
    #[arg(long, value_name = "NAME=VALUE", value_parser = pair)]
    pub header: Vec<(String, String)>,
    /// TOML file with the authentication.
    #[arg(long, value_name = "FILE")]
    pub auth: Option<PathBuf>,
    /// Reject operations that can change data: all except GET, HEAD and OPTIONS.
    #[arg(long)]
    pub read_only: bool,
    /// Read-only operations with other methods, such as a search by POST.
    #[arg(long, value_name = "OPERATION,…", value_delimiter = ',')]
    pub reads: Vec<String>,
    /// Maximum duration of a request in seconds.
    #[arg(long, default_value_t = 30, value_parser = clap::value_parser!(u32).range(1..=3_600))]
    pub timeout_sec: u32,
    /// Maximum size of a response in kilobytes.
    #[arg(long, default_value_t = 1_024, value_parser = clap::value_parser!(u32).range(1..=65_536))]
    pub max_body_kb: u32,
    /// Maximum number of pages that one call reads.
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=1_000))]
    pub max_pages: u32,
}

impl std::fmt::Debug for Options {
    /// Leaves the headers out, because they can contain secrets against the advice.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Options").field("spec", &self.spec).finish_non_exhaustive()
    }
}

impl Options {
    fn timeout(&self) -> Duration {
        Duration::from_secs(self.timeout_sec.into())
    }
}

fn pair(text: &str) -> Result<(String, String), &'static str> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name.to_owned(), value.to_owned())),
        _ => Err("expected NAME=VALUE"),
    }
}

/// Why a call was not made, or got no answer.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("cannot read the API description {}: {source}", path.display())]
    Spec { path: PathBuf, source: std::io::Error },
    #[error("cannot use the API description {}: {source}", path.display())]
    Description { path: PathBuf, source: perihelion_openapi::Error },
    /// A call that does not fit the description.
    #[error("{kind}: {0}", kind = .0.kind())]
    Request(#[from] perihelion_openapi::Error),
    #[error("ConfigurationError: {0}")]
    Settings(#[from] perihelion_settings::config::strict::Error),
    #[error("ConfigurationError: {0}")]
    Auth(#[from] auth::Error),
    #[error("ConfigurationError: no HTTP client can be made: {0}")]
    Client(#[source] reqwest::Error),
    #[error(
        "ConfigurationError: the operator does not allow the context's base address; pass it with --allow-base: {0}"
    )]
    ForeignBase(String),
    #[error(
        "RequestError: only reading is allowed here; {method} may change something, and {operation} is not listed under --reads"
    )]
    ReadOnly { operation: String, method: String },
    #[error(
        "RequestError: only reading is allowed here, and a server may take the request for one with another method; leave out: {0}"
    )]
    MethodOverride(String),
    #[error("HttpError: {method} {address}: {reason}")]
    Http { method: String, address: String, reason: String },
    #[error("Timeout: {method} {address} gave no answer within {} s", limit.as_secs())]
    Timeout { method: String, address: String, limit: Duration },
}

type Result<T, E = Error> = std::result::Result<T, E>;
