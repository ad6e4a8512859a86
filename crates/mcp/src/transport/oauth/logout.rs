//! Forgets a login, and has its tokens revoked where the authorization server does that (RFC 7009).

use std::time::Duration;

use oauth2::TokenResponse as _;
use secrecy::ExposeSecret as _;

use super::{access::Access, failure::LoginFailure, logins::Record};
use crate::transport::address;
use crate::types::Error;
use perihelion_settings::config::tls;

/// Nobody waits longer for a revocation: the tokens are forgotten here in any case.
const PATIENCE: Duration = Duration::from_secs(15);

/// What was done to forget a login.
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
    pub async fn log_out(&self) -> Result<LoggedOut, Error> {
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
        let mut client = reqwest::Client::builder()
            .timeout(PATIENCE)
            .redirect(reqwest::redirect::Policy::none());
        if address::is_loopback(endpoint) {
            // What need not be encrypted because it stays here must not pass a proxy.
            client = client.no_proxy();
        }
        let client = client.build()?;
        let mut form = vec![("token", token.as_str()), ("token_type_hint", kind)];
        let secret = self.secret(&record.client);
        let mut request = client.post(endpoint);
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
