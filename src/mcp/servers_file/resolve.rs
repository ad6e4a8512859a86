//! Turns a table as written into a server as it will run: expanded, checked, with defaults.

use std::{collections::BTreeMap, path::Path, time::Duration};

use super::{
    Effect, Error, Secrets, ServerConfig, ToolPolicy, Transport, confinement,
    expand::{Environment, INHERITED, expand, note},
    table::Table,
};

const STARTUP_TIMEOUT: Duration = Duration::from_secs(20);
const TOOL_TIMEOUT: Duration = Duration::from_secs(60);
/// Without a limit of its own, a call that reports progress lives this many tool timeouts.
const TOTAL_FACTOR: u32 = 10;
const MAX_RESULT_BYTES: usize = 8 * 1024 * 1024;
const MAX_CONCURRENCY: usize = 8;
/// No timeout is longer than a week: larger numbers are mistakes of unit.
const LONGEST_SECONDS: f64 = 604_800.0;

/// Checks one table and fills in what it leaves out.
pub(super) fn server(
    path: &Path,
    name: String,
    table: Table,
    env: Environment<'_>,
    warnings: &mut Vec<String>,
) -> Result<ServerConfig, Error> {
    let place = Place { path, server: &name };
    if !is_server_name(&name) {
        return Err(place.error("", "use 1 to 64 of A-Z a-z 0-9 _ - for a server's name"));
    }
    warn_of_unsupported(&name, &table, warnings);
    let mut secrets = Secrets::default();
    let transport = transport(&place, &table, env, &mut secrets)?;
    let sandbox = confinement::sandbox(&place, &table, env)?;
    let tool_timeout = place.seconds("tool_timeout_sec", table.tool_timeout_sec)?;
    let tool_timeout = tool_timeout.unwrap_or(TOOL_TIMEOUT);
    let total = place.seconds("tool_total_timeout_sec", table.tool_total_timeout_sec)?;
    let concurrency = place.positive("max_concurrency", table.max_concurrency)?;
    let serial = table.supports_parallel_tool_calls == Some(false);
    Ok(ServerConfig {
        transport,
        enabled: table.enabled,
        required: table.required,
        startup_timeout: place
            .seconds("startup_timeout_sec", table.startup_timeout_sec)?
            .unwrap_or(STARTUP_TIMEOUT),
        tool_timeout,
        tool_total_timeout: total.unwrap_or(tool_timeout * TOTAL_FACTOR).max(tool_timeout),
        max_result_bytes: place
            .positive("max_result_bytes", table.max_result_bytes)?
            .unwrap_or(MAX_RESULT_BYTES),
        max_concurrency: concurrency.unwrap_or(if serial { 1 } else { MAX_CONCURRENCY }),
        tools: policy(&table),
        origin: confinement::origin(&table),
        sandbox,
        description: table.description,
        secrets,
        name,
    })
}

/// Names the file and the server in errors.
pub(super) struct Place<'a> {
    path: &'a Path,
    server: &'a str,
}

impl Place<'_> {
    pub fn error(&self, key: &str, message: impl Into<String>) -> Error {
        let dot = if key.is_empty() { "" } else { "." };
        Error::Value {
            path: self.path.to_owned(),
            key: format!("mcp_servers.{}{dot}{key}", self.server),
            message: message.into(),
        }
    }

    fn seconds(&self, key: &str, value: Option<f64>) -> Result<Option<Duration>, Error> {
        match value {
            Some(seconds) if seconds > 0.0 && seconds <= LONGEST_SECONDS => {
                Ok(Some(Duration::from_secs_f64(seconds)))
            }
            Some(seconds) => Err(self.error(
                key,
                format!("expected seconds above 0 and at most {LONGEST_SECONDS}: {seconds}"),
            )),
            None => Ok(None),
        }
    }

    fn positive(&self, key: &str, value: Option<usize>) -> Result<Option<usize>, Error> {
        match value {
            // Also keeps the number within what a semaphore can count.
            Some(number) if number == 0 || u32::try_from(number).is_err() => {
                Err(self.error(key, format!("expected a number from 1 to {}: {number}", u32::MAX)))
            }
            other => Ok(other),
        }
    }
}

fn transport(
    place: &Place<'_>,
    table: &Table,
    env: Environment<'_>,
    secrets: &mut Secrets,
) -> Result<Transport, Error> {
    match (&table.command, &table.url) {
        (Some(command), None) => stdio(place, command, table, env, secrets),
        (None, Some(url)) => http(place, url, table, env, secrets),
        (Some(_), Some(_)) => Err(place.error("", "give either `command` or `url`, not both")),
        (None, None) => {
            Err(place.error("", "give a `command` to start, or the `url` of a running server"))
        }
    }
}

