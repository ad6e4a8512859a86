//! The section of the service.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use secrecy::{ExposeSecret as _, SecretString};
use serde::Deserialize;

use super::resolve::{Setting, any, if_any, list, positive, seconds, section};
use super::strict::Invalid;

section! {
    /// What `perihelion serve` does.
    Serve, ServeFile, "serve" {
        /// Address to listen on; beyond loopback only where callers prove who they are.
        addr: SocketAddr = SocketAddr::from(([127, 0, 0, 1], 2024)), "PERIHELION_SERVE_ADDR", any;
        /// The token of clients, sent as `x-api-key` or as a bearer token; without it, every client of a loopback
        /// address has access.
        token: Option<Secret> = None, "PERIHELION_SERVE_TOKEN", if_any(strong);
        /// Whether people may register themselves by name and password, in the service's own tenant.
        registration: bool = false, "PERIHELION_SERVE_REGISTRATION", any;
        /// Seconds that a login lasts.
        session_sec: f64 = 604_800.0, "PERIHELION_SERVE_SESSION_SEC", seconds;
        /// Another issuer whose tokens are accepted; in the environment as a JSON object. None: no other issuer.
        jwt: Option<Jwt> = None, "PERIHELION_SERVE_JWT", any;
        /// The OpenID provider for single sign-on; in the environment as a JSON object. None: no single sign-on.
        oidc: Option<Oidc> = None, "PERIHELION_SERVE_OIDC", any;
        /// Host names of requests, in addition to loopback ones; any name if none is set but a token is.
        hosts: Names = Names::default(), "PERIHELION_SERVE_HOSTS", any;
        /// Origins whose pages may use the service, such as `https://chat.example.org`; pages of this machine may.
        origins: Names = Names::default(), "PERIHELION_SERVE_ORIGINS", any;
        /// Hosts that webhooks and push notifications may reach although they are not public, as `name` or `name:port`.
        callback_hosts: Names = Names::default(), "PERIHELION_SERVE_CALLBACK_HOSTS", any;
        /// The handling of calls that need an approval in runs without a streaming client: `wait`, or `skip` with the
        /// reason; a request can override it.
        approvals: Approvals = Approvals::Wait, "PERIHELION_SERVE_APPROVALS", any;
        /// Bytes of a request's body; a longer one is refused with 413.
        max_body_bytes: usize = 16_777_216, "PERIHELION_SERVE_MAX_BODY_BYTES", positive;
        /// Requests of a tenant in a minute, all of which may come at once; more are refused with 429. None: not bounded.
        requests_per_minute: Option<u32> = None, "PERIHELION_SERVE_REQUESTS_PER_MINUTE", if_any(positive);
        /// Requests of a tenant that are answered at the same time, open streams and sockets among them; more are refused
        /// with 429. None: not bounded.
        max_open_requests: Option<u32> = None, "PERIHELION_SERVE_MAX_OPEN_REQUESTS", if_any(positive);
        /// Runs of a tenant that are under way or wait for their turn; more are refused with 429. None: not bounded.
        max_runs: Option<u32> = None, "PERIHELION_SERVE_MAX_RUNS", if_any(positive);
        /// Tokens of a tenant's runs in a day of UTC; after that, runs are refused with 429 until the next day, and a
        /// run has at most the rest of the day. None: not bounded.
        max_daily_tokens: Option<u64> = None, "PERIHELION_SERVE_MAX_DAILY_TOKENS", if_any(positive);
        /// The same in US dollars, counted by `[models.prices]`.
        max_daily_cost_usd: Option<f64> = None, "PERIHELION_SERVE_MAX_DAILY_COST_USD", if_any(positive);
        /// The same in tool calls.
        max_daily_tool_calls: Option<u64> = None, "PERIHELION_SERVE_MAX_DAILY_TOOL_CALLS", if_any(positive);
        /// The same in super-steps.
        max_daily_steps: Option<u64> = None, "PERIHELION_SERVE_MAX_DAILY_STEPS", if_any(positive);
        /// The same in seconds of work, waiting for people not counted.
        max_daily_seconds: Option<u64> = None, "PERIHELION_SERVE_MAX_DAILY_SECONDS", if_any(positive);
        /// Open connections; more wait.
        max_connections: usize = 16_384, "PERIHELION_SERVE_MAX_CONNECTIONS", positive;
        /// Seconds that requests under way may take when the service ends.
        drain_sec: f64 = 10.0, "PERIHELION_SERVE_DRAIN_SEC", seconds;
    }
}

impl Serve {
    /// Returns whether a token or an issuer proves who callers are, at any address.
    pub fn authenticates(&self) -> bool {
        self.token.is_some() || self.jwt.is_some() || self.oidc.is_some()
    }

    pub fn is_protected(&self) -> bool {
        self.authenticates() || !self.addr.ip().is_loopback()
    }
}

