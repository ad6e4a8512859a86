//! The operator's credentials: a file, and the environment.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use secrecy::{ExposeSecret, SecretString};
use serde::Deserialize;

use super::{Error, Result};
use perihelion_settings::config::strict;

/// A token, given directly.
pub const TOKEN: &str = "PERIHELION_API_TOKEN";
const TOKEN_FILE: &str = "PERIHELION_API_TOKEN_FILE";
/// A key for schemes that ask for one.
const KEY: &str = "PERIHELION_API_KEY";
const USERNAME: &str = "PERIHELION_API_USERNAME";
const PASSWORD: &str = "PERIHELION_API_PASSWORD";

/// How to authenticate. Texts can contain environment variables as `${NAME}`.
#[derive(Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    /// The token itself; best as `${NAME}`.
    token: Option<String>,
    token_file: Option<PathBuf>,
    /// Seconds before its end from which a token is renewed.
    grace_sec: Option<u32>,
    pub(super) login: Option<Login>,
    pub(super) client_credentials: Option<ClientCredentials>,
    /// Keys, and names with passwords, by the description's scheme.
    pub(super) schemes: BTreeMap<String, SchemeConfig>,
}

/// A request whose response contains a token.
#[derive(Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Login {
    pub url: String,
    /// JSON, unless `form` is set.
    #[serde(default)]
    pub body: BTreeMap<String, serde_json::Value>,
    #[serde(default)]
    pub form: bool,
    #[serde(default)]
    pub headers: BTreeMap<String, String>,
    /// The JSON pointer to the token in the answer.
    #[serde(default = "token_pointer")]
    pub token: String,
    /// The JSON pointer to the seconds until it expires.
    #[serde(default = "expiry_pointer")]
    pub expires_in: String,
}

#[derive(Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ClientCredentials {
    pub token_url: String,
    pub client_id: String,
    pub client_secret: String,
    pub scope: Option<String>,
    pub audience: Option<String>,
}

#[derive(Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct SchemeConfig {
    key: Option<String>,
    username: Option<String>,
    password: Option<String>,
}

impl Login {
    /// Returns a login without fields, with a response as in OAuth.
    pub(super) fn at(url: &str) -> Self {
        Self {
            url: url.to_owned(),
            token: token_pointer(),
            expires_in: expiry_pointer(),
            ..Self::default()
        }
    }
}

fn token_pointer() -> String {
    "/access_token".to_owned()
}

fn expiry_pointer() -> String {
    "/expires_in".to_owned()
}

impl Config {
    pub fn load(path: Option<&Path>) -> Result<Self, strict::Error> {
        path.map_or_else(|| Ok(Self::default()), strict::load)
    }

    pub fn is_empty(&self) -> bool {
        let set = |name: &str| std::env::var_os(name).is_some();
        let has_file = self.token.is_some()
            || self.token_file.is_some()
            || !self.schemes.is_empty()
            || self.can_fetch();
        !has_file && ![TOKEN, TOKEN_FILE, KEY, USERNAME].into_iter().any(set)
    }

    pub fn direct(&self) -> Result<Option<SecretString>> {
        match (&self.token, variable(TOKEN)) {
            (Some(token), _) => expanded(token).map(|token| Some(token.into())),
            (None, Some(token)) => Ok(Some(token.into())),
            (None, None) => Ok(None),
        }
    }

    pub fn token_file(&self) -> Option<PathBuf> {
        self.token_file.clone().or_else(|| variable(TOKEN_FILE).map(PathBuf::from))
    }

    pub fn grace(&self) -> chrono::Duration {
        chrono::Duration::seconds(self.grace_sec.unwrap_or(120).into())
    }

    /// Returns whether there may be a token.
    pub fn has_token(&self) -> bool {
        let is_direct = self.token.is_some() || variable(TOKEN).is_some();
        is_direct || self.can_fetch() || self.token_file().is_some()
    }

    pub fn can_fetch(&self) -> bool {
        self.login.is_some() || self.client_credentials.is_some()
    }

    pub fn can_renew(&self) -> bool {
        let is_direct = self.token.is_some() || variable(TOKEN).is_some();
        !is_direct && self.has_token()
    }

    pub fn key(&self, scheme: &str) -> Result<Option<SecretString>> {
        let own = self.schemes.get(scheme).and_then(|scheme| scheme.key.as_ref());
        match own {
            Some(key) => expanded(key).map(|key| Some(key.into())),
            None => Ok(variable(KEY).map(Into::into)),
        }
    }

    pub fn basic(&self, scheme: Option<&SchemeConfig>) -> Result<Option<(String, SecretString)>> {
        let user =
            scheme.and_then(|scheme| scheme.username.as_deref()).map(expanded).transpose()?;
        let Some(user) = user.or_else(|| variable(USERNAME)) else { return Ok(None) };
        let password =
            scheme.and_then(|scheme| scheme.password.as_deref()).map(expanded).transpose()?;
        Ok(Some((user, password.or_else(|| variable(PASSWORD)).unwrap_or_default().into())))
    }

    pub fn redact(&self, text: &str) -> String {
        let variables = [TOKEN, KEY, PASSWORD].into_iter().filter_map(variable);
        let mut secrets: Vec<SecretString> = variables.map(Into::into).collect();
        let own =
            self.schemes.values().flat_map(|scheme| [&scheme.key, &scheme.password]).flatten();
        let client = self.client_credentials.iter().map(|client| &client.client_secret);
        for given in own.chain(client).chain(&self.token) {
            secrets.extend(expanded(given).ok().map(Into::into));
        }
        let mut shown = text.to_owned();
        for secret in secrets.iter().filter(|secret| secret.expose_secret().len() >= 4) {
            shown = shown.replace(secret.expose_secret(), "[redacted]");
        }
        shown
    }
}

fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok().map(|value| value.trim().to_owned()).filter(|value| !value.is_empty())
}

pub fn expanded(text: &str) -> Result<String> {
    let mut made = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("${") {
        let Some((name, tail)) = after.split_once('}') else { break };
        made.push_str(before);
        made.push_str(&variable(name).ok_or_else(|| Error::Unset(name.to_owned()))?);
        rest = tail;
    }
    made.push_str(rest);
    Ok(made)
}
