//! The MCP servers that come with the binary, each over stdio or HTTP behind `perihelion mcp <name>`.
//!
//! Enter at [`Bundled::run`]. Invariant: `sql` and `files` never change their data, with any input of a model; `notes`
//! only appends; `documents` only changes its own documents. Deliberately absent: anything of agents, graphs or
//! prompts; these are servers like any other and are started and pinned as such.

pub mod api;
mod check;
pub mod demo_data;
pub mod documents;
pub mod files;
pub mod http;
pub mod mail;
pub mod notes;
pub mod python;
mod root;
pub mod sql;
pub mod web;

use std::net::SocketAddr;

use rmcp::ServiceExt;

pub use check::Finding;
use perihelion_toolbox::Serving;

/// A bundled server and its settings, as given on the command line.
#[derive(Clone, Debug, clap::Subcommand)]
pub enum Bundled {
    /// Query a SQLite or Postgres database with single read-only SELECT statements.
    Sql(sql::Options),
    /// Read a SQLite file for the parent process.
    #[command(name = sql::WORKER, hide = true)]
    SqlWorker,
    /// List, read and search the text files of one directory.
    Files(files::Options),
    /// Store documents, and find passages with page and quote.
    Documents(documents::Options),
    /// Append notes to a file. A harmless side effect for trying approvals and recovery.
    Notes(notes::Options),
    /// Call an HTTP API described by OpenAPI or by a plain list of endpoints.
    Api(Box<api::Options>),
    /// Read the mail of one account over IMAP or JMAP, and draft and send answers.
    Mail(mail::Options),
    /// Run Python programs in a sandbox without network, processes or local files.
    Python(python::Options),
    /// Search the web through a provider, and read public pages as Markdown.
    Web(web::Options),
}

type Cause = Box<dyn std::error::Error + Send + Sync>;

/// Why a bundled server could not start or ended early.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The server's own error.
    #[error(transparent)]
    Unopened(Cause),
    /// The client went away or spoke no MCP before the session was open.
    #[error("no MCP session was opened on standard input: {0}")]
    Session(Box<rmcp::service::ServerInitializeError>),
    /// Without authentication it would serve every caller.
    #[error("MCP servers are served on loopback only, such as 127.0.0.1:8000, not on: {0}")]
    NotLoopback(SocketAddr),
    #[error("cannot listen on {addr}: {source}")]
    Listen { addr: SocketAddr, source: std::io::Error },
    /// The streams of a worker failed.
    #[error("the worker's streams failed: {0}")]
    Worker(std::io::Error),
    /// The session's task was aborted.
    #[error("the MCP session ended abnormally: {0}")]
    Ended(#[from] tokio::task::JoinError),
}

impl Bundled {
    /// Serves MCP on standard input and output until the client closes it.
    ///
    /// Standard output contains only the protocol; messages go through `tracing`.
    pub async fn run(self) -> Result<(), Error> {
        self.serve(Over::Pipes).await
    }

    /// Serves MCP over streamable HTTP at `/mcp` until Ctrl-C; `ready` gets the address.
    ///
    /// # Errors
    /// As [`Bundled::run`], and when the address cannot be listened on or is not of loopback.
    pub async fn run_http(
        self,
        addr: SocketAddr,
        ready: impl FnOnce(SocketAddr) + Send + 'static,
    ) -> Result<(), Error> {
        self.serve(Over::Http(addr, Box::new(ready))).await
    }

    async fn serve(self, over: Over) -> Result<(), Error> {
        let believes_callers = matches!(over, Over::Pipes);
        match self.open(believes_callers).await.map_err(Error::Unopened)? {
            Some(tools) => over.serve(tools).await,
            // It answers on the standard streams until they close, on a thread with its own runtime.
            None => tokio::task::spawn_blocking(perihelion_sql::serve_worker)
                .await?
                .map_err(Error::Worker),
        }
    }

    /// Opens what is served; `None` for a worker, which serves no MCP.
    async fn open(&self, believes_callers: bool) -> Result<Option<Serving>, Cause> {
        Ok(Some(match self {
            Self::Sql(options) => sql::Server::open(options).await?,
            Self::SqlWorker => return Ok(None),
            Self::Files(options) => files::Server::open(options)?,
            Self::Documents(options) => documents::Server::open(options, believes_callers).await?,
            Self::Notes(options) => notes::Server::open(options)?,
            Self::Api(options) => api::Server::open(options)?,
            Self::Mail(options) => mail::Server::open(options).await?,
            Self::Python(options) => python::Server::open(options)?,
            Self::Web(options) => web::Server::open(options)?,
        }))
    }
}

type Ready = Box<dyn FnOnce(SocketAddr) + Send>;

enum Over {
    Pipes,
    /// The address, and the receiver of the final one.
    Http(SocketAddr, Ready),
}

impl Over {
    async fn serve(self, tools: Serving) -> Result<(), Error> {
        match self {
            Self::Http(addr, ready) => http::serve(tools, addr, ready).await,
            Self::Pipes => {
                let session = tools.serve(rmcp::transport::stdio_pipes()).await;
                session.map_err(|error| Error::Session(Box::new(error)))?.waiting().await?;
                Ok(())
            }
        }
    }
}
