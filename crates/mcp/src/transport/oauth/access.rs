//! The token of every request to a server: read, renewed before it runs out, and renewed once when it is refused.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use oauth2::TokenResponse as _;
use parking_lot::Mutex;
use rmcp::transport::auth::StoredCredentials;
use secrecy::{ExposeSecret as _, SecretString};
use tokio_util::task::TaskTracker;

use super::authority::LoginFailure;
use super::logins::{Client, LoginFile, Logins, Record};
use crate::configuration::{Grant, OAuth};
use crate::transport::delivery::Failure;
use crate::{configuration::redact::Secrets, types::text};
use perihelion_clock as clock;

/// A token is renewed when it has less than this left, or half of its life if that is shorter.
const MARGIN: Duration = Duration::from_secs(30);
/// A server that wants more scopes than this wants nonsense.
const MAX_SCOPES: usize = 32;
/// How long the end of a process waits for a renewal: longer than the request for a token may take.
const SETTLE: Duration = Duration::from_secs(35);
/// Longer words of an authorization server are shown in part.
const FAILURE_CHARS: usize = 300;
/// Longer challenges are shown in part.
const SCOPE_CHARS: usize = 200;

#[derive(Clone)]
struct Why {
    /// In the words of this program alone.
    brief: String,
    /// With the server's texts.
    whole: String,
}

impl From<String> for Why {
    fn from(brief: String) -> Self {
        Self { whole: brief.clone(), brief }
    }
}

