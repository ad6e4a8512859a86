//! The token of every request to a server: read, renewed before it runs out, and renewed once when it is refused.

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use oauth2::TokenResponse as _;
use rmcp::transport::auth::{
    AuthError, ClientCredentialsConfig, OAuthClientConfig, StoredCredentials,
};
use secrecy::{ExposeSecret as _, SecretString};

use super::{
    authority::Authority,
    logins::{Client, Logins, Place, Record, Turn, Vault},
    trouble::Trouble,
};
use crate::{
    clock,
    mcp::{
        menu,
        redact::Secrets,
        servers_file::{Grant, OAuth},
    },
};

/// A token is renewed when less than this is left of it, or half of its life where that is shorter.
const MARGIN: Duration = Duration::from_secs(30);
/// The scope that asks for a refresh token.
pub(super) const OFFLINE_ACCESS: &str = "offline_access";
/// A server that wants more scopes than this wants nonsense.
const MAX_SCOPES: usize = 32;
/// Longer challenges are shown in part.
const SCOPE_CHARS: usize = 200;

/// What gives out the tokens for one server.
pub(in crate::mcp) struct Access {
    pub(super) server: String,
    pub(super) url: String,
    pub(super) oauth: OAuth,
    pub(super) secrets: Secrets,
    pub(super) place: Place,
    /// What the server last said when it refused a request.
    challenge: Mutex<Option<String>>,
    /// Why requests are refused, while they are.
    trouble: Mutex<Option<String>>,
}

impl Access {
    pub fn new(server: &str, url: &str, oauth: &OAuth, secrets: &Secrets, logins: &Logins) -> Self {
        Self {
            place: logins.place(server, url),
            server: server.to_owned(),
            url: url.to_owned(),
            oauth: oauth.clone(),
            secrets: secrets.clone(),
            challenge: Mutex::default(),
            trouble: Mutex::default(),
        }
    }

    /// Returns the token for the next request, renewed where it is about to run out; `None`: there is no login.
    pub async fn token(self: &Arc<Self>) -> Result<Option<SecretString>, Trouble> {
        let record = self.known().await?;
        if let Some(held) = record.as_ref().and_then(|record| self.held(record))
            && held.is_fresh
        {
            return Ok(Some(held.token));
        }
        let is_hopeless = record.is_none_or(|record| record.credentials.is_none());
        if is_hopeless && self.oauth.grant == Grant::AuthorizationCode {
            return Ok(None);
        }
        self.renewed(None).await
    }

    /// Returns a token in place of one that is old or was refused; `None`: a person must log in.
    ///
    /// It goes on when nobody waits for it any longer: what the authorization server sends must be kept.
    pub async fn renewed(
        self: &Arc<Self>,
        refused: Option<SecretString>,
    ) -> Result<Option<SecretString>, Trouble> {
        let me = self.clone();
        let renewing = tokio::spawn(async move { me.renew(refused).await });
        let renewed = renewing.await.unwrap_or(Err(Trouble::Ending));
        if let Err(trouble) = &renewed {
            let why = format!("no token could be got: {trouble}");
            tracing::warn!(server = %self.server, reason = %self.secrets.redact(&why), "no token for an MCP server");
            self.set_trouble(Some(why));
        }
        renewed
    }

    async fn renew(&self, refused: Option<SecretString>) -> Result<Option<SecretString>, Trouble> {
        let turn = Arc::new(self.place.turn().await?);
        let record = self.known().await?;
        let held = record.as_ref().and_then(|record| self.held(record));
        let is_refused = |held: &Held| {
            refused.as_ref().is_some_and(|it| it.expose_secret() == held.token.expose_secret())
        };
        if let Some(held) = held.as_ref().filter(|held| held.is_fresh && !is_refused(held)) {
            // Another process was first.
            return Ok(Some(held.token.clone()));
        }
        if self.oauth.grant == Grant::ClientCredentials {
            return self.fetch(turn).await.map(Some);
        }
        let Some(Record { client, credentials: Some(credentials), wanted, .. }) = record else {
            return Ok(None);
        };
        let refreshed = match is_refreshable(&credentials) {
            true => self.refresh(turn.clone(), client, credentials).await?,
            false => Refreshed::Over(client),
        };
        match refreshed {
            Refreshed::Token(token) => Ok(Some(token)),
            Refreshed::Over(client) => {
                self.place.store(&turn, client, None, wanted).await?;
                Ok(None)
            }
            Refreshed::Failed(error) => match held {
                Some(held) if held.is_alive && !is_refused(&held) => Ok(Some(held.token)),
                _ => Err(error),
            },
        }
    }

