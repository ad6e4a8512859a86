//! Classifies a failed call: not sent, refused, failed, or possibly done.
//!
//! In doubt the outcome is unknown: to say "not sent" of a call that ran would have it run twice.

use rmcp::{ErrorData, ServiceError, model::ErrorCode};
use tokio_util::sync::CancellationToken;

use crate::configuration::ServerConfig;
use crate::transport::delivery::{self, Delivery};
use crate::transport::oauth::Access;
use crate::transport::request::Failure;
use crate::transport::session::Session;
use crate::trust::hidden;
use crate::types::{Error, Reason, Result, ToolOutcome, text};

/// Longer reasons are dumps.
const REASON_CHARS: usize = 2000;

/// The call of a tool, and what of its server has a part in it.
pub(crate) struct Call<'a> {
    pub config: &'a ServerConfig,
    pub tool: &'a str,
    /// The source of the server's tokens, if there is one.
    pub access: Option<&'a Access>,
    /// The server is this program itself.
    pub is_bundled: bool,
    /// Its connections are closed permanently.
    pub closed: &'a CancellationToken,
}

impl Call<'_> {
    pub fn not_sent(&self, reason: &str) -> Error {
        let (server, tool, reason) = self.parts(reason);
        Error::NotSent { server, tool, reason }
    }

    pub fn unknown(&self, reason: &str) -> Error {
        let (server, tool, reason) = self.parts(reason);
        Error::Unknown { server, tool, reason }
    }

    fn refused(&self, reason: &str) -> Error {
        let (server, tool, reason) = self.parts(reason);
        Error::Refused { server, tool, reason }
    }

    fn parts(&self, reason: &str) -> (String, String, Reason) {
        (self.config.name.clone(), self.tool.to_owned(), self.clean(reason).into())
    }

    fn clean(&self, text: &str) -> String {
        text::cut(&hidden::shown(&self.config.secrets.redact(text)), REASON_CHARS)
    }
}

/// Returns whether the server itself refused a request, which shows that it responds.
pub(super) fn is_refusal(failure: &Failure) -> bool {
    match failure {
        Failure::Service(ServiceError::McpError(_)) => true,
        Failure::Service(ServiceError::TransportSend(error)) => {
            delivery::of(error.error.as_ref()) == Delivery::Refused
        }
        _ => false,
    }
}

/// Turns the failure of a request into the outcome or the error of the call.
pub(super) async fn judge(
    call: &Call<'_>,
    failure: Failure,
    session: &Session,
) -> Result<ToolOutcome> {
    Err(match failure {
        Failure::NotHandedOver => call.not_sent("the connection is closed"),
        Failure::TimedOut(limit) => {
            call.unknown(&format!("no answer within {} s", limit.as_secs_f64()))
        }
        Failure::Closed => {
            let end = session.why_ended().await;
            call.unknown(&format!("the server went away before it answered: {end}"))
        }
        Failure::Service(ServiceError::McpError(error)) => return rpc_error(call, &error),
        Failure::Service(ServiceError::TransportSend(error)) => {
            let wants_login = call.access.filter(|_| delivery::wants_token(error.error.as_ref()));
            let reason = wants_login
                .and_then(Access::failure)
                .unwrap_or_else(|| delivery::chain(error.error.as_ref()));
            match delivery::of(error.error.as_ref()) {
                Delivery::NotSent => call.not_sent(&reason),
                Delivery::Refused => call.refused(&reason),
                Delivery::Unknown => call.unknown(&reason),
            }
        }
        Failure::Service(other) => call.unknown(&delivery::chain(&other)),
    })
}

/// An error that rejects the request itself means that the tool did not run; any other is the tool's own.
fn rpc_error(call: &Call<'_>, error: &ErrorData) -> Result<ToolOutcome> {
    let message = text::one_line(&error.message);
    let rejects = matches!(
        error.code,
        ErrorCode::PARSE_ERROR
            | ErrorCode::INVALID_REQUEST
            | ErrorCode::METHOD_NOT_FOUND
            | ErrorCode::INVALID_PARAMS
            | ErrorCode::UNSUPPORTED_PROTOCOL_VERSION
            | ErrorCode::MISSING_REQUIRED_CLIENT_CAPABILITY
            | ErrorCode::HEADER_MISMATCH
    );
    if rejects {
        return Err(call.refused(&format!("{message} (code {})", error.code.0)));
    }
    let text = format!("the server reported an error (code {}): {message}", error.code.0);
    Ok(ToolOutcome::failed(call.clean(&text)))
}
