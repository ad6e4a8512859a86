//! Renews tokens: with a refresh token, or with client credentials; one process at a time.

use std::sync::Arc;

use oauth2::TokenResponse as _;
use rmcp::transport::auth::{
    AuthError, ClientCredentialsConfig, OAuthClientConfig, StoredCredentials,
};
use secrecy::{ExposeSecret as _, SecretString};

use super::access::{Access, StoredToken, is_refreshable};
use super::authority::{Authority, LoginFailure, bare};
use super::logins::{Client, Record, Turn, Vault};
use crate::configuration::Grant;

pub(super) const OFFLINE_ACCESS: &str = "offline_access";

enum Refreshed {
    Token(SecretString),
    Over(Client),
    /// It may succeed another time.
    Failed(LoginFailure),
}

impl Access {
    /// Renews the token, unless another process has while this one waited for its turn.
    pub(super) async fn renew(
        &self,
        refused: Option<SecretString>,
    ) -> Result<Option<SecretString>, LoginFailure> {
        let turn = Arc::new(self.place.turn().await?);
        let record = self.known().await?;
        let usable = record.as_ref().and_then(|record| self.usable(record));
        let is_refused = |usable: &StoredToken| {
            refused.as_ref().is_some_and(|it| it.expose_secret() == usable.token.expose_secret())
        };
        if let Some(usable) =
            usable.as_ref().filter(|usable| usable.is_fresh && !is_refused(usable))
        {
            // Another process was first.
            return Ok(Some(usable.token.clone()));
        }
        if self.oauth.grant == Grant::ClientCredentials {
            return self.fetch(turn).await.map(Some);
        }
        let Some(Record { client, credentials: Some(credentials), wanted, .. }) = record else {
            return Ok(None);
        };
        if !is_refreshable(&credentials)
            && let Some(usable) =
                usable.as_ref().filter(|usable| usable.is_alive && !is_refused(usable))
        {
            return Ok(Some(usable.token.clone()));
        }
        let refreshed = if is_refreshable(&credentials) {
            self.refresh(turn.clone(), client, credentials).await?
        } else {
            Refreshed::Over(client)
        };
        match refreshed {
            Refreshed::Token(token) => Ok(Some(token)),
            Refreshed::Over(client) => {
                self.place.store(&turn, client, None, wanted).await?;
                Ok(None)
            }
            Refreshed::Failed(error) => match usable {
                Some(usable) if usable.is_alive && !is_refused(&usable) => Ok(Some(usable.token)),
                _ => Err(error),
            },
        }
    }

    async fn refresh(
        &self,
        turn: Arc<Turn>,
        client: Client,
        credentials: StoredCredentials,
    ) -> Result<Refreshed, LoginFailure> {
        let mut authority = match Authority::find(self).await {
            Ok(authority) => authority,
            Err(failure) => return Ok(Refreshed::Failed(failure)),
        };
        if authority.is(credentials.issuer.as_deref().unwrap_or_default()).is_err() {
            // A refresh token goes back to its issuer alone.
            let server = &self.server;
            tracing::warn!(%server, "the MCP server has another authorization server now; its login is over");
            return Ok(Refreshed::Over(client));
        }
        let mut config = OAuthClientConfig::new(&client.id, &client.redirect_uri);
        if let Some(secret) = self.secret(&client) {
            config = config.with_client_secret(secret.expose_secret());
        }
        authority.manager.configure_client(config)?;
        let vault = Vault { place: self.place.clone(), turn, client: client.clone() };
        authority.manager.set_credential_store(vault);
        match authority.manager.refresh_token().await {
            Ok(response) => {
                tracing::debug!(server = %self.server, "the token of an MCP server was renewed");
                Ok(Refreshed::Token(response.access_token().secret().clone().into()))
            }
            Err(AuthError::TokenRefreshRejected(_) | AuthError::AuthorizationRequired) => {
                Ok(Refreshed::Over(client))
            }
            Err(error) => Ok(Refreshed::Failed(error.into())),
        }
    }

    /// Gets a token with client credentials, which requires no person.
    async fn fetch(&self, turn: Arc<Turn>) -> Result<SecretString, LoginFailure> {
        let mut authority = Authority::find(self).await?;
        // The operator's secret goes to whom it went before, whatever the server says now.
        let before = self.place.load().await?.filter(|record| {
            let Client { grant, id, .. } = &record.client;
            *grant == Grant::ClientCredentials && Some(id) == self.oauth.client_id.as_ref()
        });
        authority.is_that_of(before.as_ref(), self)?;
        let secret = self.oauth.client_secret.as_ref();
        let mut scopes = self.oauth.scopes.clone();
        if scopes.is_empty() {
            scopes = authority.manager.select_initial_scopes(&[]).await;
            // There is nothing to be renewed: the credentials give the next token.
            scopes.retain(|scope| scope != OFFLINE_ACCESS);
        }
        let config = ClientCredentialsConfig::ClientSecret {
            client_id: self.oauth.client_id.clone().unwrap_or_default(),
            client_secret: secret.map(|it| it.expose_secret().to_owned()).unwrap_or_default(),
            scopes,
            resource: Some(bare(&self.url)),
        };
        authority.manager.validate_client_credentials_metadata(&config)?;
        authority.manager.configure_client_credentials(&config)?;
        let client = Client {
            grant: Grant::ClientCredentials,
            id: self.oauth.client_id.clone().unwrap_or_default(),
            issuer: authority.metadata.issuer.clone(),
            scopes: self.oauth.scopes.clone(),
            revocation_endpoint: authority.revocation_endpoint(),
            ..Client::default()
        };
        let vault = Vault { place: self.place.clone(), turn, client };
        authority.manager.set_credential_store(vault);
        let response = authority.manager.exchange_client_credentials(&config).await?;
        Ok(response.access_token().secret().clone().into())
    }
}
