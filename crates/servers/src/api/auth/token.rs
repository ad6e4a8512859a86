//! A token: how long it is good, and how it is fetched, by a configured login request or as an OAuth client.

use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use perihelion_http::reach::bounded;
use secrecy::{ExposeSecret, SecretString};
use serde_json::{Map, Value};

use super::config::{ClientCredentials, Config, Login, expanded};
use super::{Error, Result};

#[derive(Clone)]
pub struct Token {
    pub value: SecretString,
    /// Distinguishes it from earlier and later ones.
    pub number: u64,
    pub expires: Option<DateTime<Utc>>,
    /// The API refused it although it should be good.
    pub is_refused: bool,
}

impl Token {
    /// Makes a token; without a given expiry, a JSON web token contains it.
    pub fn new(value: SecretString, number: u64, expires: Option<DateTime<Utc>>) -> Self {
        let expires = expires.or_else(|| expiry_of(value.expose_secret()));
        Self { value, number, expires, is_refused: false }
    }

    /// Reads a token file: the token alone, or a JSON object with one of the usual fields.
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
    pub fn is_good(&self, now: DateTime<Utc>, grace: TimeDelta) -> bool {
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

/// Longest login.
const LIMIT: Duration = Duration::from_secs(30);
/// Most bytes of a login's answer.
const ANSWER: usize = 256 << 10;

pub async fn fetch(
    config: &Config,
    client: &reqwest::Client,
    number: u64,
    now: DateTime<Utc>,
) -> Result<Option<Token>> {
    if let Some(login) = &config.login {
        return log_in(login, client, number, now).await.map(Some);
    }
    let Some(credentials) = &config.client_credentials else { return Ok(None) };
    log_in(&as_client(credentials), client, number, now).await.map(Some)
}

fn as_client(credentials: &ClientCredentials) -> Login {
    let ClientCredentials { token_url, client_id, client_secret, scope, audience } = credentials;
    let fields = [
        ("grant_type", Some("client_credentials")),
        ("client_id", Some(client_id.as_str())),
        ("client_secret", Some(client_secret.as_str())),
        ("scope", scope.as_deref()),
        ("audience", audience.as_deref()),
    ];
    let given =
        fields.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?.into())));
    Login { body: given.collect(), form: true, ..Login::at(token_url) }
}

async fn log_in(
    login: &Login,
    client: &reqwest::Client,
    number: u64,
    now: DateTime<Utc>,
) -> Result<Token> {
    let mut fields = Map::new();
    for (name, value) in &login.body {
        fields.insert(name.clone(), json(value)?);
    }
    let url = expanded(&login.url)?;
    let mut request = client.post(&url).timeout(LIMIT);
    for (name, value) in &login.headers {
        request = request.header(name, expanded(value)?);
    }
    let request = if login.form {
        let mut form = url::form_urlencoded::Serializer::new(String::new());
        for (name, value) in &fields {
            form.append_pair(
                name,
                &value.as_str().map_or_else(|| value.to_string(), str::to_owned),
            );
        }
        request.header("content-type", "application/x-www-form-urlencoded").body(form.finish())
    } else {
        request.json(&fields)
    };
    let answer = send(request, &login.url).await?;
    let token =
        text_at(&answer, &login.token).ok_or_else(|| Error::NoToken(login.token.clone()))?;
    Ok(Token::new(token.into(), number, expiry(&answer, &login.expires_in, now)))
}

/// Sends a login; its answer is never repeated, because it can contain the sent data.
async fn send(request: reqwest::RequestBuilder, address: &str) -> Result<Value> {
    // The address is shown as it was configured: filled in, it may hold a key.
    let address = address.split('?').next().unwrap_or_default();
    let failed = |source| Error::Login { address: address.to_owned(), source };
    let sent = async {
        let mut answer = request.send().await?;
        if !answer.status().is_success() {
            return Err(LoginError::Status(answer.status().as_u16()));
        }
        let (bytes, is_cut) = bounded(&mut answer, ANSWER).await?;
        if is_cut {
            return Err(LoginError::TooLong);
        }
        serde_json::from_slice(&bytes).map_err(|_| LoginError::NoJson)
    };
    sent.await.map_err(failed)
}

/// Why a login request failed; it repeats no part of the answer, which may contain a secret.
#[derive(Debug, thiserror::Error)]
pub enum LoginError {
    #[error(transparent)]
    Unsent(reqwest::Error),
    #[error("status {0}")]
    Status(u16),
    #[error("its answer is longer than {ANSWER} bytes")]
    TooLong,
    #[error("its answer is not JSON")]
    NoJson,
}

impl From<reqwest::Error> for LoginError {
    fn from(error: reqwest::Error) -> Self {
        Self::Unsent(error.without_url())
    }
}

fn text_at(answer: &Value, pointer: &str) -> Option<String> {
    answer.pointer(pointer)?.as_str().map(str::to_owned).filter(|text| !text.is_empty())
}

/// Reads the seconds until a token expires, which some send as text.
fn expiry(answer: &Value, pointer: &str, now: DateTime<Utc>) -> Option<DateTime<Utc>> {
    let value = answer.pointer(pointer)?;
    let seconds = value.as_f64().or_else(|| value.as_str()?.parse().ok())?;
    now.checked_add_signed(TimeDelta::try_milliseconds((seconds * 1000.0) as i64)?)
}

/// How a date of TOML arrives as JSON.
const DATE: &str = "$__toml_private_datetime";

fn json(value: &Value) -> Result<Value> {
    Ok(match value {
        Value::String(text) => Value::from(expanded(text)?),
        Value::Array(list) => Value::Array(list.iter().map(json).collect::<Result<_, _>>()?),
        Value::Object(table) => match table.get(DATE) {
            Some(date) => date.clone(),
            None => {
                let entries = table.iter().map(|(name, value)| Ok((name.clone(), json(value)?)));
                Value::Object(entries.collect::<Result<_>>()?)
            }
        },
        other => other.clone(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_contains_its_expiry_and_ends_a_grace_period_earlier() {
        // {"alg":"none"}.{"exp":1700000000}
        let token =
            Token::new("eyJhbGciOiJub25lIn0.eyJleHAiOjE3MDAwMDAwMDB9.x".to_owned().into(), 1, None);
        let at = |seconds: i64| DateTime::from_timestamp(seconds, 0).unwrap();
        assert!(token.is_good(at(1_699_999_800), TimeDelta::seconds(120)));
        assert!(!token.is_good(at(1_699_999_900), TimeDelta::seconds(120)));
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
