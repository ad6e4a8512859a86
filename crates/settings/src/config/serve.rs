//! The section of the service.

use std::net::SocketAddr;

use serde::Deserialize;

use super::resolve::{Setting, any, if_any, list, positive, seconds, section};
use super::strict::Invalid;

section! {
    /// What `perihelion serve` does.
    Serve, ServeFile, "serve" {
        /// Address to listen on; beyond loopback only where callers prove who they are.
        addr: SocketAddr = SocketAddr::from(([127, 0, 0, 1], 2024)), "PERIHELION_SERVE_ADDR", any;
        /// What clients must send as `x-api-key` or as a bearer token; none: anybody who reaches a loopback address may.
        token: Option<Token> = None, "PERIHELION_SERVE_TOKEN", any;
        /// Whether people may register themselves by name and password, in the service's own tenant.
        registration: bool = false, "PERIHELION_SERVE_REGISTRATION", any;
        /// Seconds that a login lasts.
        session_sec: f64 = 604_800.0, "PERIHELION_SERVE_SESSION_SEC", seconds;
        /// Another issuer whose tokens are accepted; in the environment as a JSON object. None: nobody's.
        jwt: Option<Jwt> = None, "PERIHELION_SERVE_JWT", any;
        /// Names that requests may be addressed to, beside loopback ones; with none named and a token set, any name.
        hosts: Names = Names::default(), "PERIHELION_SERVE_HOSTS", any;
        /// Origins whose pages may use the service, such as `https://chat.example.org`; pages of this machine may.
        origins: Names = Names::default(), "PERIHELION_SERVE_ORIGINS", any;
        /// Hosts that webhooks and push notifications may reach although they are not public, as `name` or `name:port`.
        callback_hosts: Names = Names::default(), "PERIHELION_SERVE_CALLBACK_HOSTS", any;
        /// What becomes of calls that need a person's approval in runs that no client follows as they run: `wait`, or
        /// `skip` with the reason; a request can say otherwise.
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
        /// Tokens that a tenant's runs may take in a day of UTC; more runs are refused with 429 until the next one, and a
        /// run has no more than the day has left. None: not bounded.
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
    /// Returns whether nobody is let in, on any address, who did not prove who they are.
    pub fn is_protected(&self) -> bool {
        self.token.is_some() || self.jwt.is_some() || !self.addr.ip().is_loopback()
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

/// What JSON Web Tokens must say to be accepted.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Jwt {
    pub issuer: String,
    pub audience: String,
    /// Address of the issuer's keys (JWKS): `https://`, or `http://` on this machine.
    pub jwks_url: JwksUrl,
    /// Algorithms that are accepted, such as `RS256`, `ES256` and `EdDSA`.
    #[serde(default = "usual_algorithms")]
    pub algorithms: Vec<String>,
    /// The claim that holds the tenant; none: all are of the service's own.
    #[serde(default)]
    pub tenant_claim: Option<String>,
    /// The claim that holds the scopes, with spaces between; none: everybody may read and run.
    #[serde(default)]
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

/// An address whose answer cannot be changed on its way.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub struct JwksUrl(String);

impl JwksUrl {
    /// Returns the address.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl TryFrom<String> for JwksUrl {
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

/// A list of names; in an environment variable they are parted by commas.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(transparent)]
pub struct Names(pub Vec<String>);

impl Setting for Names {
    fn from_text(text: &str) -> Result<Self, Invalid> {
        list(text)
    }
}

/// A secret that clients must know; `Debug` leaves it out.
#[derive(Clone, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub struct Token(String);

impl Token {
    /// Returns the secret, for comparing only.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl TryFrom<String> for Token {
    type Error = Invalid;
    fn try_from(text: String) -> Result<Self, Invalid> {
        let is_strong = text.len() >= 16 && text.chars().all(|letter| letter.is_ascii_graphic());
        if is_strong { Ok(Self(text)) } else { Err(Invalid::Token) }
    }
}

impl Setting for Token {}

impl std::fmt::Debug for Token {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Token(…)")
    }
}
