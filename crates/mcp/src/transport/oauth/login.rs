//! A person's login (the address to visit, the browser's return, the exchange of the code), and its end (RFC 7009).

use std::sync::Arc;
use std::time::Duration;

use oauth2::TokenResponse as _;
use rmcp::transport::auth::OAuthClientConfig;
use secrecy::ExposeSecret as _;

use super::access::{Access, is_refreshable};
use super::authority::{Authority, LoginFailure};
use super::callback::{Callback, Returned, Waiting};
use super::logins::{Client, Record, Vault};
use super::renewal::OFFLINE_ACCESS;
use crate::configuration::Grant;
use crate::types::{Error, Reason, Result, text};
use perihelion_http::reach;
use perihelion_settings::config::tls;

/// The refusal text of an authorization server is cut here.
const REASON_CHARS: usize = 300;
/// The name that an authorization server shows to the person who logs in.
const CLIENT_NAME: &str = "Perihelion";

pub struct Login {
    access: Arc<Access>,
    authority: Authority,
    client: Client,
    address: String,
    waiting: Waiting,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoggedIn {
    pub server: String,
    pub issuer: Option<String>,
    /// Its scopes, if the authorization server lists them.
    pub scopes: Vec<String>,
    /// It can be renewed without a person.
    pub is_renewable: bool,
}

impl Login {
    /// Finds the authorization server, makes this program known to it, and listens for the browser.
    pub(crate) async fn begin(access: Arc<Access>) -> Result<Self> {
        let failed = |failure| access.login_error(failure);
        if access.oauth.grant == Grant::ClientCredentials {
            let server = access.server.clone();
            let reason = "it is used with client credentials (oauth.grant), without a login".into();
            return Err(Error::Login { server, reason });
        }
        let (authority, client, address, callback) = prepare(&access).await.map_err(failed)?;
        let state = reqwest::Url::parse(&address).ok().and_then(|address| {
            let mut pairs = address.query_pairs();
            pairs.find(|(name, _)| name == "state").map(|(_, state)| state.into_owned())
        });
        let state =
            state.filter(|state| !state.is_empty()).ok_or_else(|| failed(LoginFailure::NoState))?;
        let waiting = callback.wait(state);
        Ok(Self { access, authority, client, address, waiting })
    }

    /// Returns the address that the person must visit with a browser on this machine.
    pub fn address(&self) -> &str {
        &self.address
    }

