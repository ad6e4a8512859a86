//! Turns a table as written into a server as it will run: expanded, checked, with defaults.

use std::{collections::BTreeMap, num::NonZeroU32, path::Path, time::Duration};

use super::expand::{EntryLocation, Environment, INHERITED, expand, note, refuse};
use super::table::Table;
use super::{
    AgentBinding, BreakerPolicy, Effect, Error, Knowledge, RateLimit, Result, Secrets,
    ServerConfig, ToolPolicy, Transport, Warning, confinement, http, secret,
};
use perihelion_settings::config::strict;

const STARTUP_TIMEOUT: Duration = Duration::from_secs(20);
const TOOL_TIMEOUT: Duration = Duration::from_secs(60);
/// The default limit of a call that reports progress, as a multiple of the tool timeout.
const TOTAL_FACTOR: u32 = 10;
/// Tasks take long; this is the longest useful wait.
const TASK_TIMEOUT: Duration = Duration::from_secs(3600);
const MAX_RESULT_BYTES: usize = 8 * 1024 * 1024;
const MAX_CONCURRENT_CALLS: usize = 8;
const IDLE_TIMEOUT: Duration = Duration::from_secs(600);
const BREAKER_FAILURES: usize = 5;
const BREAKER_COOLDOWN: Duration = Duration::from_secs(30);
/// No timeout is longer than a week: larger numbers are mistakes of unit.
const LONGEST_SECONDS: f64 = 604_800.0;

pub(super) fn server(
    place: &EntryLocation<'_>,
    table: Table,
    env: Environment<'_>,
    warnings: &mut Vec<Warning>,
) -> Result<ServerConfig> {
    if !is_server_name(place.server) {
        return Err(place.error("", "use 1 to 64 of A-Z a-z 0-9 _ - for a server's name"));
    }
    let mut secrets = Secrets::default();
    let transport = transport(place, &table, env, &mut secrets)?;
    warn(place, &table, &transport, warnings);
    let sandbox = confinement::sandbox(place, &table, env, &transport)?;
    let seconds =
        |key, value, default| Ok::<_, Error>(place.seconds(key, value)?.unwrap_or(default));
    let number =
        |key, value, default| Ok::<_, Error>(place.positive(key, value)?.unwrap_or(default));
    let tool_timeout = seconds("tool_timeout_sec", table.tool_timeout_sec, TOOL_TIMEOUT)?;
    let total = place.seconds("tool_total_timeout_sec", table.tool_total_timeout_sec)?;
    let at_once = place.positive("max_concurrent_calls", table.max_concurrent_calls)?;
    let serial = table.supports_parallel_tool_calls == Some(false);
    let idle = table.idle_timeout_sec.filter(|seconds| *seconds != 0.0);
    let idle = place.seconds("idle_timeout_sec", idle)?;
    // What was reached is digested without them as ever, so that pins stand.
    let fingerprint = fingerprint(&transport, &table, &secrets);
    note_parts(&transport, &mut secrets);
    let agent = binding(place, &table)?;
    Ok(ServerConfig {
        enabled: table.is_enabled(),
        required: table.required,
        startup_timeout: seconds(
            "startup_timeout_sec",
            table.startup_timeout_sec,
            STARTUP_TIMEOUT,
        )?,
        tool_timeout,
        tool_total_timeout: total.unwrap_or(tool_timeout * TOTAL_FACTOR).max(tool_timeout),
        task_timeout: seconds("task_timeout_sec", table.task_timeout_sec, TASK_TIMEOUT)?,
        max_result_bytes: number("max_result_bytes", table.max_result_bytes, MAX_RESULT_BYTES)?,
        memory_mb: confinement::memory(place, &table)?,
        max_concurrent_calls: at_once.unwrap_or(if serial { 1 } else { MAX_CONCURRENT_CALLS }),
        rate_limit: match &table.rate_limit {
            Some(text) => Some(rate(text).ok_or_else(|| {
                let expected = "expected calls per time, such as 5/s, 60/min or 1000/h";
                place.error("rate_limit", format!("{expected}: {text}"))
            })?),
            None => None,
        },
        idle_timeout: match table.idle_timeout_sec {
            Some(_) => idle,
            None => Some(IDLE_TIMEOUT),
        },
        breaker: BreakerPolicy {
            failures: number("breaker_failures", table.breaker_failures, BREAKER_FAILURES)?,
            cooldown: seconds(
                "breaker_cooldown_sec",
                table.breaker_cooldown_sec,
                BREAKER_COOLDOWN,
            )?,
        },
        definitions_ttl: place.seconds("definitions_ttl_sec", table.definitions_ttl_sec)?,
        tools: policy(&table, agent.bundled.is_some()),
        agent,
        origin: confinement::Origin::of(&table),
        sandbox,
        fingerprint,
        transport,
        description: table.description,
        secrets,
        name: place.server.to_owned(),
    })
}

