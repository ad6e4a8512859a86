//! An OpenID provider, found by its discovery document: authorization code flow with PKCE.
//!
//! Invariants: a code is exchanged only for the browser that began the login; no code or token is logged. Deliberately
//! absent: access tokens, which nothing here needs.

use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use perihelion_people::{Error, IdentityRules, LoginAttempt, People, Scope, User};
use schemars::JsonSchema;
use serde::Deserialize;
use tokio::sync::Semaphore;
use url::Url;
use url::form_urlencoded::{Serializer, byte_serialize};

use super::issuer::{self, Issuer};
use perihelion_engine::checkpoint::Cause;
use perihelion_engine::clock;
use perihelion_settings::config::{self, Permission};

/// How long the provider's configuration is used before it is read again.
const FRESH: Duration = Duration::from_secs(600);

/// Concurrent requests to the provider; further logins are refused.
const TURNS: usize = 32;

pub(super) struct Provider {
    settings: config::Oidc,
    rules: IdentityRules,
    tenant: String,
    found: Mutex<Option<(Arc<Found>, Instant)>>,
    turns: Semaphore,
}

/// The published configuration of a provider, with its keys.
struct Found {
    configuration: Configuration,
    issuer: Issuer,
}

#[derive(Deserialize)]
struct Configuration {
    issuer: String,
    authorization_endpoint: config::IssuerUrl,
    token_endpoint: config::IssuerUrl,
    jwks_uri: config::IssuerUrl,
    end_session_endpoint: Option<config::IssuerUrl>,
    #[serde(rename = "token_endpoint_auth_methods_supported")]
    auth_methods: Option<Vec<String>>,
    /// Whether it names its issuer with each code (RFC 9207).
    #[serde(default, rename = "authorization_response_iss_parameter_supported")]
    names_issuer: bool,
}

/// The answer of the token endpoint, of which the ID token alone is read.
#[derive(Deserialize)]
struct Tokens {
    id_token: String,
}

/// The parameters with which a provider sends a browser back.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(default)]
pub(super) struct Returned {
    code: Option<String>,
    state: Option<String>,
    iss: Option<String>,
    error: Option<String>,
}

/// Why a login failed, as the web UI explains it.
pub(super) enum Failure {
    /// The browser did not begin this login, or too long ago.
    Expired,
    /// The provider or the user declined.
    Denied,
    /// The user is not permitted to use the service.
    Forbidden,
    /// Another user has the name.
    Taken,
    /// The provider cannot be reached or answers wrongly.
    Provider(Box<dyn std::error::Error + Send + Sync>),
}

impl Failure {
    pub(super) fn word(&self) -> &'static str {
        match self {
            Self::Expired => "expired",
            Self::Denied => "denied",
            Self::Forbidden => "forbidden",
            Self::Taken => "taken",
            Self::Provider(_) => "provider",
        }
    }
}

/// Reads the configuration and keys of each issuer of the settings, as a login or a token would; each read ends within
/// five seconds. Returns the tables of the issuers with the outcomes.
pub async fn check_issuers(settings: &config::Serve) -> Vec<(&'static str, Result<(), Cause>)> {
    let mut checks = Vec::new();
    if let Some(oidc) = &settings.oidc {
        checks.push(("serve.oidc", Provider::new(oidc.clone(), "").check().await));
    }
    if let Some(jwt) = &settings.jwt {
        let read = Issuer::new(jwt.clone(), "").check().await;
        checks.push(("serve.jwt", read.map_err(Into::into)));
    }
    checks
}

