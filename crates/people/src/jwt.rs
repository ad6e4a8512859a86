//! JSON Web Tokens of another issuer (RFC 7519), checked against its published keys (JWKS, RFC 7517).
//!
//! The algorithms are the operator's choice and never the token's; keys come from the configured document alone, so that
//! `jku`, `jwk` and `x5u` of a token are ignored.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use jsonwebtoken::jwk::{AlgorithmParameters, Jwk, JwkSet, KeyOperations, PublicKeyUse};
use jsonwebtoken::{Algorithm, DecodingKey, Validation, decode, decode_header};
use serde::Deserialize;
use serde_json::{Map, Value};

use crate::principal::{Principal, ProvedBy, Scope};
use crate::users::read_scopes;
use crate::{Error, Result};

/// Bytes of a token and of a key's id at most.
const LONGEST: usize = 16 * 1024;
const LONGEST_KID: usize = 256;

/// Keys of one issuer at most.
const KEYS: usize = 64;

#[derive(Clone, Debug)]
pub struct JwtRules {
    pub issuer: String,
    pub audience: String,
    /// Names of algorithms, such as `RS256`, `ES256` and `EdDSA`; symmetric ones are refused.
    pub algorithms: Vec<String>,
    /// The claim that holds the tenant; without one all users are of `tenant`.
    pub tenant_claim: Option<String>,
    pub tenant: String,
    /// The claim with the scopes, as words separated by spaces; without one every caller can read and run.
    pub scope_claim: Option<String>,
}

/// A document of keys, some of which can be of unsupported kinds.
#[derive(Deserialize)]
struct Published {
    keys: Vec<Value>,
}

#[derive(Debug)]
pub struct JwtVerifier {
    rules: JwtRules,
    algorithms: Vec<Algorithm>,
    keys: JwkSet,
}

impl JwtVerifier {
    /// Uses the issuer's key document.
    ///
    /// # Errors
    /// [`Error::Jwks`] if the document is invalid, has more than 64 keys, or a required algorithm is unknown or
    /// symmetric.
    pub fn new(rules: JwtRules, jwks: &str) -> Result<Self> {
        let algorithms =
            rules.algorithms.iter().map(|name| algorithm(name)).collect::<Result<Vec<_>, _>>()?;
        if algorithms.is_empty() {
            return Err(Error::Jwks("set at least one algorithm, such as RS256".into()));
        }
        let document: Published =
            serde_json::from_str(jwks).map_err(|error| Error::Jwks(error.into()))?;
        if document.keys.len() > KEYS {
            return Err(Error::Jwks(
                format!("more than {KEYS} keys: {}", document.keys.len()).into(),
            ));
        }
        let known = |key| serde_json::from_value::<Jwk>(key).ok();
        let keys = JwkSet { keys: document.keys.into_iter().filter_map(known).collect() };
        Ok(Self { rules, algorithms, keys })
    }

    /// Returns whether the document has a key of a supported kind.
    pub fn has_keys(&self) -> bool {
        !self.keys.keys.is_empty()
    }

    /// Returns whether a token names a key that is missing in the document: the issuer may have published a new one.
    pub fn names_unknown_key(&self, token: &str) -> bool {
        if token.len() > LONGEST {
            return false;
        }
        let Ok(header) = decode_header(token) else { return false };
        header.kid.is_some_and(|kid| kid.len() <= LONGEST_KID && self.keys.find(&kid).is_none())
    }

    /// Checks a token and returns its owner; `now` in seconds since 1970.
    ///
    /// # Errors
    /// [`Error::NotAccepted`].
    pub fn verify(&self, token: &str, now: i64) -> Result<Principal> {
        self.rules.principal(&self.claims(token, now)?)
    }

    /// Checks a token and returns its claims; `now` in seconds since 1970.
    ///
    /// # Errors
    /// [`Error::NotAccepted`].
    pub fn claims(&self, token: &str, now: i64) -> Result<Map<String, Value>> {
        if token.len() > LONGEST {
            return Err(Error::NotAccepted("the token is too long"));
        }
        let header =
            decode_header(token).map_err(|_| Error::NotAccepted("not a JSON Web Token"))?;
        if !self.algorithms.contains(&header.alg) {
            return Err(Error::NotAccepted("the token's algorithm is not permitted"));
        }
        check_header(token)?;
        let key = self.key(header.kid.as_deref(), header.alg)?;
        let decoding =
            DecodingKey::from_jwk(key).map_err(|_| Error::NotAccepted("the key cannot be used"))?;
        let mut validation = Validation::new(header.alg);
        validation.set_issuer(&[&self.rules.issuer]);
        validation.set_audience(&[&self.rules.audience]);
        validation.set_required_spec_claims(&["exp", "iss", "aud", "sub"]);
        // The library reads the system's clock; times are checked below by the caller's.
        validation.validate_exp = false;
        let claims = decode::<Map<String, Value>>(token, &decoding, &validation)
            .map_err(|_| Error::NotAccepted("the token's signature, issuer or audience is wrong"))?
            .claims;
        let time = |name: &str| claims.get(name).and_then(Value::as_f64);
        if time("exp").is_none_or(|end| end <= now as f64) {
            return Err(Error::NotAccepted("the token has expired"));
        }
        if claims.contains_key("nbf") && time("nbf").is_none_or(|begin| begin > now as f64 + 60.0) {
            return Err(Error::NotAccepted("the token is not valid yet"));
        }
        if claims.contains_key("cnf") {
            return Err(Error::NotAccepted("the token needs a proof of possession"));
        }
        Ok(claims)
    }

