//! The MCP servers that come with the binary, each over stdio or HTTP behind `perihelion mcp <name>`.
//!
//! Enter at [`Bundled::run`]. Invariant: `sql` and `files` never change what they show, whatever a model
//! sends; `notes` only ever appends. Deliberately absent: anything of agents, graphs or prompts; these
//! are servers like any other and are started and pinned as such.

mod answer;
pub mod demo_data;
pub mod files;
pub mod http;
pub mod notes;
pub mod sql;
mod toolbox;

use std::net::SocketAddr;

use rmcp::ServiceExt;

use toolbox::Serving;

/// A bundled server and its settings, as given on the command line.
#[derive(Clone, Debug, clap::Subcommand)]
pub enum Bundled {
    /// Answers questions from a SQLite or Postgres database with single read-only SELECT statements.
    Sql(sql::Options),
    /// Lists, reads and searches the text files of one directory.
    Files(files::Options),
    /// Appends notes to a file; a harmless side effect for trying approvals and recovery.
    Notes(notes::Options),
}

/// Why a bundled server could not start or ended early.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error(transparent)]
    Sql(#[from] sql::Error),
    #[error(transparent)]
    Files(#[from] files::Error),
    #[error(transparent)]
    Notes(#[from] notes::Error),
    /// The client went away or spoke no MCP before the session was open.
    #[error("no MCP session was opened on standard input: {0}")]
    Session(Box<rmcp::service::ServerInitializeError>),
    /// Without authentication it would serve anybody.
    #[error("MCP servers are served on loopback only, such as 127.0.0.1:8000, not on: {0}")]
    NotLoopback(SocketAddr),
    #[error("cannot listen on {addr}: {source}")]
    Listen { addr: SocketAddr, source: std::io::Error },
    /// The session's task was aborted.
    #[error("the MCP session ended abnormally: {0}")]
    Ended(#[from] tokio::task::JoinError),
}

impl Bundled {
    /// Serves MCP on standard input and output until the client closes it.
    ///
    /// Standard output carries the protocol alone; whatever is to be said goes through `tracing`.
    ///
    /// # Errors
    /// When what is to be served cannot be opened, or the session cannot be established.
    pub async fn run(self) -> Result<(), Error> {
        match self {
            Self::Sql(options) => serve(sql::Server::open(&options).await?).await,
            Self::Files(options) => serve(files::Server::open(&options)?).await,
            Self::Notes(options) => serve(notes::Server::open(&options)?).await,
        }
    }

    /// Serves MCP over streamable HTTP at `/mcp` until Ctrl-C; `ready` hears the address.
    ///
    /// # Errors
    /// As [`Bundled::run`], and when the address cannot be listened on or is not of loopback.
    pub async fn run_http(
        self,
        addr: SocketAddr,
        ready: impl FnOnce(SocketAddr),
    ) -> Result<(), Error> {
        match self {
            Self::Sql(options) => {
                http::serve(Serving(sql::Server::open(&options).await?), addr, ready).await
            }
            Self::Files(options) => {
                http::serve(Serving(files::Server::open(&options)?), addr, ready).await
            }
            Self::Notes(options) => {
                http::serve(Serving(notes::Server::open(&options)?), addr, ready).await
            }
        }
    }
}

async fn serve(tools: impl toolbox::Toolbox) -> Result<(), Error> {
    let session = Serving(tools)
        .serve(rmcp::transport::stdio_pipes())
        .await
        .map_err(|error| Error::Session(Box::new(error)))?;
    session.waiting().await?;
    Ok(())
}
