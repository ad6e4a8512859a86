//! Why there is no connection, and what its failure means for the message that it carried.

use std::error::Error as StdError;

use rmcp::service::ClientInitializeError;
use rmcp::transport::streamable_http_client::StreamableHttpError;

use super::sandbox::Unconfined;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Delivery {
    /// The call certainly did not reach the tool.
    NotSent,
    Refused,
    /// The tool ran, and its answer is longer than these bytes.
    TooLong(usize),
    /// It may have run.
    Unknown,
}

pub(super) type Failure = StreamableHttpError<reqwest::Error>;

/// Reads a transport error; one without HTTP, a broken pipe, means that no full line was sent.
pub(crate) fn of(error: &(dyn StdError + Send + Sync + 'static)) -> Delivery {
    let Some(failure) = error.downcast_ref::<Failure>() else {
        let is_io = error.downcast_ref::<std::io::Error>().is_some();
        return if is_io { Delivery::NotSent } else { Delivery::Unknown };
    };
    match failure {
        Failure::Client(error) if error.is_connect() || error.is_builder() => Delivery::NotSent,
        Failure::AuthRequired(_) | Failure::InsufficientScope(_) => Delivery::Refused,
        Failure::SessionExpired | Failure::ReinitializationFailed(_) => Delivery::NotSent,
        // There was no token to send it with, or none that the server takes.
        Failure::Auth(_) => Delivery::NotSent,
        Failure::ResponseBodyTooLarge { max_size } => Delivery::TooLong(*max_size),
        other => match status(other) {
            // These also come after the message was taken.
            None | Some(303 | 408 | 409 | 499) => Delivery::Unknown,
            Some(300..=499) => Delivery::Refused,
            Some(_) => Delivery::Unknown,
        },
    }
}

/// Returns the status of an answer that is no success and no message of the protocol.
pub(super) fn status(failure: &Failure) -> Option<u16> {
    match failure {
        Failure::HttpStatus(error) => Some(error.status),
        Failure::UnexpectedServerResponse(words) => {
            words.strip_prefix("HTTP ")?.get(..3)?.parse().ok()
        }
        _ => None,
    }
}

/// Returns whether a request failed because it had no sufficient token.
pub(crate) fn wants_token(error: &(dyn StdError + Send + Sync + 'static)) -> bool {
    let failure = error.downcast_ref::<Failure>();
    matches!(
        failure,
        Some(Failure::AuthRequired(_) | Failure::InsufficientScope(_) | Failure::Auth(_))
    )
}

/// Joins an error with its causes; each layer of HTTP says only a part.
pub(crate) fn chain(error: &(dyn StdError + 'static)) -> String {
    let mut text = error.to_string();
    let mut source = behind(error);
    while let Some(cause) = source {
        let words = cause.to_string();
        if !text.contains(&words) {
            text.push_str(": ");
            text.push_str(&words);
        }
        source = behind(cause);
    }
    text
}

/// Returns the cause of an error; for the client's own failure, rmcp shows the text and hides the causes.
fn behind<'a>(error: &'a (dyn StdError + 'static)) -> Option<&'a (dyn StdError + 'static)> {
    match error.downcast_ref::<Failure>() {
        Some(Failure::Client(error)) => error.source(),
        _ => error.source(),
    }
}

#[derive(Debug, thiserror::Error)]
pub(crate) enum ConnectError {
    #[error("the directory in which it starts does not exist (see cwd in its table): {0}")]
    Cwd(String),
    #[error(transparent)]
    Sandbox(#[from] Unconfined),
    #[error("cannot run {command} (is it installed, and on the PATH of this process?): {source}")]
    Spawn { command: String, source: std::io::Error },
    #[error("{}", chain(.0))]
    Client(#[from] reqwest::Error),
    #[error(transparent)]
    Header(#[from] http::Error),
    #[error("it did not answer within the start-up timeout (startup_timeout_sec): {0} s")]
    Late(f64),
    /// Its answer to the greeting, or `None`.
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
