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

enum Credential {
    Header(String, SecretString),
    Query(String, SecretString),
    /// The token, which is read or fetched when a request needs it.
    Token,
}

pub struct Credentials {
    pub config: Config,
    client: reqwest::Client,
    /// The holder of this lock requests a token; other tasks wait and then find it.
    kept: tokio::sync::Mutex<Option<Token>>,
}

impl Credentials {
    pub fn open(config: Config, client: reqwest::Client) -> Self {
        Self { config, client, kept: tokio::sync::Mutex::new(None) }
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
        let is_open = |sets: &Vec<Vec<String>>| sets.iter().all(Vec::is_empty);
        if operation.security.as_ref().is_some_and(is_open) {
            return Ok(None);
        }
        let wanted = self.wanted(operation, schemes)?;
        for credential in &wanted {
            match credential {
                Credential::Header(name, value) => put_header(request, name, value.expose_secret()),
                Credential::Query(name, key) => {
                    request.url.query_pairs_mut().append_pair(name, key.expose_secret());
                }
                Credential::Token => {}
            }
        }
        if !wanted.iter().any(|credential| matches!(credential, Credential::Token)) {
            return Ok(None);
        }
        let has_credentials = request.headers.iter().any(|(name, _)| name == "authorization");
        if has_credentials {
            return Ok(None);
        }
        let Some(token) = self.token().await? else { return Ok(None) };
        put_header(request, "authorization", &format!("Bearer {}", token.value.expose_secret()));
        Ok(Some(token.number))
    }

    /// Chooses the first alternative that has all its credentials; without one, everything that there is.
    fn wanted(&self, operation: &Operation, schemes: &[Scheme]) -> Result<Vec<Credential>> {
        let named = |name: &String| schemes.iter().find(|scheme| scheme.name == *name);
        let sets = operation.security.iter().flatten().filter(|set| !set.is_empty());
        for set in sets.clone() {
            let of_scheme = |name| match named(name) {
                Some(scheme) => self.credential(scheme),
                None => Ok(None),
            };
            let found: Result<Option<Vec<Credential>>> = set.iter().map(of_scheme).collect();
            if let Some(found) = found? {
                return Ok(found);
            }
        }
        let all: Vec<&Scheme> = match operation.security {
            None => schemes.iter().collect(),
            Some(_) => sets.flatten().filter_map(named).collect(),
        };
        let found = all.into_iter().filter_map(|scheme| self.credential(scheme).transpose());
        // Descriptions often leave out that a token is taken.
        found.chain([Ok(Credential::Token)]).collect()
    }

    fn credential(&self, scheme: &Scheme) -> Result<Option<Credential>> {
        let key = || self.config.key(&scheme.name);
        Ok(match &scheme.kind {
            // Many descriptions declare a bearer token as a key in the header Authorization.
            SchemeKind::KeyInHeader(name) if !name.eq_ignore_ascii_case("authorization") => {
                key()?.map(|key| Credential::Header(name.clone(), key))
            }
            SchemeKind::KeyInQuery(name) => key()?.map(|key| Credential::Query(name.clone(), key)),
            SchemeKind::KeyInCookie(name) => key()?.map(|key| {
                let pair = format!("{name}={}", key.expose_secret());
                Credential::Header("cookie".to_owned(), pair.into())
            }),
            SchemeKind::Basic => {
                let given = self.config.basic(self.config.schemes.get(&scheme.name))?;
                given.map(|(user, password)| {
                    let value = basic(&user, &password);
                    Credential::Header("authorization".to_owned(), value.into())
                })
            }
            _ => self.config.has_token().then_some(Credential::Token),
        })
    }

    /// Discards a rejected token, so that the next one is requested; returns whether another one is available.
    pub async fn refused(&self, number: u64) -> bool {
        if !self.config.can_renew() {
            return false;
        }
        let mut kept = self.kept.lock().await;
        // Another task may have fetched a newer one.
        if let Some(token) = kept.as_mut().filter(|token| token.number == number) {
            token.is_refused = true;
        }
        true
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

#[cfg(test)]
mod tests {
    use perihelion_openapi::{Arguments, Base, Catalogue, render};
    use serde_json::{Value, json};

    use super::*;

    /// S2.06: a key that goes into the address is not sent where something else will do.
    #[tokio::test]
    async fn one_alternative_with_all_its_credentials_is_sent_alone() {
        perihelion_settings::config::tls::install();
        let schemes = json!({
            "q": {"type": "apiKey", "in": "query", "name": "api_key"}, "b": {"type": "http", "scheme": "bearer"},
            "h": {"type": "apiKey", "in": "header", "name": "X-Key"}, "c": {"type": "apiKey", "in": "cookie", "name": "k"},
        });
        let key = Some("api_key=KEYK");
        let token = Some("Bearer TOKN");
        for (security, keys, has_token, wanted) in [
            (json!([{"q": []}, {"b": []}]), &["q"][..], true, (key, None)),
            (json!([{"b": []}, {"q": []}]), &["q"], true, (None, token)),
            (json!([{"q": []}]), &["q"], true, (key, None)),
            (json!([{"q": []}, {"b": []}]), &[], true, (None, token)),
            (json!([{"q": [], "h": []}, {"b": []}]), &["q"], true, (None, token)),
            (json!([{"q": [], "b": []}]), &["q"], true, (key, token)),
            (json!([{"unknown": []}, {"q": []}]), &["q"], true, (key, None)),
            (json!([{}, {"q": []}]), &["q"], true, (key, None)),
            // Nothing fits: what there is may do.
            (json!([{"q": []}]), &[], true, (None, token)),
            (json!([{"q": [], "h": []}]), &["q"], false, (key, None)),
            (Value::Null, &["q"], true, (key, token)),
            (json!([]), &["q"], true, (None, None)),
            (json!([{}]), &["q"], true, (None, None)),
        ] {
            let mut operation = json!({"operationId": "a"});
            if !security.is_null() {
                operation["security"] = security.clone();
            }
            let text = json!({"openapi": "3.0.0", "paths": {"/a": {"get": operation}}, "components": {"securitySchemes": schemes}});
            let catalogue = Catalogue::read(&text.to_string()).unwrap();
            let operation = catalogue.operation("a").unwrap();
            let base = Base::parse("http://api.test").unwrap();
            let mut request = render(&catalogue, operation, &Arguments::default(), &base).unwrap();
            let keys: Value = keys.iter().map(|name| (*name, json!({"key": "KEYK"}))).collect();
            let mut config = json!({"schemes": keys});
            if has_token {
                config["token"] = json!("TOKN");
            }
            let config = serde_json::from_value(config).unwrap();
            let credentials = Credentials::open(config, reqwest::Client::new());
            credentials.apply(&mut request, operation, &catalogue.schemes).await.unwrap();
            let headers = &request.headers;
            let header = headers.iter().find(|(name, _)| name == "authorization");
            let sent = (request.url.query(), header.map(|(_, value)| value.as_str()));
            assert_eq!(sent, wanted, "{security} {has_token}");
        }
    }
}
