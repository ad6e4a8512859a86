//! Credentials: the source of a token, and how it is added to a request.
//!
//! Enter at [`Credentials::open`]. A token is looked for in this order: given directly, kept from before, read from a file, fetched by a
//! configured login request or as an OAuth client. Invariant: any number of requests that meet an expired token cause one fetch.

mod config;
mod token;

use std::path::PathBuf;

use perihelion_openapi::{Operation, Request, Scheme, SchemeKind};
use secrecy::{ExposeSecret, SecretString};

pub use config::Config;
pub use token::Token;

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("the environment variable {0} is not set, and the credentials name it")]
    Unset(String),
    #[error("cannot read the token file {}: {source}", path.display())]
    File { path: PathBuf, source: std::io::Error },
    #[error("the login request to {address} failed: {source}")]
    Login { address: String, source: token::LoginError },
    #[error("the login's answer has no token at {0}")]
    NoToken(String),
}

type Result<T, E = Error> = std::result::Result<T, E>;

pub struct Credentials {
    config: Config,
    client: reqwest::Client,
    /// The holder of this lock requests a token; other tasks wait and then find it.
    kept: tokio::sync::Mutex<Option<Token>>,
}

impl Credentials {
    pub fn open(config: Config, client: reqwest::Client) -> Self {
        Self { config, client, kept: tokio::sync::Mutex::new(None) }
    }

    /// Returns whether there is anything to authenticate with.
    pub fn is_empty(&self) -> bool {
        self.config.is_empty()
    }

    /// Puts credentials on a request; returns the number of the token that was used, if one was.
    ///
    /// # Errors
    /// When the last attempt to get a token failed.
    pub async fn apply(
        &self,
        request: &mut Request,
        operation: &Operation,
        schemes: &[Scheme],
    ) -> Result<Option<u64>, Error> {
        let wanted = wanted(operation, schemes);
        let is_open = |sets: &Vec<Vec<String>>| sets.is_empty() || sets.contains(&Vec::new());
        if wanted.is_empty() && operation.security.as_ref().is_some_and(is_open) {
            return Ok(None);
        }
        for scheme in &wanted {
            let named = self.config.schemes.get(&scheme.name);
            match &scheme.kind {
                // Many descriptions declare a bearer token as a key in the header Authorization.
                SchemeKind::KeyInHeader(name) if !name.eq_ignore_ascii_case("authorization") => {
                    if let Some(key) = self.config.key(&scheme.name)? {
                        put_header(request, name, key.expose_secret());
                    }
                }
                SchemeKind::KeyInQuery(name) => {
                    if let Some(key) = self.config.key(&scheme.name)? {
                        request.url.query_pairs_mut().append_pair(name, key.expose_secret());
                    }
                }
                SchemeKind::KeyInCookie(name) => {
                    if let Some(key) = self.config.key(&scheme.name)? {
                        put_header(request, "cookie", &format!("{name}={}", key.expose_secret()));
                    }
                }
                SchemeKind::Basic => {
                    if let Some((user, password)) = self.config.basic(named)? {
                        put_header(request, "authorization", &basic(&user, &password));
                    }
                }
                _ => {}
            }
        }
        let has_credentials = request.headers.iter().any(|(name, _)| name == "authorization");
        if has_credentials {
            return Ok(None);
        }
        let Some(token) = self.token().await? else { return Ok(None) };
        put_header(request, "authorization", &format!("Bearer {}", token.value.expose_secret()));
        Ok(Some(token.number))
    }

    /// Discards a rejected token, so that the next one is requested; returns whether another one is available.
    pub async fn refused(&self, number: u64) -> bool {
        if !self.config.can_renew() {
            return false;
        }
        let mut kept = self.kept.lock().await;
        // Somebody else may have fetched a newer one meanwhile.
        if let Some(token) = kept.as_mut().filter(|token| token.number == number) {
            token.is_refused = true;
        }
        true
    }

    pub fn redact(&self, text: &str) -> String {
        self.config.redact(text)
    }

    async fn token(&self) -> Result<Option<Token>, Error> {
        if let Some(direct) = self.config.direct()? {
            return Ok(Some(Token::new(direct, 0, None)));
        }
        let mut kept = self.kept.lock().await;
        let now = perihelion_engine::clock::now();
        if let Some(token) = kept.as_ref().filter(|token| token.is_good(now, self.config.grace())) {
            return Ok(Some(token.clone()));
        }
        let number = kept.as_ref().map_or(1, |token| token.number + 1);
        let refused =
            kept.as_ref().filter(|token| token.is_refused).map(|token| token.value.clone());
        let token = match self.read_file(number, refused.as_ref(), now)? {
            Some(token) => token,
            None => match token::fetch(&self.config, &self.client, number, now).await? {
                Some(token) => token,
                None => return Ok(None),
            },
        };
        *kept = Some(token.clone());
        Ok(Some(token))
    }

    fn read_file(
        &self,
        number: u64,
        refused: Option<&SecretString>,
        now: chrono::DateTime<chrono::Utc>,
    ) -> Result<Option<Token>, Error> {
        let Some(path) = self.config.token_file() else { return Ok(None) };
        let text = match std::fs::read_to_string(&path) {
            Ok(text) => text,
            // A file that another program has yet to write is no reason not to log in.
            Err(_) if self.config.can_fetch() => return Ok(None),
            Err(source) => return Err(Error::File { path, source }),
        };
        let token = Token::from_file(&text, number);
        let is_new = refused.is_none_or(|old| old.expose_secret() != token.value.expose_secret());
        let is_usable = is_new && token.is_good(now, self.config.grace());
        Ok(Some(token).filter(|token| {
            !token.value.expose_secret().is_empty() && (is_usable || !self.config.can_fetch())
        }))
    }
}

/// Chooses the schemes of the first alternative with configured credentials; all of them if the document has none.
fn wanted<'a>(operation: &Operation, schemes: &'a [Scheme]) -> Vec<&'a Scheme> {
    match &operation.security {
        None => schemes.iter().collect(),
        Some(sets) => {
            let names: Vec<&String> = sets.iter().flatten().collect();
            schemes.iter().filter(|scheme| names.contains(&&scheme.name)).collect()
        }
    }
}

fn basic(user: &str, password: &SecretString) -> String {
    use base64::Engine as _;
    let joined = format!("{user}:{}", password.expose_secret());
    format!("Basic {}", base64::engine::general_purpose::STANDARD.encode(joined))
}

fn put_header(request: &mut Request, name: &str, value: &str) {
    let lower = name.to_ascii_lowercase();
    if lower == "cookie"
        && let Some((_, known)) = request.headers.iter_mut().find(|(known, _)| *known == lower)
    {
        known.push_str("; ");
        known.push_str(value);
        return;
    }
    request.headers.retain(|(known, _)| *known != lower);
    request.headers.push((lower, value.to_owned()));
}
