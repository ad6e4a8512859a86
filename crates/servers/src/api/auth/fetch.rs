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
    as_client(credentials, client, number, now).await.map(Some)
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
        let pairs: Vec<(String, String)> = fields
            .iter()
            .map(|(name, value)| {
                (name.clone(), value.as_str().map_or_else(|| value.to_string(), str::to_owned))
            })
            .collect();
        request.header("content-type", "application/x-www-form-urlencoded").body(form(&pairs))
    } else {
        request.json(&fields)
    };
    let answer = send(request, &login.url).await?;
    let token =
        text_at(&answer, &login.token).ok_or_else(|| Error::NoToken(login.token.clone()))?;
    Ok(Token::new(token.into(), number, expiry(&answer, &login.expires_in, now)))
}

async fn as_client(
    credentials: &ClientCredentials,
    client: &reqwest::Client,
    number: u64,
    now: DateTime<Utc>,
) -> Result<Token, Error> {
    let mut pairs = vec![
        ("grant_type".to_owned(), "client_credentials".to_owned()),
        ("client_id".to_owned(), expanded(&credentials.client_id)?),
        ("client_secret".to_owned(), expanded(&credentials.client_secret)?),
    ];
    for (name, value) in [("scope", &credentials.scope), ("audience", &credentials.audience)] {
        if let Some(value) = value {
            pairs.push((name.to_owned(), expanded(value)?));
        }
    }
    let url = expanded(&credentials.token_url)?;
    let request = client.post(&url).timeout(LIMIT);
    let request =
        request.header("content-type", "application/x-www-form-urlencoded").body(form(&pairs));
    let answer = send(request, &credentials.token_url).await?;
    let token = text_at(&answer, "/access_token")
        .ok_or_else(|| Error::NoToken("/access_token".to_owned()))?;
    Ok(Token::new(token.into(), number, expiry(&answer, "/expires_in", now)))
}

/// Sends a login; what it answers is never repeated, since it may hold what was sent.
async fn send(request: reqwest::RequestBuilder, address: &str) -> Result<Value, Error> {
    // The address is shown as it was configured: filled in, it may hold a key.
    let failed = |reason: String| Error::Login {
        address: address.split('?').next().unwrap_or_default().to_owned(),
        reason,
    };
    let mut answer =
        request.send().await.map_err(|error| failed(error.without_url().to_string()))?;
    if !answer.status().is_success() {
        return Err(failed(format!("status {}", answer.status().as_u16())));
    }
    let mut bytes = Vec::new();
    while let Some(chunk) =
        answer.chunk().await.map_err(|error| failed(error.without_url().to_string()))?
    {
        bytes.extend_from_slice(&chunk);
        if bytes.len() > ANSWER {
            return Err(failed("its answer is too long".to_owned()));
        }
    }
    serde_json::from_slice(&bytes).map_err(|_| failed("its answer is no JSON".to_owned()))
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

fn form(pairs: &[(String, String)]) -> String {
    let mut url = url::form_urlencoded::Serializer::new(String::new());
    url.extend_pairs(pairs);
    url.finish()
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