    async fn refresh(
        &self,
        turn: Arc<Turn>,
        client: Client,
        credentials: StoredCredentials,
    ) -> Result<Refreshed, Trouble> {
        let mut authority = match Authority::find(&self.url, self.challenge().as_deref()).await {
            Ok(authority) => authority,
            Err(trouble) => return Ok(Refreshed::Failed(trouble)),
        };
        if credentials.issuer != authority.metadata.issuer {
            // A refresh token goes back to whoever issued it, and to nobody else.
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

    /// Gets a token with client credentials, for which nobody is needed.
    async fn fetch(&self, turn: Arc<Turn>) -> Result<SecretString, Trouble> {
        let mut authority = Authority::find(&self.url, self.challenge().as_deref()).await?;
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
            resource: Some(self.url.clone()),
        };
        authority.manager.validate_client_credentials_metadata(&config)?;
        authority.manager.configure_client_credentials(&config)?;
        let client = Client {
            grant: Grant::ClientCredentials,
            id: self.oauth.client_id.clone().unwrap_or_default(),
            revocation_endpoint: authority.revocation_endpoint(),
            ..Client::default()
        };
        let vault = Vault { place: self.place.clone(), turn, client };
        authority.manager.set_credential_store(vault);
        let response = authority.manager.exchange_client_credentials(&config).await?;
        Ok(response.access_token().secret().clone().into())
    }

    /// Returns the login as it is kept, if it was made as the servers file now wants it.
    pub(super) async fn known(&self) -> Result<Option<Record>, Trouble> {
        let record = self.place.load().await?.filter(|record| {
            let client = &record.client;
            let is_same = self.oauth.client_id.as_ref().is_none_or(|id| *id == client.id);
            client.grant == self.oauth.grant && is_same
        });
        if let Some(credentials) = record.as_ref().and_then(|record| record.credentials.as_ref()) {
            self.learn(credentials);
        }
        Ok(record)
    }

    /// Keeps tokens out of whatever is said of the server.
    pub(super) fn learn(&self, credentials: &StoredCredentials) {
        let Some(response) = &credentials.token_response else { return };
        self.secrets.learn(response.access_token().secret());
        if let Some(refresh) = response.refresh_token() {
            self.secrets.learn(refresh.secret());
        }
    }

    /// Returns the secret that proves who this program is, if there is one.
    pub(super) fn secret(&self, client: &Client) -> Option<SecretString> {
        match &self.oauth.client_id {
            Some(_) => self.oauth.client_secret.clone(),
            None => client.secret.clone().map(Into::into),
        }
    }

    fn held(&self, record: &Record) -> Option<Held> {
        let credentials = record.credentials.as_ref()?;
        let response = credentials.token_response.as_ref()?;
        let token = response.access_token().secret().clone().into();
        let (Some(life), Some(since)) = (response.expires_in(), credentials.token_received_at)
        else {
            return Some(Held { token, is_fresh: true, is_alive: true });
        };
        let now = u64::try_from(clock::now().timestamp()).unwrap_or_default();
        let left = life.saturating_sub(Duration::from_secs(now.saturating_sub(since)));
        let is_fresh = left > MARGIN.min(life / 2);
        Some(Held { token, is_fresh, is_alive: !left.is_zero() })
    }

    /// Notes that the server took a request.
    pub fn accepted(&self) {
        self.set_trouble(None);
    }

    /// Notes that the server refused a request, and what it would take.
    pub async fn refused(&self, refusal: Refusal) {
        self.set_challenge(Some(refusal.challenge));
        let server = &self.server;
        let Some(lacks) = refusal.lacks else {
            let is_known = matches!(self.place.load().await, Ok(Some(_)));
            self.set_trouble(Some(self.advice(is_known)));
            return;
        };
        let scopes: Vec<String> = lacks.split_whitespace().map(str::to_owned).collect();
        let shown = menu::cut(&menu::one_line(&scopes.join(" ")), SCOPE_CHARS);
        self.set_trouble(Some(match self.oauth.grant {
            Grant::ClientCredentials => {
                format!("the client credentials do not allow this; it wants the scopes: {shown}")
            }
            Grant::AuthorizationCode => format!(
                "its login does not allow this (it wants the scopes: {shown}); log in again: perihelion agents login \
                 {server}"
            ),
        }));
        if let Err(error) = self.want(scopes).await {
            tracing::debug!(%server, %error, "the scopes that a server wants were not kept");
        }
    }

    /// Says what to do about a server that takes no token that there is.
    fn advice(&self, is_known: bool) -> String {
        let server = &self.server;
        match (self.oauth.grant, is_known) {
            (Grant::ClientCredentials, _) => {
                "it does not accept the token that the client credentials give; see oauth and scopes in its table"
                    .to_owned()
            }
            (_, true) => format!(
                "its login is not accepted any longer; log in again: perihelion agents login {server}"
            ),
            (_, false) => format!("it wants a login: perihelion agents login {server}"),
        }
    }

    /// Keeps the scopes for which the next login is to ask.
    async fn want(&self, scopes: Vec<String>) -> Result<(), Trouble> {
        let turn = self.place.turn().await?;
        let Some(Record { client, credentials, mut wanted, .. }) = self.place.load().await? else {
            return Ok(());
        };
        for scope in scopes {
            if !wanted.contains(&scope) && wanted.len() < MAX_SCOPES {
                wanted.push(scope);
            }
        }
        self.place.store(&turn, client, credentials, wanted).await
    }

    /// Finds out from what is kept whether a login is wanted, without asking the server.
    pub async fn look(&self) {
        if let Ok(Some(Record { credentials: None, .. })) = self.place.load().await {
            self.set_trouble(Some(self.advice(true)));
        }
    }

    /// Says why requests are refused, while they are.
    pub fn trouble(&self) -> Option<String> {
        let trouble = self.trouble.lock().unwrap_or_else(PoisonError::into_inner).clone();
        trouble.map(|why| self.secrets.redact(&why))
    }

    fn set_trouble(&self, why: Option<String>) {
        *self.trouble.lock().unwrap_or_else(PoisonError::into_inner) = why;
    }

    /// Returns what the server last said when it refused a request.
    pub(super) fn challenge(&self) -> Option<String> {
        self.challenge.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(super) fn set_challenge(&self, challenge: Option<String>) {
        *self.challenge.lock().unwrap_or_else(PoisonError::into_inner) = challenge;
    }
}

/// What a server said when it refused a request.
pub(in crate::mcp) struct Refusal {
    /// Its `WWW-Authenticate` header.
    pub challenge: String,
    /// The scopes that the token lacks, where it is for want of them.
    pub lacks: Option<String>,
}

/// A token that is at hand.
struct Held {
    token: SecretString,
    /// It need not be renewed yet.
    is_fresh: bool,
    /// It has not run out.
    is_alive: bool,
}

/// What an attempt to renew a token came to.
enum Refreshed {
    Token(SecretString),
    /// The login is over.
    Over(Client),
    /// It may succeed another time.
    Failed(Trouble),
}

pub(super) fn is_refreshable(credentials: &StoredCredentials) -> bool {
    credentials.token_response.as_ref().is_some_and(|response| response.refresh_token().is_some())
}