    fn key(&self, kid: Option<&str>, algorithm: Algorithm) -> Result<&Jwk> {
        let key = match kid {
            Some(kid) if kid.len() > LONGEST_KID => None,
            Some(kid) => self.keys.find(kid),
            None if self.keys.keys.len() == 1 => self.keys.keys.first(),
            None => None,
        };
        let key = key.ok_or(Error::NotAccepted("the token's key is unknown"))?;
        let common = &key.common;
        let own = common.key_algorithm.map(|own| format!("{own:?}"));
        let operations = common.key_operations.as_ref();
        if common.public_key_use.as_ref().is_some_and(|it| *it != PublicKeyUse::Signature)
            || operations.is_some_and(|all| !all.contains(&KeyOperations::Verify))
            || own.is_some_and(|own| own != format!("{algorithm:?}"))
        {
            return Err(Error::NotAccepted("the token's key is not for such signatures"));
        }
        match key.algorithm {
            AlgorithmParameters::OctetKey(_) => {
                Err(Error::NotAccepted("symmetric keys are not accepted"))
            }
            _ => Ok(key),
        }
    }
}

impl JwtRules {
    /// Returns the owner of a checked token.
    ///
    /// # Errors
    /// [`Error::NotAccepted`].
    pub fn principal(&self, claims: &Map<String, Value>) -> Result<Principal> {
        let text =
            |name: &str| claims.get(name).and_then(Value::as_str).filter(|text| !text.is_empty());
        let user = text("sub").ok_or(Error::NotAccepted("the token has no subject"))?;
        let tenant = match &self.tenant_claim {
            Some(claim) => text(claim).ok_or(Error::NotAccepted("the token has no tenant"))?,
            None => &self.tenant,
        };
        let scopes = match &self.scope_claim {
            Some(claim) => text(claim).map(read_scopes).unwrap_or_default(),
            None => vec![Scope::Read, Scope::Run],
        };
        Ok(Principal {
            tenant: tenant.to_owned(),
            user: user.to_owned(),
            scopes,
            proved_by: ProvedBy::Token,
        })
    }
}

/// Refuses a token whose header names extensions that its reader must understand (`crit`, RFC 7515), whose signature is
/// over other bytes (`b64`, RFC 7797), or which is made for another use (`typ`, RFC 8725): none is known here.
fn check_header(token: &str) -> Result<()> {
    let header = token.split('.').next().and_then(|part| URL_SAFE_NO_PAD.decode(part).ok());
    let fields: Option<Map<String, Value>> =
        header.and_then(|header| serde_json::from_slice(&header).ok());
    let fields = fields.ok_or(Error::NotAccepted("not a JSON Web Token"))?;
    let is_extended = fields.contains_key("crit")
        || fields.get("b64").is_some_and(|value| *value != Value::Bool(true));
    let is_access = fields.get("typ").is_none_or(|kind| {
        let kind = kind.as_str().unwrap_or_default().to_ascii_lowercase();
        matches!(kind.trim_start_matches("application/"), "jwt" | "at+jwt")
    });
    if is_extended {
        Err(Error::NotAccepted("the token requires unknown extensions"))
    } else if is_access {
        Ok(())
    } else {
        Err(Error::NotAccepted("the token is not made for access"))
    }
}

fn algorithm(name: &str) -> Result<Algorithm> {
    match name.parse::<Algorithm>() {
        Ok(Algorithm::HS256 | Algorithm::HS384 | Algorithm::HS512) => {
            Err(Error::Jwks(format!("a published key cannot be symmetric: {name}").into()))
        }
        Ok(algorithm) => Ok(algorithm),
        Err(_) => {
            Err(Error::Jwks(format!("unknown algorithm, use RS256, ES256 or EdDSA: {name}").into()))
        }
    }
}