fn failed(error: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Failure {
    Failure::Provider(error.into())
}

impl Provider {
    pub(super) fn new(settings: config::Oidc, tenant: &str) -> Self {
        let scopes = |all: &[Permission]| all.iter().copied().map(scope).collect::<Vec<_>>();
        let roles = settings.roles.iter().map(|(role, all)| (role.clone(), scopes(all)));
        let rules = IdentityRules {
            client_id: settings.client_id.clone(),
            user_claim: settings.user_claim.clone(),
            roles_claim: settings.roles_claim.clone(),
            roles: roles.collect(),
            default_scopes: scopes(&settings.default_permissions),
        };
        let turns = Semaphore::new(TURNS);
        Self { settings, rules, tenant: tenant.to_owned(), found: Mutex::default(), turns }
    }

    pub(super) fn name(&self) -> &str {
        &self.settings.name
    }

    /// Returns the address of the web UI.
    pub(super) fn home(&self) -> &str {
        self.settings.public_url.as_str().trim_end_matches('/')
    }

    fn redirect_uri(&self) -> String {
        format!("{}/v1/auth/oidc/callback", self.home())
    }

    /// Returns the provider's configuration, which it must publish for the very issuer of the settings.
    async fn found(&self) -> Result<Arc<Found>, Failure> {
        let known = self.found.lock().clone();
        if let Some((found, _)) = known.filter(|(_, at)| at.elapsed() < FRESH) {
            return Ok(found);
        }
        let _turn = self.turns.try_acquire().map_err(|_| failed("too many logins"))?;
        let wanted = self.settings.issuer.as_str();
        let address = format!("{}/.well-known/openid-configuration", wanted.trim_end_matches('/'));
        let asked = issuer::client().map_err(failed)?.get(address);
        let text = issuer::answer(asked).await.map_err(failed)?;
        let read = serde_json::from_str(&text);
        let configuration: Configuration =
            read.map_err(|error| failed(format!("the configuration is unusable: {error}")))?;
        if configuration.issuer != wanted {
            let other = configuration.issuer;
            return Err(failed(format!("the configuration names another issuer: {other}")));
        }
        let keys = config::Jwt {
            issuer: configuration.issuer.clone(),
            audience: self.settings.client_id.clone(),
            jwks_url: configuration.jwks_uri.clone(),
            algorithms: self.settings.algorithms.clone(),
            tenant_claim: None,
            scope_claim: None,
        };
        let found = Arc::new(Found { configuration, issuer: Issuer::new(keys, &self.tenant) });
        *self.found.lock() = Some((Arc::clone(&found), clock::monotonic()));
        Ok(found)
    }

    async fn check(&self) -> Result<(), Cause> {
        match self.found().await {
            Ok(found) => Ok(found.issuer.check().await?),
            Err(Failure::Provider(error)) => Err(error),
            Err(other) => Err(other.word().into()),
        }
    }

    pub(super) async fn address(&self, attempt: &LoginAttempt) -> Result<Url, Failure> {
        let found = self.found().await?;
        let endpoint = found.configuration.authorization_endpoint.as_str();
        let mut address = Url::parse(endpoint).map_err(failed)?;
        address.query_pairs_mut().extend_pairs([
            ("response_type", "code"),
            ("client_id", self.settings.client_id.as_str()),
            ("redirect_uri", self.redirect_uri().as_str()),
            ("scope", self.settings.scopes.join(" ").as_str()),
            ("state", attempt.state().as_str()),
            ("nonce", attempt.nonce().as_str()),
            ("code_challenge", attempt.challenge().as_str()),
            ("code_challenge_method", "S256"),
        ]);
        Ok(address)
    }

    pub(super) async fn logout_address(&self) -> Option<Url> {
        let found = self.found().await.ok()?;
        let endpoint = found.configuration.end_session_endpoint.as_ref()?;
        let mut address = Url::parse(endpoint.as_str()).ok()?;
        address.query_pairs_mut().extend_pairs([
            ("client_id", self.settings.client_id.as_str()),
            ("post_logout_redirect_uri", self.settings.public_url.as_str()),
        ]);
        Some(address)
    }

    /// Completes the login that a browser began, with what the provider sent back.
    pub(super) async fn user(
        &self,
        people: &People,
        attempt: Option<LoginAttempt>,
        returned: Returned,
    ) -> Result<User, Failure> {
        let attempt = attempt.ok_or(Failure::Expired)?;
        if returned.state != Some(attempt.state()) {
            return Err(Failure::Expired);
        }
        let found = self.found().await?;
        let is_required = found.configuration.names_issuer;
        match &returned.iss {
            Some(other) if *other != found.configuration.issuer => {
                return Err(failed("the answer is of another issuer"));
            }
            None if is_required => return Err(failed("the answer does not name its issuer")),
            _ => {}
        }
        let code = returned.code.filter(|_| returned.error.is_none()).ok_or(Failure::Denied)?;
        let token = self.exchange(&found.configuration, &code, &attempt).await?;
        let now = clock::now();
        let identity = match found.issuer.claims(&token, now).await {
            Ok(claims) => self.rules.identity(&claims, &attempt.nonce()),
            Err(error) => return Err(failed(error)),
        };
        let user = match identity {
            Ok(identity) => people.signed_on(&self.tenant, identity, now).await,
            Err(error) => Err(error),
        };
        user.map_err(|error| match error {
            Error::Taken(_) => Failure::Taken,
            Error::NotAccepted(why) => {
                tracing::warn!(why, "a single sign-on was refused");
                Failure::Forbidden
            }
            other => failed(other),
        })
    }

    async fn exchange(
        &self,
        configuration: &Configuration,
        code: &str,
        attempt: &LoginAttempt,
    ) -> Result<String, Failure> {
        let _turn = self.turns.try_acquire().map_err(|_| failed("too many logins"))?;
        let client_id = self.settings.client_id.as_str();
        let verifier = attempt.verifier();
        let redirect_uri = self.redirect_uri();
        let mut form = vec![
            ("grant_type", "authorization_code"),
            ("code", code),
            ("redirect_uri", redirect_uri.as_str()),
            ("code_verifier", verifier.as_str()),
        ];
        let endpoint = configuration.token_endpoint.as_str();
        let mut request = issuer::client().map_err(failed)?.post(endpoint);
        // Without a list, it is this method (OpenID Connect Discovery).
        let methods = configuration.auth_methods.as_deref();
        let is_basic = methods.is_none_or(|all| all.iter().any(|one| one == "client_secret_basic"));
        match &self.settings.client_secret {
            Some(secret) if is_basic => {
                request = request.basic_auth(encoded(client_id), Some(encoded(secret.expose())));
            }
            Some(secret) => {
                form.extend([("client_id", client_id), ("client_secret", secret.expose())]);
            }
            None => form.push(("client_id", client_id)),
        }
        let body = Serializer::new(String::new()).extend_pairs(form).finish();
        let request =
            request.header("content-type", "application/x-www-form-urlencoded").body(body);
        let text = issuer::answer(request).await.map_err(failed)?;
        // The error of a parser can contain what it read.
        let tokens: Result<Tokens, _> = serde_json::from_str(&text);
        tokens.map(|tokens| tokens.id_token).map_err(|_| failed("it sent no ID token"))
    }
}

/// Encodes a part of the client's credentials (RFC 6749, 2.3.1).
fn encoded(text: &str) -> String {
    byte_serialize(text.as_bytes()).collect()
}

fn scope(permission: Permission) -> Scope {
    match permission {
        Permission::Read => Scope::Read,
        Permission::Run => Scope::Run,
        Permission::Approve => Scope::Approve,
        Permission::Manage => Scope::Manage,
        Permission::Operate => Scope::Operate,
    }
}