pub(crate) struct Access {
    pub(super) server: String,
    pub(super) url: String,
    pub(super) oauth: OAuth,
    pub(super) secrets: Secrets,
    pub(super) place: LoginFile,
    /// The server's last refusal of a request.
    pub(super) challenge: Mutex<Option<String>>,
    /// Why requests are refused, while they are, and when the login was written last by then.
    failure: Mutex<Option<(Why, Option<SystemTime>)>>,
    renewals: TaskTracker,
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
            failure: Mutex::default(),
            renewals: TaskTracker::new(),
        }
    }

    /// Returns the token for the next request, renewed if it is about to expire; `None` without a login.
    pub async fn token(self: &Arc<Self>) -> Result<Option<SecretString>, LoginFailure> {
        let record = self.known().await?;
        if let Some(usable) = record.as_ref().and_then(|record| self.usable(record))
            && usable.is_fresh
        {
            return Ok(Some(usable.token));
        }
        let is_hopeless = record.is_none_or(|record| record.credentials.is_none());
        if is_hopeless && self.oauth.grant == Grant::AuthorizationCode {
            return Ok(None);
        }
        self.renewed(None).await
    }

    /// Returns a token that replaces an old or refused one; `None` if a person must log in.
    ///
    /// It continues without a waiting caller, because the authorization server's answer must be stored.
    pub async fn renewed(
        self: &Arc<Self>,
        refused: Option<SecretString>,
    ) -> Result<Option<SecretString>, LoginFailure> {
        let me = self.clone();
        let renewing = self.renewals.spawn(async move { me.renew(refused).await });
        let renewed = renewing.await.unwrap_or(Err(LoginFailure::Ending));
        match &renewed {
            Ok(Some(token)) => self.secrets.learn(token.expose_secret()),
            Ok(None) => {}
            Err(failure) => self.set_failure(Some(self.without_token(failure))),
        }
        renewed
    }

    /// Waits for active renewals, whose tokens would otherwise be lost; with a limit.
    pub async fn settle(&self) {
        self.renewals.close();
        if tokio::time::timeout(SETTLE, self.renewals.wait()).await.is_err() {
            tracing::warn!(server = %self.server, "a token of an MCP server was still being renewed");
        }
    }

    /// Returns the stored login, if it matches the servers file.
    pub(super) async fn known(&self) -> Result<Option<Record>, LoginFailure> {
        let record = self.place.load().await?.filter(|record| {
            let client = &record.client;
            let is_same = self.oauth.client_id.as_ref().is_none_or(|id| *id == client.id);
            // The server names the scopes that a login lacks; client credentials must request new ones themselves.
            let is_wide =
                client.grant == Grant::AuthorizationCode || client.scopes == self.oauth.scopes;
            client.grant == self.oauth.grant && is_same && is_wide
        });
        if let Some(secret) = record.as_ref().and_then(|record| record.client.secret.as_ref()) {
            self.secrets.learn(secret);
        }
        if let Some(credentials) = record.as_ref().and_then(|record| record.credentials.as_ref()) {
            self.learn(credentials);
        }
        Ok(record)
    }

    pub(super) fn learn(&self, credentials: &StoredCredentials) {
        let Some(response) = &credentials.token_response else { return };
        self.secrets.learn(response.access_token().secret());
        if let Some(refresh) = response.refresh_token() {
            self.secrets.learn(refresh.secret());
        }
    }

    pub(super) fn secret(&self, client: &Client) -> Option<SecretString> {
        match &self.oauth.client_id {
            Some(_) => self.oauth.client_secret.clone(),
            None => client.secret.clone().map(Into::into),
        }
    }

    pub(super) fn usable(&self, record: &Record) -> Option<StoredToken> {
        let credentials = record.credentials.as_ref()?;
        let response = credentials.token_response.as_ref()?;
        let token = response.access_token().secret().clone().into();
        let (Some(life), Some(since)) = (response.expires_in(), credentials.token_received_at)
        else {
            return Some(StoredToken { token, is_fresh: true, is_alive: true });
        };
        let now = u64::try_from(clock::now().timestamp()).unwrap_or_default();
        let left = life.saturating_sub(Duration::from_secs(now.saturating_sub(since)));
        let is_fresh = left > MARGIN.min(life / 2);
        Some(StoredToken { token, is_fresh, is_alive: !left.is_zero() })
    }

    pub fn accepted(&self) {
        self.set_failure(None);
    }

    /// Notes why the server refused a request, if the token was the reason.
    pub async fn refused(&self, failure: &Failure) {
        let server = &self.server;
        let lacks = match failure {
            Failure::AuthRequired(error) => {
                // A refusal for missing scopes names those alone, so its challenge is not stored.
                let challenge = Some(error.www_authenticate_header.clone());
                *self.challenge.lock() = challenge.filter(|challenge| !challenge.is_empty());
                let is_known = matches!(self.known().await, Ok(Some(_)));
                self.set_failure(Some(self.advice(is_known).into()));
                return;
            }
            Failure::InsufficientScope(error) => error.required_scope.as_deref(),
            _ => return,
        };
        let lacks = lacks.unwrap_or_default();
        let scopes: Vec<String> = lacks.split_whitespace().map(str::to_owned).collect();
        if scopes.is_empty() {
            let why = "it does not allow this, and does not name the required scopes";
            return self.set_failure(Some(why.to_owned().into()));
        }
        let shown = text::one_line(&self.secrets.redact(&scopes.join(" ")));
        let shown = text::cut(&shown, SCOPE_CHARS);
        if let Err(error) = self.want(scopes).await {
            tracing::debug!(%server, %error, "the scopes that a server wants were not kept");
        }
        let lacks = format!("it wants the scopes: {shown}");
        self.set_failure(Some(match self.oauth.grant {
            Grant::ClientCredentials => {
                let brief = "the client credentials do not allow this";
                Why { brief: brief.to_owned(), whole: format!("{brief}; {lacks}") }
            }
            Grant::AuthorizationCode => {
                let why = "its login does not allow this";
                let out = format!("log in again: perihelion agents login {server}");
                let whole = format!("{why} ({lacks}); {out}");
                Why { brief: format!("{why}; {out}"), whole }
            }
        }));
    }

    fn without_token(&self, failure: &LoginFailure) -> Why {
        let server = &self.server;
        let out = match self.oauth.grant {
            Grant::ClientCredentials => String::new(),
            Grant::AuthorizationCode => {
                format!("; if this lasts, log in again: perihelion agents login {server}")
            }
        };
        // What an authorization server says goes into logs.
        let message = text::one_line(&self.secrets.redact(&failure.to_string()));
        let why = format!("no token could be got: {}{out}", text::cut(&message, FAILURE_CHARS));
        tracing::warn!(%server, reason = %why, "no token for an MCP server");
        Why { brief: format!("no token could be got{out}"), whole: why }
    }

    /// Explains how to fix a server that refuses every token.
    fn advice(&self, is_known: bool) -> String {
        let server = &self.server;
        if self.oauth.grant == Grant::ClientCredentials {
            "it does not accept the token that the client credentials give; see oauth and scopes in its table"
                .to_owned()
        } else if is_known {
            format!(
                "its login is no longer accepted; log in again: perihelion agents login {server}"
            )
        } else {
            format!("it wants a login: perihelion agents login {server}")
        }
    }

    async fn want(&self, scopes: Vec<String>) -> Result<(), LoginFailure> {
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

    /// Determines from stored data whether a login is required, without asking the server.
    pub async fn look(&self) {
        if let Ok(Some(Record { credentials: None, .. })) = self.known().await {
            self.set_failure(Some(self.advice(true).into()));
        }
    }

    /// Returns why requests are refused, until one succeeds, or a person has logged in since.
    pub fn failure(&self) -> Option<String> {
        Some(self.secrets.redact(&self.why()?.whole))
    }

    /// Returns the same in this program's own words, which are safe in a prompt.
    pub fn failure_in_brief(&self) -> Option<String> {
        Some(self.why()?.brief)
    }

    fn why(&self) -> Option<Why> {
        let failure = self.failure.lock().clone();
        let (why, written) = failure?;
        (written == self.place.written()).then_some(why)
    }

    fn set_failure(&self, why: Option<Why>) {
        let failure = why.map(|why| (why, self.place.written()));
        *self.failure.lock() = failure;
    }
}

pub(super) struct StoredToken {
    pub token: SecretString,
    pub is_fresh: bool,
    /// It has not run out.
    pub is_alive: bool,
}

pub(super) fn is_refreshable(credentials: &StoredCredentials) -> bool {
    credentials.token_response.as_ref().is_some_and(|response| response.refresh_token().is_some())
}