/// Registers what stands in the place of a secret, in plain text or from a variable, because a server may echo it.
fn note_parts(transport: &Transport, secrets: &mut Secrets) {
    let (args, url, named): (&[String], _, _) = match transport {
        Transport::Stdio { args, env, .. } => (args, None, env),
        Transport::Http { url, headers, .. } => (&[], Some(("url", url)), headers),
    };
    for found in secret::in_args(args) {
        let part = args.get(found.index).and_then(|arg| arg.get(found.part));
        secrets.add(part.unwrap_or_default());
    }
    let named = named.iter().map(|(name, text)| (name.as_str(), text));
    for (name, text) in url.into_iter().chain(named) {
        for (part, _) in secret::in_value(name, text) {
            let found = &text[part];
            secrets.add(found);
            // Of an address all is secret for its password, which is also echoed alone.
            let password = found.split_once("://").and_then(|(_, rest)| rest.split_once('@'));
            let password = password.and_then(|(user, _)| user.split_once(':'));
            secrets.add(password.map_or("", |(_, password)| password));
        }
    }
}

/// Reads a rate such as `60/min`.
fn rate(text: &str) -> Option<RateLimit> {
    let (calls, per) = text.split_once('/')?;
    let calls: NonZeroU32 = calls.trim().parse().ok()?;
    let seconds = match per.trim() {
        "s" | "sec" | "second" => 1,
        "m" | "min" | "minute" => 60,
        "h" | "hour" => 3600,
        _ => return None,
    };
    Some(RateLimit { calls, per: Duration::from_secs(seconds) })
}

/// Digests what decides which server is reached: not how it is called, and no secret.
fn fingerprint(transport: &Transport, table: &Table, secrets: &Secrets) -> String {
    let reached = match transport {
        Transport::Stdio { command, args, env, cwd } => {
            // What is inherited differs from terminal to terminal, and matters to no server's tools.
            let given = env.iter().filter(|(name, _)| {
                table.env.contains_key(*name) || !INHERITED.split(' ').any(|known| known == *name)
            });
            let given: BTreeMap<_, _> = given.collect();
            serde_json::json!({ "command": command, "args": args, "env": given, "cwd": cwd })
        }
        Transport::Http { url, bearer_token, headers, oauth: _ } => {
            serde_json::json!({ "url": url, "token": bearer_token, "headers": headers })
        }
    };
    let digest = blake3::hash(secrets.redact_json(reached).to_string().as_bytes());
    digest.to_hex().to_string()
}

impl EntryLocation<'_> {
    fn seconds(&self, key: &str, value: Option<f64>) -> Result<Option<Duration>> {
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

    fn positive(&self, key: &str, value: Option<usize>) -> Result<Option<usize>> {
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
    place: &EntryLocation<'_>,
    table: &Table,
    env: Environment<'_>,
    secrets: &mut Secrets,
) -> Result<Transport> {
    match (&table.command, &table.url) {
        (Some(command), None) => stdio(place, command, table, env, secrets),
        (None, Some(url)) => http::http(place, url, table, env, secrets),
        (Some(_), Some(_)) => Err(place.error("", "give either `command` or `url`, not both")),
        (None, None) => {
            Err(place.error("", "give a `command` to start, or the `url` of a running server"))
        }
    }
}

fn stdio(
    place: &EntryLocation<'_>,
    command: &str,
    table: &Table,
    env: Environment<'_>,
    secrets: &mut Secrets,
) -> Result<Transport> {
    let http_only: [(&str, bool); 5] = [
        ("bearer_token_env_var", table.bearer_token_env_var.is_some()),
        ("http_headers", !table.http_headers.is_empty()),
        ("env_http_headers", !table.env_http_headers.is_empty()),
        ("scopes", !table.scopes.is_empty()),
        ("oauth", table.oauth.is_some()),
    ];
    refuse(place, &http_only, "only a server with `url` takes this key")?;
    if !table.is_enabled() {
        // A disabled server's variables need not be set.
        let command = command.to_owned();
        let args = table.args.clone();
        return Ok(Transport::Stdio { command, args, env: BTreeMap::new(), cwd: None });
    }
    let mut value = |key: &str, text: &str| place.at(key, expand(text, env, secrets));
    let command = value("command", command)?;
    if command.trim().is_empty() {
        return Err(place.error("command", "the command is empty"));
    }
    let args = table.args.iter().map(|arg| value("args", arg)).collect::<Result<_, _>>()?;
    let cwd = table.cwd.as_deref().map(|cwd| value("cwd", cwd)).transpose()?;
    let mut child: BTreeMap<String, String> = INHERITED
        .split(' ')
        .filter_map(|name| env(name).map(|found| (name.to_owned(), found)))
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
        if secret::is_named(&name) {
            secrets.add(&text);
        }
        child.insert(name, text);
    }
    if let Some(bad) = child.keys().find(|name| name.is_empty() || name.contains(['=', '\0'])) {
        return Err(place.error("env", format!("not the name of an environment variable: {bad}")));
    }
    Ok(Transport::Stdio { command, args, env: child, cwd })
}

