//! The keys of a server that is reached over HTTP, and how a token for it is got.

use std::collections::BTreeMap;

use secrecy::{ExposeSecret as _, SecretString};

use super::expand::{EntryLocation, Environment, expand, refuse};
use super::table::{Grant, Table};
use super::{Result, Secrets, Transport};

pub(super) fn http(
    place: &EntryLocation<'_>,
    url: &str,
    table: &Table,
    env: Environment<'_>,
    secrets: &mut Secrets,
) -> Result<Transport> {
    let stdio_only: [(&str, bool); 5] = [
        ("args", !table.args.is_empty()),
        ("env", !table.env.is_empty()),
        ("env_vars", !table.env_vars.is_empty()),
        ("cwd", table.cwd.is_some()),
        ("sandbox", table.sandbox.is_some()),
    ];
    refuse(place, &stdio_only, "only a server with `command` takes this key")?;
    if !table.is_enabled() {
        let url = url.to_owned();
        let headers = BTreeMap::new();
        return Ok(Transport::Http { url, bearer_token: None, headers, oauth: None });
    }
    let url = place.at("url", expand(url, env, secrets))?;
    check_url(place, &url, secrets)?;
    let mut headers = BTreeMap::new();
    for (name, text) in &table.http_headers {
        let key = format!("http_headers.{name}");
        headers.insert(name.clone(), place.at(&key, expand(text, env, secrets))?);
    }
    for (name, variable) in &table.env_http_headers {
        if let Some(found) = env(variable).filter(|value| !value.trim().is_empty()) {
            headers.insert(name.clone(), found);
        }
    }
    for (name, text) in &headers {
        secrets.add(text);
        let known = reqwest::header::HeaderName::try_from(name.as_str()).is_ok();
        if !known || reqwest::header::HeaderValue::try_from(text.as_str()).is_err() {
            let key = format!("http_headers.{name}");
            return Err(place.error(&key, "this name or its value is not valid in an HTTP header"));
        }
    }
    let bearer_token = place.secret(
        "bearer_token_env_var",
        table.bearer_token_env_var.as_deref(),
        env,
        secrets,
    )?;
    let has_header = headers.keys().any(|name| name.eq_ignore_ascii_case("authorization"));
    if has_header && bearer_token.is_some() {
        let message = "the headers have `Authorization` too; remove one of the two";
        return Err(place.error("bearer_token_env_var", message));
    }
    let has_token = has_header || bearer_token.is_some();
    let oauth = if has_token { None } else { Some(oauth(place, table, env, secrets)?) };
    Ok(Transport::Http { url, bearer_token, headers, oauth })
}

/// Checks that the address is one of HTTP, and notes the parts of it that may be secret.
fn check_url(place: &EntryLocation<'_>, url: &str, secrets: &mut Secrets) -> Result<()> {
    let Ok(parsed) = reqwest::Url::parse(url) else {
        return Err(place.error("url", "not a URL; write it as in https://tools.example/mcp"));
    };
    if !matches!(parsed.scheme(), "http" | "https") {
        let message = format!("expected http or https, found: {}", parsed.scheme());
        return Err(place.error("url", message));
    }
    secrets.add(parsed.password().unwrap_or_default());
    secrets.add(parsed.query().unwrap_or_default());
    Ok(())
}

#[derive(Clone, Debug, Default)]
pub struct OAuth {
    pub grant: Grant,
    /// Scopes to request; empty means those that the server wants.
    pub scopes: Vec<String>,
    /// `None`: the program makes itself known, by `client_metadata_url` or by registering.
    pub client_id: Option<String>,
    pub client_secret: Option<SecretString>,
    /// The only authorization server to use; `None` means the first one that the server names.
    pub issuer: Option<String>,
    pub client_metadata_url: Option<String>,
    /// The loopback address for the browser's redirect; `None` means a free port.
    pub callback_port: Option<u16>,
}

impl PartialEq for OAuth {
    fn eq(&self, other: &Self) -> bool {
        let secret =
            |one: &Self| one.client_secret.as_ref().map(|it| it.expose_secret().to_owned());
        self.grant == other.grant
            && self.scopes == other.scopes
            && self.client_id == other.client_id
            && secret(self) == secret(other)
            && self.issuer == other.issuer
            && self.client_metadata_url == other.client_metadata_url
            && self.callback_port == other.callback_port
    }
}

impl Eq for OAuth {}

/// Checks `scopes` and the `oauth` table, and fetches the secret that it names.
pub(super) fn oauth(
    place: &EntryLocation<'_>,
    table: &Table,
    env: Environment<'_>,
    secrets: &mut Secrets,
) -> Result<OAuth> {
    let written = table.oauth.as_ref();
    let mut oauth = OAuth { scopes: table.scopes.clone(), ..OAuth::default() };
    if let Some(bad) = oauth.scopes.iter().find(|scope| !is_scope(scope)) {
        return Err(place.error("scopes", format!("a scope is one word: {bad}")));
    }
    let Some(written) = written else { return Ok(oauth) };
    oauth.grant = written.grant;
    oauth.client_id = written.client_id.clone().filter(|id| !id.trim().is_empty());
    oauth.callback_port = written.callback_port;
    oauth.issuer = written.issuer.clone().filter(|issuer| !issuer.trim().is_empty());
    if let Some(url) = &written.client_metadata_url {
        let parsed = reqwest::Url::parse(url).ok();
        if !parsed.is_some_and(|url| url.scheme() == "https" && url.path() != "/") {
            let message = format!("expected an https address with a path: {url}");
            return Err(place.error("oauth.client_metadata_url", message));
        }
        if oauth.client_id.is_some() {
            let message = "give either `client_id` or `client_metadata_url`, not both";
            return Err(place.error("oauth", message));
        }
        oauth.client_metadata_url = Some(url.clone());
    }
    if written.client_secret_env_var.is_some() && oauth.client_id.is_none() {
        let message = "a secret goes with a `client_id`";
        return Err(place.error("oauth.client_secret_env_var", message));
    }
    if oauth.grant == Grant::ClientCredentials {
        let complete = oauth.client_id.is_some() && written.client_secret_env_var.is_some();
        if !complete {
            let message = "client_credentials needs `client_id` and `client_secret_env_var`";
            return Err(place.error("oauth.grant", message));
        }
        if written.callback_port.is_some() {
            let message = "client_credentials uses no browser, so it takes no callback_port";
            return Err(place.error("oauth.callback_port", message));
        }
    }
    let variable = written.client_secret_env_var.as_deref();
    let secret = place.secret("oauth.client_secret_env_var", variable, env, secrets)?;
    oauth.client_secret = secret.map(Into::into);
    Ok(oauth)
}

/// Returns whether it is a scope in the form of RFC 6749.
fn is_scope(scope: &str) -> bool {
    !scope.is_empty()
        && scope.bytes().all(|byte| byte.is_ascii_graphic() && !matches!(byte, b'"' | b'\\'))
}
