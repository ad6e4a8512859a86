//! Finds the authorization server of an MCP server, and checks that it may be trusted with a token.

use rmcp::transport::auth::{AuthorizationManager, AuthorizationMetadata};

use std::time::Duration;

use super::{access::Access, failure::LoginFailure};
use crate::transport::address;
use perihelion_settings::config::tls;

/// How long an authorization server is looked for.
const PATIENCE: Duration = Duration::from_secs(60);

/// The authorization server of an MCP server, ready to be talked to.
pub(super) struct Authority {
    pub manager: AuthorizationManager,
    pub metadata: AuthorizationMetadata,
}

impl Authority {
    /// Finds it, from the server's challenge where it sent one (RFC 9728, RFC 8414, OpenID Connect Discovery).
    ///
    /// # Errors
    /// [`LoginFailure`], also when the metadata are of another resource or issuer, or the way there is not encrypted.
    pub async fn find(access: &Access) -> Result<Self, LoginFailure> {
        let challenge = access.challenge();
        // Each of its requests has a limit of its own, and there may be many.
        let found = tokio::time::timeout(PATIENCE, Self::look(&access.url, challenge.as_deref()));
        let authority = found.await.unwrap_or(Err(LoginFailure::Slow(PATIENCE.as_secs())))?;
        if let Some(issuer) = &access.oauth.issuer {
            authority.is(issuer)?;
        }
        Ok(authority)
    }

    /// Checks that it is the one that is known.
    ///
    /// # Errors
    /// [`LoginFailure::OtherIssuer`].
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

    /// Tells whether it says that PKCE can be used.
    pub fn has_pkce(&self) -> bool {
        let methods = self.metadata.code_challenge_methods_supported.as_ref();
        methods.is_some_and(|methods| methods.iter().any(|method| method == "S256"))
    }

    /// Tells whether it takes the address of a document for the identifier of a client.
    pub fn takes_client_metadata(&self) -> bool {
        let key = "client_id_metadata_document_supported";
        self.metadata.additional_fields.get(key).and_then(|value| value.as_bool()) == Some(true)
    }

    /// Tells whether it knows a scope.
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
        Some("http") if address::is_loopback(url) => Ok(()),
        _ => Err(LoginFailure::Insecure { what, url: bare(url) }),
    }
}
