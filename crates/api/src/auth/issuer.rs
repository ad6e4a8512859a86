//! Another issuer whose tokens are accepted, with its published keys.

use std::sync::Arc;
use std::time::{Duration, Instant};

use chrono::{DateTime, Utc};
use perihelion_http::reach::bounded;
use perihelion_people::{Error, JwtRules, JwtVerifier, Principal};
use serde_json::{Map, Value};
use tokio::sync::{Mutex, RwLock};

use perihelion_engine::clock;
use perihelion_settings::config;

/// How long keys are used before they are read again.
const FRESH: Duration = Duration::from_secs(600);

/// How long it is at least between two reads, however many unknown keys are named.
const PATIENCE: Duration = Duration::from_secs(10);

/// How long reading them may take.
const LONGEST: Duration = Duration::from_secs(5);

/// Bytes of a key document at most.
const BYTES: usize = 1 << 20;

pub(super) struct Issuer {
    settings: config::Jwt,
    rules: JwtRules,
    verifier: RwLock<Option<Arc<JwtVerifier>>>,
    /// When keys were last asked for; locked while they are read.
    read_at: Mutex<Option<Instant>>,
}

impl Issuer {
    pub(super) fn new(settings: config::Jwt, tenant: &str) -> Self {
        let rules = JwtRules {
            issuer: settings.issuer.clone(),
            audience: settings.audience.clone(),
            algorithms: settings.algorithms.clone(),
            tenant_claim: settings.tenant_claim.clone(),
            tenant: tenant.to_owned(),
            scope_claim: settings.scope_claim.clone(),
        };
        Self { settings, rules, verifier: RwLock::default(), read_at: Mutex::default() }
    }

    pub(super) async fn verify(&self, token: &str, now: DateTime<Utc>) -> Result<Principal, Error> {
        self.rules.principal(&self.claims(token, now).await?)
    }

    /// Checks a token and returns its claims, and reads the issuer's keys when they are due.
    pub(super) async fn claims(
        &self,
        token: &str,
        now: DateTime<Utc>,
    ) -> Result<Map<String, Value>, Error> {
        let known = self.verifier.read().await.clone();
        let is_unknown = known.as_ref().is_none_or(|verifier| verifier.names_unknown_key(token));
        // A token with a known key does not wait while the keys are read for another one.
        let read_at =
            if is_unknown { Some(self.read_at.lock().await) } else { self.read_at.try_lock().ok() };
        if let Some(mut read_at) = read_at {
            let age = read_at.map(|at| at.elapsed());
            if age.is_none_or(|age| age >= FRESH || (is_unknown && age >= PATIENCE)) {
                *read_at = Some(clock::monotonic());
                match self.fetch().await {
                    Ok(verifier) => *self.verifier.write().await = Some(Arc::new(verifier)),
                    // The keys that are known stay good.
                    Err(error) if known.is_some() => {
                        tracing::warn!(%error, "the issuer's keys could not be refreshed");
                    }
                    Err(error) => return Err(error),
                }
            }
        }
        match self.verifier.read().await.as_ref() {
            Some(verifier) => verifier.claims(token, now.timestamp()),
            None => Err(Error::Jwks("they could not be read recently".into())),
        }
    }

    async fn fetch(&self) -> Result<JwtVerifier, Error> {
        let client = client().map_err(|error| Error::Jwks(error.into()))?;
        let asked = client.get(self.settings.jwks_url.as_str());
        let document = answer(asked).await.map_err(Error::Jwks)?;
        JwtVerifier::new(self.rules.clone(), &document)
    }

    /// Reads the issuer's keys, and checks that some of them can be used.
    pub(super) async fn check(&self) -> Result<(), Error> {
        let why = "the document has no key of a supported kind";
        if self.fetch().await?.has_keys() { Ok(()) } else { Err(Error::Jwks(why.into())) }
    }
}

/// Makes a client for an issuer's endpoints, which follows no redirects.
pub(super) fn client() -> reqwest::Result<reqwest::Client> {
    config::tls::install();
    let client = reqwest::Client::builder().timeout(LONGEST);
    client.redirect(reqwest::redirect::Policy::none()).build()
}

/// Reads the text of a successful answer of an issuer, up to a bound.
pub(super) async fn answer(
    request: reqwest::RequestBuilder,
) -> Result<String, Box<dyn std::error::Error + Send + Sync>> {
    let answer = request.send().await.and_then(reqwest::Response::error_for_status);
    let mut answer = answer.map_err(|mut error| {
        // It can be secret.
        if let Some(url) = error.url_mut() {
            url.set_query(None);
        }
        error
    })?;
    let (document, is_cut) = bounded(&mut answer, BYTES).await?;
    if is_cut {
        return Err(format!("the document has more than {BYTES} bytes").into());
    }
    Ok(String::from_utf8(document)?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures::FutureExt as _;
    use serde_json::json;

    #[tokio::test]
    async fn a_token_with_a_known_key_does_not_wait_while_keys_are_read_for_another_one() {
        let settings = json!({ "issuer": "https://login.example", "audience": "perihelion",
            "jwks_url": "http://127.0.0.1:1/jwks.json" });
        let issuer = Issuer::new(serde_json::from_value(settings).unwrap(), "default");
        let key = json!({ "kty": "EC", "crv": "P-256", "alg": "ES256", "kid": "k1",
            "x": "f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU", "y": "x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a0" });
        let document = json!({ "keys": [key] }).to_string();
        let verifier = JwtVerifier::new(issuer.rules.clone(), &document).unwrap();
        *issuer.verifier.write().await = Some(Arc::new(verifier));
        // Somebody else's token makes the keys be read.
        let _reading = issuer.read_at.lock().await;
        // { "alg": "ES256", "kid": "k1" }, and with another key.
        let [known, unknown] =
            ["eyJhbGciOiAiRVMyNTYiLCAia2lkIjogImsxIn0", "eyJhbGciOiAiRVMyNTYiLCAia2lkIjogImsyIn0"]
                .map(|header| format!("{header}.e30.AAAA"));
        let checked = issuer.verify(&known, clock::now()).now_or_never().unwrap();
        assert!(matches!(checked, Err(Error::NotAccepted(_))), "{checked:?}");
        assert!(issuer.verify(&unknown, clock::now()).now_or_never().is_none());
    }
}
