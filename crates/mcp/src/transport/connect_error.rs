//! Why there is no connection to a server.

use rmcp::service::ClientInitializeError;

use super::delivery;
use super::sandbox::Unconfined;

/// Why there is no connection.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ConnectError {
    #[error("the directory in which it starts does not exist (see cwd in its table): {0}")]
    Cwd(String),
    #[error(transparent)]
    Sandbox(#[from] Unconfined),
    #[error("cannot run {command} (is it installed, and on the PATH of this process?): {source}")]
    Spawn { command: String, source: std::io::Error },
    #[error("{}", delivery::chain(.0))]
    Client(#[from] reqwest::Error),
    #[error(transparent)]
    Header(#[from] http::Error),
    #[error("it did not answer within the start-up timeout (startup_timeout_sec): {0} s")]
    Late(f64),
    /// Its answer to the greeting, or none.
    #[error("{words}")]
    Greeting { words: String, source: Option<Box<ClientInitializeError>> },
    /// How its process ended, with the way out.
    #[error("{error}; {end}")]
    Ended {
        #[source]
        error: Box<Self>,
        end: String,
    },
}
