//! Finds the authorization server of an MCP server, checks that it can be trusted with a token, and explains why there
//! is none.

use std::path::PathBuf;
use std::time::Duration;

use rmcp::transport::auth::{AuthError, AuthorizationManager, AuthorizationMetadata};

use super::access::Access;
use super::logins::Record;
use crate::transport::delivery;
use perihelion_http::reach;
use perihelion_settings::config::tls;

const PATIENCE: Duration = Duration::from_secs(60);

pub(super) struct Authority {
    pub manager: AuthorizationManager,
    pub metadata: AuthorizationMetadata,
}

impl Authority {
    /// Finds it, by the server's challenge if it sent one (RFC 9728, RFC 8414, OpenID Connect Discovery).
    pub async fn find(access: &Access) -> Result<Self, LoginFailure> {
        let challenge = access.challenge.lock().clone();
        // Each of its requests has a limit of its own, and there may be many.
        let found = tokio::time::timeout(PATIENCE, Self::look(&access.url, challenge.as_deref()));
        let authority = found.await.unwrap_or(Err(LoginFailure::Slow(PATIENCE.as_secs())))?;
        if let Some(issuer) = &access.oauth.issuer {
            authority.is(issuer)?;
        }
        Ok(authority)
    }

    /// Checks that it is the one of the earlier tokens, unless the operator chose one.
    pub fn is_that_of(
        &self,
        earlier: Option<&Record>,
        access: &Access,
    ) -> Result<(), LoginFailure> {
        match earlier.and_then(|record| record.client.issuer.as_ref()) {
            Some(known) if access.oauth.issuer.is_none() => self.is(known),
            _ => Ok(()),
        }
    }

    pub fn is(&self, known: &str) -> Result<(), LoginFailure> {
        let named = self.metadata.issuer.as_deref().unwrap_or_default();
        if named.trim_end_matches('/') == known.trim_end_matches('/') {
            return Ok(());
        }
        Err(LoginFailure::OtherIssuer { named: named.to_owned(), known: known.to_owned() })
    }

    async fn look(url: &str, challenge: Option<&str>) -> Result<Self, LoginFailure> {
        secure("server", url)?;
        let url = &bare(url);
        tls::install();
        // Companies have theirs at private addresses; those of this machine and of a cloud's metadata stay barred.
        let mut manager = AuthorizationManager::new_allowing_private_addresses(url).await?;
        let found = manager.resolve_metadata_from_challenge(challenge).await?;
        if !found.source.is_discovered() {
            return Err(LoginFailure::NoMetadata);
        }
        let metadata = found.metadata;
        secure("authorization endpoint", &metadata.authorization_endpoint)?;
        secure("token endpoint", &metadata.token_endpoint)?;
        if let Some(endpoint) = &metadata.registration_endpoint {
            secure("registration endpoint", endpoint)?;
        }
        manager.set_metadata(metadata.clone());
        Ok(Self { manager, metadata })
    }

    pub fn has_pkce(&self) -> bool {
        let methods = self.metadata.code_challenge_methods_supported.as_ref();
        methods.is_some_and(|methods| methods.iter().any(|method| method == "S256"))
    }

    pub fn takes_client_metadata(&self) -> bool {
        let key = "client_id_metadata_document_supported";
        self.metadata.additional_fields.get(key).and_then(|value| value.as_bool()) == Some(true)
    }

    pub fn knows_scope(&self, scope: &str) -> bool {
        let known = self.metadata.scopes_supported.as_ref();
        known.is_some_and(|known| known.iter().any(|one| one == scope))
    }

    /// Returns where tokens are revoked (RFC 7009), if they can be.
    pub fn revocation_endpoint(&self) -> Option<String> {
        let endpoint = self.metadata.additional_fields.get("revocation_endpoint")?.as_str()?;
        secure("revocation endpoint", endpoint).ok().map(|()| endpoint.to_owned())
    }
}

/// Returns an address without what may be secret in it: query, fragment, name and password.
pub(super) fn bare(url: &str) -> String {
    let Ok(mut parsed) = reqwest::Url::parse(url) else { return String::new() };
    parsed.set_query(None);
    parsed.set_fragment(None);
    // Both fail only where there is no host, and so no name either.
    let _ = parsed.set_username("");
    let _ = parsed.set_password(None);
    // As it was written: the library of addresses gives a host alone a slash.
    let text: String = parsed.into();
    match url.split(['?', '#']).next() {
        Some(plain) if !plain.ends_with('/') => text.trim_end_matches('/').to_owned(),
        _ => text,
    }
}

/// Refuses an address to which a secret would travel in clear text.
fn secure(what: &'static str, url: &str) -> Result<(), LoginFailure> {
    let scheme = reqwest::Url::parse(url).ok().map(|url| url.scheme().to_owned());
    match scheme.as_deref() {
        Some("https") => Ok(()),
        Some("http") if reach::is_loopback(url) => Ok(()),
        _ => Err(LoginFailure::Insecure { what, url: bare(url) }),
    }
}

/// Why no token could be got, or no login made.
#[derive(Debug, thiserror::Error)]
pub(crate) enum LoginFailure {
    #[error("cannot use the login file {}: {source}", path.display())]
    File { path: PathBuf, source: std::io::Error },
    #[error("other processes used the login file for too long; try again: {}", .0.display())]
    Busy(PathBuf),
    #[error("the token was not renewed, because this process is ending")]
    Ending,
    #[error(
        "it publishes no OAuth metadata, so a login is impossible; if it issues tokens in another way, name the \
         variable of one in bearer_token_env_var"
    )]
    NoMetadata,
    #[error(
        "it names the authorization server {named} in place of {known}. No secret was sent there. If the change is \
         right, log out first (perihelion agents logout) or set oauth.issuer"
    )]
    OtherIssuer { named: String, known: String },
    #[error("its authorization server was not found within {0} s")]
    Slow(u64),
    #[error("the address to visit has no state parameter, which a safe login requires")]
    NoState,
    #[error("the {what} must be reached over https, or be on this machine: {url}")]
    Insecure { what: &'static str, url: String },
    #[error("its authorization server does not offer PKCE with S256, which a safe login requires")]
    NoPkce,
    #[error(
        "its authorization server does not register clients; register one there and set oauth.client_id (and \
         oauth.client_secret_env_var, if it has a secret)"
    )]
    NoRegistration,
    #[error(
        "cannot listen on 127.0.0.1:{port} for the browser to come back: {source}; see oauth.callback_port"
    )]
    Callback { port: u16, source: std::io::Error },
    #[error("no login arrived within {0} s")]
    Late(u64),
    #[error("the login was refused: {0}")]
    Refused(String),
    #[error("the authorization server answered {0}")]
    NotRevoked(reqwest::StatusCode),
    #[error("{}", delivery::chain(.0))]
    Unreachable(#[from] reqwest::Error),
    #[error("{}", delivery::chain(.0))]
    Protocol(#[from] AuthError),
}