/// Reads how the server's agent works, and which bundled server it is if it is one.
fn binding(place: &EntryLocation<'_>, table: &Table) -> Result<AgentBinding> {
    let program = table.command.as_deref().map(Path::new).and_then(Path::file_name);
    let is_own = program.is_some_and(|name| name == "perihelion");
    let bundled = match table.args.as_slice() {
        [mcp, name, ..] if is_own && mcp == "mcp" => Some(name.clone()),
        _ => None,
    };
    let knowledge = table.knowledge.as_deref().map(|file| knowledge(place, file)).transpose()?;
    let kind = table.agent.clone();
    let tools = table.agent_tools.clone();
    Ok(AgentBinding { kind, tools, knowledge, bundled })
}

fn knowledge(place: &EntryLocation<'_>, file: &str) -> Result<Knowledge> {
    let path = place.path.parent().unwrap_or(Path::new("")).join(file);
    let text = place.at("knowledge", strict::read(&path))?;
    let content = serde_saphyr::from_str(&text).map_err(|error| {
        let message = error.to_string();
        let message = message.lines().next().unwrap_or_default();
        place.error("knowledge", format!("{}: {message}", path.display()))
    })?;
    Ok(Knowledge { file: file.to_owned(), content })
}

fn policy(table: &Table, is_bundled: bool) -> ToolPolicy {
    let mut by_name = table.tools.clone();
    for tool in &table.repeatable {
        by_name.entry(tool.clone()).or_default().effect.get_or_insert(Effect::Idempotent);
    }
    ToolPolicy {
        enabled: table.enabled_tools.clone(),
        disabled: table.disabled_tools.clone(),
        default_effect: table.default_tools_effect.unwrap_or_default(),
        default_approval: table.default_tools_approval_mode.unwrap_or_default(),
        by_name,
        is_bundled,
        trust_annotations: table.trust_annotations,
        open_world: table.open_world,
    }
}

fn warn(
    place: &EntryLocation<'_>,
    table: &Table,
    transport: &Transport,
    warnings: &mut Vec<Warning>,
) {
    let mut warn = |key: &str, text: &str| {
        let text = format!("{text}: {}.{}.{key}", place.section, place.server);
        warnings.push(Warning { server: place.server.to_owned(), text });
    };
    if let Transport::Http { headers, oauth, .. } = transport
        && table.is_enabled()
    {
        for (key, set) in [("oauth", table.oauth.is_some()), ("scopes", !table.scopes.is_empty())] {
            if set && oauth.is_none() {
                warn(key, "a token is given already, so this key has no effect");
            }
        }
        for (name, variable) in &table.env_http_headers {
            if !headers.contains_key(name) {
                let text = format!("this header is not sent, because {variable} is not set");
                warn(&format!("env_http_headers.{name}"), &text);
            }
        }
    }
    // Other programs' files are as they are.
    if place.section != "mcp_servers" {
        return;
    }
    let plain = "this is a secret in plain text; set it in an environment variable and write ${NAME} in its place";
    let env = table.env.iter().map(|(name, text)| ("env", name, text));
    let headers = table.http_headers.iter().map(|(name, text)| ("http_headers", name, text));
    for (key, name, text) in env.chain(headers) {
        if !secret::in_value(name, text).is_empty() {
            warn(&format!("{key}.{name}"), plain);
        }
    }
    if !secret::in_args(&table.args).is_empty() {
        warn("args", plain);
    }
    if table.url.as_deref().is_some_and(|url| !secret::in_address("url", url).is_empty()) {
        warn("url", plain);
    }
}

fn is_server_name(name: &str) -> bool {
    (1..=64).contains(&name.len())
        && name.chars().all(|letter| letter.is_ascii_alphanumeric() || matches!(letter, '_' | '-'))
}