    /// Waits for the browser to come back, and exchanges the code that it brings for a token.
    ///
    /// # Errors
    /// [`Error::Login`]; an earlier login then stays unchanged.
    pub async fn finish(mut self, patience: Duration) -> Result<LoggedIn> {
        let access = self.access.clone();
        let waited = tokio::time::timeout(patience, self.waiting.returned()).await;
        self.waiting.close().await;
        let finished = match waited {
            Ok(Some(returned)) => exchange(&access, self.authority, self.client, returned).await,
            _ => Err(LoginFailure::Late(patience.as_secs())),
        };
        finished.map_err(|failure| access.login_error(failure))
    }
}

impl Access {
    pub(super) fn login_error(&self, failure: LoginFailure) -> Error {
        let clean =
            |words: &str| text::cut(&text::one_line(&self.secrets.redact(words)), 4 * REASON_CHARS);
        let reason = Reason::of(failure, clean);
        Error::Login { server: self.server.clone(), reason }
    }
}

async fn prepare(access: &Access) -> Result<(Authority, Client, String, Callback), LoginFailure> {
    let mut authority = Authority::find(access).await?;
    // A client secret and a code go to whom they went before, whatever the server says now.
    let earlier = access.known().await?;
    authority.is_that_of(earlier.as_ref(), access)?;
    if !authority.has_pkce() {
        return Err(LoginFailure::NoPkce);
    }
    let callback = Callback::listen(access.oauth.callback_port).await?;
    let scopes = scopes(access, &authority, earlier).await;
    let scopes: Vec<&str> = scopes.iter().map(String::as_str).collect();
    let redirect_uri = callback.redirect_uri.clone();
    let mut client = Client {
        grant: Grant::AuthorizationCode,
        redirect_uri: redirect_uri.clone(),
        issuer: authority.metadata.issuer.clone(),
        revocation_endpoint: authority.revocation_endpoint(),
        ..Client::default()
    };
    let document = access.oauth.client_metadata_url.as_ref();
    let document = document.filter(|_| authority.takes_client_metadata());
    if let Some(id) = access.oauth.client_id.as_ref().or(document) {
        let mut config = OAuthClientConfig::new(id, &redirect_uri);
        if let Some(secret) = &access.oauth.client_secret {
            config = config.with_client_secret(secret.expose_secret());
        }
        authority.manager.configure_client(config)?;
        client.id = id.clone();
    } else if authority.metadata.registration_endpoint.is_some() {
        let registered =
            authority.manager.register_client(CLIENT_NAME, &redirect_uri, &scopes).await?;
        client.id = registered.client_id;
        if let Some(secret) = registered.client_secret {
            access.secrets.learn(&secret);
            client.secret = Some(secret);
        }
    } else {
        return Err(LoginFailure::NoRegistration);
    }
    let address = authority.manager.get_authorization_url(&scopes).await?;
    Ok((authority, client, address, callback))
}

/// Chooses the scopes: the operator's, otherwise those that the server wants; and if the server wanted more than the
/// earlier login permitted, all of them together.
async fn scopes(access: &Access, authority: &Authority, earlier: Option<Record>) -> Vec<String> {
    let mut scopes = Vec::new();
    let mut wanted = Vec::new();
    if let Some(record) = earlier.filter(|record| !record.wanted.is_empty()) {
        scopes = record.credentials.map(|it| it.granted_scopes).unwrap_or_default();
        wanted = record.wanted;
    }
    scopes.extend(access.oauth.scopes.iter().cloned());
    if scopes.is_empty() {
        scopes = authority.manager.select_initial_scopes(&[]).await;
    }
    scopes.extend(wanted);
    if !scopes.is_empty() && authority.knows_scope(OFFLINE_ACCESS) {
        scopes.push(OFFLINE_ACCESS.to_owned());
    }
    let mut seen = std::collections::HashSet::new();
    scopes.retain(|scope| seen.insert(scope.clone()));
    scopes
}

/// Exchanges the code of the redirect for a token, and stores it.
async fn exchange(
    access: &Access,
    mut authority: Authority,
    client: Client,
    returned: Returned,
) -> Result<LoggedIn, LoginFailure> {
    let issuer = authority.metadata.issuer.as_deref();
    let code = match returned {
        Returned { code: Some(code), error: None, .. } => code,
        Returned { iss: Some(iss), .. } if Some(iss.as_str()) != issuer => {
            return Err(LoginFailure::Refused("the refusal came from another issuer".to_owned()));
        }
        Returned { error, error_description, .. } => {
            let error = error.unwrap_or_else(|| "no code came back".to_owned());
            let more = error_description.map(|more| format!(": {more}")).unwrap_or_default();
            let message = text::one_line(&access.secrets.redact(&format!("{error}{more}")));
            return Err(LoginFailure::Refused(text::cut(&message, REASON_CHARS)));
        }
    };
    access.secrets.learn(&code);
    let turn = Arc::new(access.place.turn().await?);
    let vault = Vault { place: access.place.clone(), turn, client };
    authority.manager.set_credential_store(vault);
    let iss = returned.iss.as_deref();
    authority.manager.exchange_code_for_token_with_issuer(&code, &returned.state, iss).await?;
    drop(authority);
    *access.challenge.lock() = None;
    access.accepted();
    let record = access.known().await?;
    let credentials = record.and_then(|record| record.credentials);
    Ok(LoggedIn {
        server: access.server.clone(),
        issuer: credentials.as_ref().and_then(|it| it.issuer.clone()),
        is_renewable: credentials.as_ref().is_some_and(is_refreshable),
        scopes: credentials.map(|it| it.granted_scopes).unwrap_or_default(),
    })
}

/// Longest wait for a revocation: the tokens are deleted here in any case.
const PATIENCE: Duration = Duration::from_secs(15);

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LoggedOut {
    /// There was none.
    WasNot,
    /// It is forgotten here, and its tokens are void.
    Revoked,
    /// It is forgotten here; the authorization server offers no revocation.
    Forgotten,
    /// It is forgotten here; why its tokens may still be valid.
    NotRevoked(String),
}

impl Access {
    /// Forgets the login.
    ///
    /// # Errors
    /// [`Error::Login`] when its file cannot be changed.
    pub async fn log_out(&self) -> Result<LoggedOut> {
        self.forget().await.map_err(|failure| self.login_error(failure))
    }

    async fn forget(&self) -> Result<LoggedOut, LoginFailure> {
        let turn = self.place.turn().await?;
        let record = self.place.load().await?;
        self.place.remove(&turn).await?;
        let Some(record) = record else { return Ok(LoggedOut::WasNot) };
        let Some(endpoint) = record.client.revocation_endpoint.clone() else {
            return Ok(LoggedOut::Forgotten);
        };
        Ok(match self.revoke(&endpoint, &record).await {
            Ok(()) => LoggedOut::Revoked,
            Err(why) => LoggedOut::NotRevoked(self.secrets.redact(&why.to_string())),
        })
    }

    /// Revokes the refresh token, with which all that was made of it goes, or else the token itself.
    async fn revoke(&self, endpoint: &str, record: &Record) -> Result<(), LoginFailure> {
        let Some(credentials) = &record.credentials else { return Ok(()) };
        self.learn(credentials);
        let Some(response) = &credentials.token_response else { return Ok(()) };
        let (token, kind) = match response.refresh_token() {
            Some(token) => (token.secret(), "refresh_token"),
            None => (response.access_token().secret(), "access_token"),
        };
        tls::install();
        let mut request = reach::client(PATIENCE, endpoint)?.post(endpoint).timeout(PATIENCE);
        let mut form = vec![("token", token.as_str()), ("token_type_hint", kind)];
        let secret = self.secret(&record.client);
        match &secret {
            Some(secret) => {
                request = request
                    .basic_auth(encoded(&record.client.id), Some(encoded(secret.expose_secret())));
            }
            None => form.push(("client_id", &record.client.id)),
        }
        let answered = request
            .header("content-type", "application/x-www-form-urlencoded")
            .body(url::form_urlencoded::Serializer::new(String::new()).extend_pairs(form).finish())
            .send()
            .await?;
        match answered.status() {
            status if status.is_success() => Ok(()),
            status => Err(LoginFailure::NotRevoked(status)),
        }
    }
}

/// Encodes a value as RFC 6749 wants it in a header of basic authentication.
fn encoded(value: &str) -> String {
    url::form_urlencoded::byte_serialize(value.as_bytes()).collect()
}
