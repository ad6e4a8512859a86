//! Fetches a token: by a configured login request, or as an OAuth client.

use std::time::Duration;

use chrono::{DateTime, Utc};
use serde_json::{Map, Value};

use super::config::{ClientCredentials, Config, Login, expanded};
use super::{Error, Token};

/// Longest login.
const LIMIT: Duration = Duration::from_secs(30);
/// Most bytes of a login's answer.
const ANSWER: usize = 256 << 10;

/// Fetches a token where the configuration says how.
pub async fn fetch(
    config: &Config,
    client: &reqwest::Client,
    number: u64,
    now: DateTime<Utc>,
) -> Result<Option<Token>, Error> {
    if let Some(login) = &config.login {
        return log_in(login, client, number, now).await.map(Some);
    }
    let Some(credentials) = &config.client_credentials else { return Ok(None) };
    log_in(&as_client(credentials), client, number, now).await.map(Some)
}

/// Returns the login of an OAuth client that acts for itself.
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
) -> Result<Token, Error> {
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

/// Sends a login; what it answers is never repeated, since it may hold what was sent.
async fn send(request: reqwest::RequestBuilder, address: &str) -> Result<Value, Error> {
    // The address is shown as it was configured: filled in, it may hold a key.
    let address = address.split('?').next().unwrap_or_default();
    let failed = |source| Error::Login { address: address.to_owned(), source };
    let sent = async {
        let mut answer = request.send().await?;
        if !answer.status().is_success() {
            return Err(LoginError::Status(answer.status().as_u16()));
        }
        let mut bytes = Vec::new();
        while let Some(chunk) = answer.chunk().await? {
            bytes.extend_from_slice(&chunk);
            if bytes.len() > ANSWER {
                return Err(LoginError::TooLong);
            }
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
    now.checked_add_signed(chrono::Duration::try_milliseconds((seconds * 1000.0) as i64)?)
}

/// How a date of TOML arrives as JSON.
const DATE: &str = "$__toml_private_datetime";

fn json(value: &Value) -> Result<Value, Error> {
    Ok(match value {
        Value::String(text) => Value::from(expanded(text)?),
        Value::Array(list) => Value::Array(list.iter().map(json).collect::<Result<_, _>>()?),
        Value::Object(table) => match table.get(DATE) {
            Some(date) => date.clone(),
            None => {
                let entries = table.iter().map(|(name, value)| Ok((name.clone(), json(value)?)));
                Value::Object(entries.collect::<Result<_, Error>>()?)
            }
        },
        other => other.clone(),
    })
}
