//! A token and how long it is good.

use chrono::{DateTime, Duration, Utc};
use secrecy::{ExposeSecret, SecretString};
use serde_json::Value;

/// A bearer token.
#[derive(Clone)]
pub struct Token {
    pub value: SecretString,
    /// Tells it from those before and after it.
    pub number: u64,
    pub expires: Option<DateTime<Utc>>,
    /// The API refused it although it should be good.
    pub is_refused: bool,
}

impl Token {
    /// Makes a token; where nobody said when it expires, a JSON web token says so itself.
    pub fn new(value: SecretString, number: u64, expires: Option<DateTime<Utc>>) -> Self {
        let expires = expires.or_else(|| expiry_of(value.expose_secret()));
        Self { value, number, expires, is_refused: false }
    }

    /// Reads a token file: the token alone, or a JSON object that holds it under a usual name.
    pub fn from_file(text: &str, number: u64) -> Self {
        let text = text.trim();
        let object: Option<Value> = serde_json::from_str(text).ok().filter(Value::is_object);
        let Some(object) = object else { return Self::new(text.to_owned().into(), number, None) };
        let find = |names: &[&str]| names.iter().find_map(|name| object.get(*name)).cloned();
        let value = find(&["token", "access_token", "id_token", "idToken", "accessToken"]);
        let value = value.and_then(|value| value.as_str().map(str::to_owned)).unwrap_or_default();
        let expires = find(&["expires_at", "expiresAt", "expiry", "exp"]).and_then(|at| match at {
            Value::Number(seconds) => DateTime::from_timestamp(seconds.as_f64()? as i64, 0),
            Value::String(text) => DateTime::parse_from_rfc3339(&text).ok().map(|at| at.to_utc()),
            _ => None,
        });
        Self::new(value.into(), number, expires)
    }

    /// Returns whether it will still be good when a request with it arrives.
    pub fn is_good(&self, now: DateTime<Utc>, grace: Duration) -> bool {
        !self.is_refused && self.expires.is_none_or(|expires| now + grace < expires)
    }
}

fn expiry_of(token: &str) -> Option<DateTime<Utc>> {
    use base64::Engine as _;
    let payload = token.split('.').nth(1).filter(|_| token.split('.').count() == 3)?;
    let bytes = base64::engine::general_purpose::URL_SAFE_NO_PAD
        .decode(payload.trim_end_matches('='))
        .ok()?;
    let claims: Value = serde_json::from_slice(&bytes).ok()?;
    DateTime::from_timestamp(claims.get("exp")?.as_f64()? as i64, 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_says_itself_when_it_expires_and_ends_a_grace_before() {
        // {"alg":"none"}.{"exp":1700000000}
        let token =
            Token::new("eyJhbGciOiJub25lIn0.eyJleHAiOjE3MDAwMDAwMDB9.x".to_owned().into(), 1, None);
        let at = |seconds: i64| DateTime::from_timestamp(seconds, 0).unwrap();
        assert!(token.is_good(at(1_699_999_800), Duration::seconds(120)));
        assert!(!token.is_good(at(1_699_999_900), Duration::seconds(120)));
    }

    #[test]
    fn a_token_file_is_text_or_json() {
        assert_eq!(Token::from_file(" abc\n", 1).value.expose_secret(), "abc");
        let token = Token::from_file(
            "{\"access_token\": \"x\", \"expires_at\": \"2030-01-01T00:00:00Z\"}",
            1,
        );
        assert_eq!(
            (token.value.expose_secret(), token.expires.map(|at| at.timestamp())),
            ("x", Some(1_893_456_000))
        );
    }
}
