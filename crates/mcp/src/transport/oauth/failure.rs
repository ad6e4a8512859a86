//! Why no token could be got.

use std::path::PathBuf;

use rmcp::transport::auth::AuthError;

use crate::transport::delivery;

/// Why no token could be got, or no login made.
#[derive(Debug, thiserror::Error)]
pub(crate) enum LoginFailure {
    /// The file of the login could not be read or written.
    #[error("cannot use the login file {}: {source}", path.display())]
    File { path: PathBuf, source: std::io::Error },
    /// Others have held the file for too long, one after another.
    #[error("other processes held the login file for too long; try again: {}", .0.display())]
    Busy(PathBuf),
    /// The process is about to end.
    #[error("the token was not renewed, because this process is ending")]
    Ending,
    /// The server names no authorization server.
    #[error(
        "it publishes no OAuth metadata, so a login is impossible; if it issues tokens in another way, name the \
         variable of one in bearer_token_env_var"
    )]
    NoMetadata,
    /// The server sends this program to somebody else than before, or than the operator said.
    #[error(
        "it names the authorization server {named} in place of {known}. No secret was sent there. If the change is \
         right, log out first (perihelion agents logout) or set oauth.issuer"
    )]
    OtherIssuer { named: String, known: String },
    /// The authorization server could not be found in time.
    #[error("its authorization server was not found within {0} s")]
    Slow(u64),
    /// The answer of the library cannot be relied on.
    #[error("the address to visit has no state parameter, which a safe login requires")]
    NoState,
    /// Tokens would travel in clear text.
    #[error("the {what} must be reached over https, or be on this machine: {url}")]
    Insecure { what: &'static str, url: String },
    /// RFC 7636 is not offered.
    #[error("its authorization server does not offer PKCE with S256, which a safe login requires")]
    NoPkce,
    /// Nobody said who this program is.
    #[error(
        "its authorization server does not register clients; register one there and set oauth.client_id (and \
         oauth.client_secret_env_var, if it has a secret)"
    )]
    NoRegistration,
    /// The place for the browser to come back to is taken.
    #[error(
        "cannot listen on 127.0.0.1:{port} for the browser to come back: {source}; see oauth.callback_port"
    )]
    Callback { port: u16, source: std::io::Error },
    /// Nobody came back from the browser.
    #[error("no login arrived within {0} s")]
    Late(u64),
    /// The authorization server said no, or the person did.
    #[error("the login was refused: {0}")]
    Refused(String),
    /// The tokens were not revoked.
    #[error("the authorization server answered {0}")]
    NotRevoked(reqwest::StatusCode),
    /// The authorization server could not be reached.
    #[error("{}", delivery::chain(.0))]
    Unreachable(#[from] reqwest::Error),
    /// A step of the protocol failed.
    #[error("{}", delivery::chain(.0))]
    Protocol(#[from] AuthError),
}
