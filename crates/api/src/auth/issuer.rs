//! Another issuer whose tokens are accepted, with its published keys.

use std::time::{Duration, Instant};

use chrono::{DateTime, Utc};
use perihelion_people::{Error, JwtRules, JwtVerifier, Principal};
use tokio::sync::Mutex;

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
    read: Mutex<Read>,
}

/// What was read last.
#[derive(Default)]
struct Read {
    verifier: Option<JwtVerifier>,
    at: Option<Instant>,
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
        Self { settings, rules, read: Mutex::default() }
    }

    /// Checks a token, and reads the keys where that is due.
    pub(super) async fn verify(&self, token: &str, now: DateTime<Utc>) -> Result<Principal, Error> {
        let mut read = self.read.lock().await;
        let age = read.at.map(|at| at.elapsed());
        let is_unknown =
            read.verifier.as_ref().is_none_or(|verifier| verifier.names_unknown_key(token));
        let is_due = age.is_none_or(|age| age >= FRESH || (is_unknown && age >= PATIENCE));
        if is_due {
            read.at = Some(clock::monotonic());
            match self.fetch().await {
                Ok(verifier) => read.verifier = Some(verifier),
                // The keys that are known stay good.
                Err(error) if read.verifier.is_some() => {
                    tracing::warn!(%error, "the issuer's keys could not be refreshed");
                }
                Err(error) => return Err(error),
            }
        }
        match &read.verifier {
            Some(verifier) => verifier.verify(token, now.timestamp()),
            None => Err(Error::Jwks("they could not be read recently".to_owned())),
        }
    }

    async fn fetch(&self) -> Result<JwtVerifier, Error> {
        let failed = |error: &dyn std::fmt::Display| Error::Jwks(error.to_string());
        config::tls::install();
        let client = reqwest::Client::builder()
            .timeout(LONGEST)
            .redirect(reqwest::redirect::Policy::none())
            .build()
            .map_err(|error| failed(&error))?;
        let asked = client.get(self.settings.jwks_url.as_str()).send().await;
        let mut answer =
            asked.and_then(reqwest::Response::error_for_status).map_err(|error| failed(&error))?;
        let mut document = Vec::new();
        while let Some(piece) = answer.chunk().await.map_err(|error| failed(&error))? {
            document.extend_from_slice(&piece);
            if document.len() > BYTES {
                return Err(failed(&format!("the document has more than {BYTES} bytes")));
            }
        }
        let document = String::from_utf8(document).map_err(|error| failed(&error))?;
        JwtVerifier::new(self.rules.clone(), &document)
    }
}
