//! The owner of a mailbox, and its servers.

use std::fmt;
use std::time::Duration;

use perihelion_http::reach::is_loopback_host;
use secrecy::SecretString;
use url::Url;

use crate::{Error, Result};

/// Longest exchange with a server; shorter in unit tests.
pub const LIMIT: Duration = Duration::from_secs(if cfg!(test) { 1 } else { 30 });
/// Longest wait for the answer to LOGOUT; its absence is ignored.
pub const GOODBYE: Duration = Duration::from_secs(2);

#[derive(Clone, Debug)]
pub struct Account {
    pub username: String,
    pub password: SecretString,
    /// Address of the sender, optionally with a name: `Ann <ann@example.org>`.
    pub from: String,
}

#[derive(Clone, Debug)]
pub struct Servers {
    pub imap: Endpoint,
    pub smtp: Endpoint,
}

#[derive(Clone, Debug)]
pub struct JmapServer {
    /// The address of its session, or of its discovery: `https://example.org/.well-known/jmap`.
    pub session: Url,
    pub is_token: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Endpoint {
    pub host: String,
    pub port: u16,
    pub security: Security,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Security {
    /// From the first byte.
    Tls,
    /// After a request for it, and not at all without.
    StartTls,
    /// Not; on this machine only.
    Plain,
}

impl Endpoint {
    pub fn is_local(&self) -> bool {
        is_loopback_host(&self.host)
    }
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.host, self.port)
    }
}

impl JmapServer {
    /// Reads `HOST`, `HOST:PORT` or an address; `security` is the default for a host alone.
    pub fn read(text: &str, security: Security, is_token: bool) -> Result<Self> {
        let scheme = if security == Security::Plain { "http" } else { "https" };
        let text = if text.contains("://") {
            text.to_owned()
        } else {
            format!("{scheme}://{text}/.well-known/jmap")
        };
        let session = Url::parse(&text).map_err(|_| Error::BadAddress(text))?;
        Ok(Self { session, is_token })
    }
}

/// Returns whether credentials may be sent there.
pub fn is_protected(url: &Url) -> bool {
    url.scheme() == "https"
        || (url.scheme() == "http" && url.host_str().is_some_and(is_loopback_host))
}
