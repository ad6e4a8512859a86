//! Why a parser of somebody else's did not read a document.

use std::process::ExitStatus;

/// Why a parser of somebody else's did not read a document.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    #[error("it cannot be started: {0}")]
    Start(#[source] std::io::Error),
    #[error("it cannot be read: {0}")]
    Pipe(#[from] std::io::Error),
    #[error("{status}{}{output}", if .output.is_empty() { "" } else { ": " })]
    Exit { status: ExitStatus, output: String },
    #[error("it is not done within {0} s (documents.parser_timeout_sec)")]
    Timeout(f64),
    #[error("it writes more than {0} bytes")]
    TooLong(usize),
    #[error("its output cannot be read: {0}")]
    Unreadable(#[source] perihelion_parse::Error),
    /// Without the address, and with the innermost cause.
    #[error("{}", causes(.0))]
    Request(#[source] reqwest::Error),
    #[error("status {0}: set its key in PERIHELION_DOCUMENTS_PARSER_API_KEY")]
    Key(u16),
    #[error("status {status}: {text}")]
    Status { status: u16, text: String },
    #[error("its answer cannot be read: {0}")]
    Answer(#[from] serde_json::Error),
    #[error("{0}")]
    Task(String),
}

impl From<reqwest::Error> for Failure {
    fn from(error: reqwest::Error) -> Self {
        Self::Request(error.without_url())
    }
}

fn causes(error: &reqwest::Error) -> String {
    let mut text = error.to_string();
    let mut cause = std::error::Error::source(error);
    while let Some(inner) = cause {
        text = format!("{text}: {inner}");
        cause = inner.source();
    }
    text
}
