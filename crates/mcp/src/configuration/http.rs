//! The keys of a server that is reached over HTTP.

use std::collections::BTreeMap;

use super::{
    Error, Secrets, Transport,
    entry_location::{EntryLocation, refuse},
    expand::{Environment, expand},
    oauth,
    table::Table,
};

/// Reads the keys of a server that is elsewhere.
pub(super) fn http(
    place: &EntryLocation<'_>,
    url: &str,
    table: &Table,
    env: Environment<'_>,
    secrets: &mut Secrets,
) -> Result<Transport, Error> {
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
        if let Some(found) = env(variable) {
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
    let oauth =
        if has_token(table) { None } else { Some(oauth::oauth(place, table, env, secrets)?) };
    Ok(Transport::Http { url, bearer_token, headers, oauth })
}

/// Tells whether the table says what token is sent.
pub(super) fn has_token(table: &Table) -> bool {
    let mut headers = table.http_headers.keys().chain(table.env_http_headers.keys());
    table.bearer_token_env_var.is_some()
        || headers.any(|name| name.eq_ignore_ascii_case("authorization"))
}

/// Checks that the address is one of HTTP, and notes the parts of it that may be secret.
fn check_url(place: &EntryLocation<'_>, url: &str, secrets: &mut Secrets) -> Result<(), Error> {
    let Ok(parsed) = reqwest::Url::parse(url) else {
        return Err(place.error("url", "not a URL"));
    };
    if !matches!(parsed.scheme(), "http" | "https") {
        let message = format!("expected http or https, found: {}", parsed.scheme());
        return Err(place.error("url", message));
    }
    secrets.add(parsed.password().unwrap_or_default());
    secrets.add(parsed.query().unwrap_or_default());
    Ok(())
}