fn stdio(
    place: &Place<'_>,
    command: &str,
    table: &Table,
    env: Environment<'_>,
    secrets: &mut Secrets,
) -> Result<Transport, Error> {
    let http_only: [(&str, bool); 3] = [
        ("bearer_token_env_var", table.bearer_token_env_var.is_some()),
        ("http_headers", !table.http_headers.is_empty()),
        ("env_http_headers", !table.env_http_headers.is_empty()),
    ];
    refuse(place, &http_only, "only a server with `url` takes this key")?;
    if !table.enabled {
        // A disabled server's variables need not be set.
        let (command, args) = (command.to_owned(), table.args.clone());
        return Ok(Transport::Stdio { command, args, env: BTreeMap::new(), cwd: None });
    }
    let mut value = |key: &str, text: &str| {
        expand(text, env, secrets).map_err(|message| place.error(key, message))
    };
    let command = value("command", command)?;
    if command.trim().is_empty() {
        return Err(place.error("command", "the command is empty"));
    }
    let args = table.args.iter().map(|arg| value("args", arg)).collect::<Result<_, _>>()?;
    let cwd = table.cwd.as_deref().map(|cwd| value("cwd", cwd)).transpose()?;
    let mut child: BTreeMap<String, String> = INHERITED
        .iter()
        .filter_map(|name| env(name).map(|found| ((*name).to_owned(), found)))
        .collect();
    let mut written = Vec::new();
    for (name, text) in &table.env {
        written.push((name.clone(), value(&format!("env.{name}"), text)?));
    }
    for name in &table.env_vars {
        if let Some(found) = env(name) {
            note(name, &found, secrets);
            child.insert(name.clone(), found);
        }
    }
    for (name, text) in written {
        if names_a_secret(&name) {
            secrets.add(&text);
        }
        child.insert(name, text);
    }
    if let Some(bad) = child.keys().find(|name| name.is_empty() || name.contains(['=', '\0'])) {
        return Err(place.error("env", format!("not the name of an environment variable: {bad}")));
    }
    Ok(Transport::Stdio { command, args, env: child, cwd })
}

fn http(
    place: &Place<'_>,
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
    if !table.enabled {
        let url = url.to_owned();
        return Ok(Transport::Http { url, bearer_token: None, headers: BTreeMap::new() });
    }
    let url = expand(url, env, secrets).map_err(|message| place.error("url", message))?;
    check_url(place, &url, secrets)?;
    let mut headers = BTreeMap::new();
    for (name, text) in &table.http_headers {
        let key = format!("http_headers.{name}");
        let text = expand(text, env, secrets).map_err(|message| place.error(&key, message))?;
        headers.insert(name.clone(), text);
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
            return Err(place.error(&key, "this name or its value cannot stand in an HTTP header"));
        }
    }
    let bearer_token = match &table.bearer_token_env_var {
        Some(variable) => {
            let token =
                env(variable).filter(|token| !token.trim().is_empty()).ok_or_else(|| {
                    let message = format!("this environment variable is not set: {variable}");
                    place.error("bearer_token_env_var", message)
                })?;
            secrets.add(&token);
            Some(token.trim().to_owned())
        }
        None => None,
    };
    Ok(Transport::Http { url, bearer_token, headers })
}

/// Checks that the address is one of HTTP, and notes the parts of it that may be secret.
fn check_url(place: &Place<'_>, url: &str, secrets: &mut Secrets) -> Result<(), Error> {
    let parsed = reqwest::Url::parse(url)
        .map_err(|error| place.error("url", format!("not a URL: {error}")))?;
    if !matches!(parsed.scheme(), "http" | "https") {
        let message = format!("expected http or https, found: {}", parsed.scheme());
        return Err(place.error("url", message));
    }
    secrets.add(parsed.password().unwrap_or_default());
    secrets.add(parsed.query().unwrap_or_default());
    Ok(())
}

fn refuse(place: &Place<'_>, keys: &[(&str, bool)], why: &str) -> Result<(), Error> {
    match keys.iter().find(|(_, set)| *set) {
        Some((key, _)) => Err(place.error(key, why)),
        None => Ok(()),
    }
}

fn policy(table: &Table) -> ToolPolicy {
    let mut effects: BTreeMap<String, Effect> =
        table.repeatable.iter().map(|tool| (tool.clone(), Effect::Idempotent)).collect();
    let mut approvals = BTreeMap::new();
    for (name, tool) in &table.tools {
        effects.extend(tool.effect.map(|effect| (name.clone(), effect)));
        approvals.extend(tool.approval_mode.map(|mode| (name.clone(), mode)));
    }
    ToolPolicy {
        enabled: table.enabled_tools.clone(),
        disabled: table.disabled_tools.clone(),
        default_effect: table.default_tools_effect.unwrap_or_default(),
        default_approval: table.default_tools_approval_mode.unwrap_or_default(),
        effects,
        approvals,
        trust_annotations: table.trust_annotations,
        open_world: table.open_world,
    }
}

fn warn_of_unsupported(name: &str, table: &Table, warnings: &mut Vec<String>) {
    for (key, set) in [("oauth", table.oauth.is_some()), ("scopes", !table.scopes.is_empty())] {
        if set {
            warnings.push(format!(
                "OAuth is not supported yet, so this key has no effect; pass a token with \
                 bearer_token_env_var instead: mcp_servers.{name}.{key}"
            ));
        }
    }
}

fn is_server_name(name: &str) -> bool {
    (1..=64).contains(&name.len())
        && name.chars().all(|letter| letter.is_ascii_alphanumeric() || matches!(letter, '_' | '-'))
}

/// Tells whether a variable of that name usually holds a secret.
fn names_a_secret(name: &str) -> bool {
    let name = name.to_ascii_uppercase();
    ["KEY", "TOKEN", "SECRET", "PASS", "PWD", "CREDENTIAL", "AUTH", "DSN", "DATABASE_URL"]
        .iter()
        .any(|word| name.contains(word))
}