/// What becomes of calls that need a person's approval.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, Deserialize, serde::Serialize, schemars::JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Approvals {
    /// The run waits for the person.
    Wait,
    /// Their agents are skipped, with the reason.
    Skip,
}

impl Setting for Approvals {}

/// The required claims of JSON Web Tokens.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Jwt {
    pub issuer: String,
    pub audience: String,
    /// Address of the issuer's keys (JWKS): `https://`, or `http://` on this machine.
    pub jwks_url: IssuerUrl,
    /// Algorithms that are accepted, such as `RS256`, `ES256` and `EdDSA`.
    #[serde(default = "usual_algorithms")]
    pub algorithms: Vec<String>,
    /// The claim with the tenant; by default all tokens belong to the service's own.
    pub tenant_claim: Option<String>,
    /// The claim with the scopes, separated by spaces; by default every caller can read and run.
    pub scope_claim: Option<String>,
}

fn usual_algorithms() -> Vec<String> {
    ["RS256", "ES256", "EdDSA"].map(str::to_owned).into()
}

impl Setting for Jwt {
    fn from_text(text: &str) -> Result<Self, Invalid> {
        Ok(serde_json::from_str(text)?)
    }
}

/// An OpenID provider, at which people log in to the web UI.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Oidc {
    /// Its issuer, below which it publishes its configuration: `https://`, or `http://` on this machine.
    pub issuer: IssuerUrl,
    pub client_id: String,
    /// Without one, the client is public, and the code verifier alone proves it.
    pub client_secret: Option<Secret>,
    /// Address of this service as browsers know it; `/v1/auth/oidc/callback` below it is registered with the provider.
    pub public_url: IssuerUrl,
    /// Name on the login button.
    #[serde(default = "usual_name")]
    pub name: String,
    #[serde(default = "usual_scopes")]
    pub scopes: Vec<String>,
    /// Algorithms of ID tokens that are accepted.
    #[serde(default = "usual_algorithms")]
    pub algorithms: Vec<String>,
    /// The claim with the user's name.
    #[serde(default = "usual_user_claim")]
    pub user_claim: String,
    /// The claim with the user's roles: a list, or words separated by spaces.
    pub roles_claim: Option<String>,
    /// The permissions of each role.
    #[serde(default)]
    pub roles: BTreeMap<String, Vec<Permission>>,
    /// The permissions of users without such a role; without any, they are refused.
    #[serde(default = "usual_permissions")]
    pub default_permissions: Vec<Permission>,
}

fn usual_name() -> String {
    "single sign-on".to_owned()
}

fn usual_scopes() -> Vec<String> {
    ["openid", "profile", "email"].map(str::to_owned).into()
}

fn usual_user_claim() -> String {
    "email".to_owned()
}

fn usual_permissions() -> Vec<Permission> {
    vec![Permission::Read, Permission::Run, Permission::Approve]
}

impl Setting for Oidc {
    fn from_text(text: &str) -> Result<Self, Invalid> {
        Ok(serde_json::from_str(text)?)
    }
}

/// What a user may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Permission {
    Read,
    Run,
    Approve,
    Manage,
    Operate,
}

/// A token of clients, or the secret of a client of an identity provider; `Debug` leaves it out.
#[derive(Clone, Debug, Deserialize)]
#[serde(from = "String")]
pub struct Secret(SecretString);

impl Secret {
    /// Returns the secret, for comparing and for the provider only.
    pub fn expose(&self) -> &str {
        self.0.expose_secret()
    }
}

impl From<String> for Secret {
    fn from(text: String) -> Self {
        Self(text.into())
    }
}

impl Setting for Secret {}

fn strong(token: &Secret) -> Result<(), Invalid> {
    let text = token.expose();
    let is_strong = text.len() >= 16 && text.chars().all(|letter| letter.is_ascii_graphic());
    if is_strong { Ok(()) } else { Err(Invalid::Token) }
}

/// An address whose answer cannot be changed on its way.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub struct IssuerUrl(String);

impl IssuerUrl {
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl TryFrom<String> for IssuerUrl {
    type Error = Invalid;
    fn try_from(text: String) -> Result<Self, Invalid> {
        let url = match reqwest::Url::parse(&text) {
            Ok(url) => url,
            Err(source) => return Err(Invalid::Url { source, found: text }),
        };
        let host = url.host_str().unwrap_or_default().trim_matches(['[', ']']).to_owned();
        let is_local = host == "localhost"
            || host.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback());
        if url.scheme() == "https" || (url.scheme() == "http" && is_local) {
            Ok(Self(text))
        } else {
            Err(Invalid::NotHttps(text))
        }
    }
}

/// A list of names; in an environment variable they are separated by commas.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(transparent)]
pub struct Names(pub Vec<String>);

impl Setting for Names {
    fn from_text(text: &str) -> Result<Self, Invalid> {
        list(text)
    }
}
