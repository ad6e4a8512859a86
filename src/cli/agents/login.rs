//! `perihelion agents login` and `logout`: a person's login to an MCP server over HTTP.

use std::io::IsTerminal as _;
use std::time::Duration;

use serde_json::json;

use super::output;
use super::status::using;
use crate::cli::{Error, Exit, browser, environment};
use perihelion_runtime::{self as runtime, LoggedOut, LoginMade, log_in, log_out};
use perihelion_settings::config::Settings;
use perihelion_star::AGENT_PREFIX;

#[derive(Debug, clap::Args)]
#[command(after_help = "\
The address is printed in any case, so it can be copied. The browser must be able to reach this machine's
127.0.0.1: on another machine, forward the port that is shown (ssh -L PORT:127.0.0.1:PORT), which
oauth.callback_port in the server's table keeps the same.

Examples:
  perihelion agents login tracker
  perihelion agents login tracker --no-open --timeout-sec 900")]
pub(super) struct LoginArgs {
    /// The agent's name, with or without its prefix
    name: String,
    /// Open the address in the browser, also where this is no terminal
    #[arg(long, conflicts_with = "no_open")]
    open: bool,
    /// Only print the address
    #[arg(long)]
    no_open: bool,
    /// Seconds to wait for the browser to come back
    #[arg(long, default_value_t = 300, value_name = "SECONDS", value_parser = seconds())]
    timeout_sec: u64,
}

fn seconds() -> clap::builder::RangedU64ValueParser {
    clap::value_parser!(u64).range(1..=86_400)
}

#[derive(Debug, clap::Args)]
pub(super) struct LogoutArgs {
    /// The agent's name, with or without its prefix
    name: String,
}

/// Shows the address, waits for the person, and says what the login gave.
pub(super) async fn login(
    settings: &Settings,
    args: &LoginArgs,
    json: bool,
) -> Result<Exit, Error> {
    let name = short(&args.name);
    let begun = log_in(settings, &environment, name).await?;
    let address = begun.address().to_owned();
    output::note(&format!(
        "to log in to {name}, visit this address with a browser on this machine:"
    ));
    output::note(&address);
    let wanted = args.open || (!args.no_open && std::io::stderr().is_terminal());
    if wanted && let Err(why) = browser::open(&address) {
        output::note(&format!("the browser was not opened: {why}"));
    }
    output::note(&format!(
        "waiting for the browser to come back, for {} s at most",
        args.timeout_sec
    ));
    let LoginMade { login, server } = begun.finish(Duration::from_secs(args.timeout_sec)).await?;
    let tools = server.as_ref().map(|info| info.tools.len()).ok();
    if json {
        output::json(&json!({
            "server": login.server, "issuer": login.issuer, "scopes": login.scopes,
            "renewable": login.is_renewable, "tools": tools,
        }))?;
    } else {
        output::text(&login_line(&login.server, &login, tools))?;
    }
    if !using(settings).is_empty() {
        output::note(
            "running processes take it up at the next call, or at: perihelion agents reload",
        );
    }
    server.map_err(runtime::Error::Server)?;
    Ok(Exit::Done)
}

fn login_line(server: &str, login: &runtime::LoggedIn, tools: Option<usize>) -> String {
    let mut text = format!("logged in to {server}");
    if let Some(issuer) = &login.issuer {
        text.push_str(&format!(" at {}", output::one_line(issuer)));
    }
    if !login.scopes.is_empty() {
        text.push_str(&format!("; scopes: {}", output::brief(&login.scopes.join(" "), 200)));
    }
    if let Some(tools) = tools {
        text.push_str(&format!("; tools: {tools}"));
    }
    if !login.is_renewable {
        text.push_str("; it cannot be renewed, so it ends with its token");
    }
    text
}

/// Forgets a login and says whether its tokens are void.
pub(super) async fn logout(
    settings: &Settings,
    args: &LogoutArgs,
    json: bool,
) -> Result<Exit, Error> {
    let name = short(&args.name);
    let done = log_out(settings, &environment, name).await?;
    let (was, revoked, why) = match &done {
        LoggedOut::WasNot => (false, false, "there was no login".to_owned()),
        LoggedOut::Revoked => (true, true, "its tokens are void".to_owned()),
        LoggedOut::Forgotten => (
            true,
            false,
            "its authorization server revokes no tokens; they end by themselves".to_owned(),
        ),
        LoggedOut::NotRevoked(why) => (
            true,
            false,
            format!("its tokens may be valid until they end: {}", output::one_line(why)),
        ),
    };
    if json {
        output::json(
            &json!({ "server": name, "was_logged_in": was, "revoked": revoked, "detail": why }),
        )?;
    } else {
        output::text(&format!(
            "{}: {why}",
            if was { format!("logged out of {name}") } else { name.to_owned() }
        ))?;
    }
    Ok(Exit::Done)
}

fn short(name: &str) -> &str {
    let name = name.trim();
    name.strip_prefix(AGENT_PREFIX).unwrap_or(name)
}
