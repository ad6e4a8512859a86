//! `perihelion agents login` and `logout`: a person's login to an MCP server over HTTP.

use std::io::IsTerminal as _;
use std::time::Duration;

use serde_json::json;

use super::output;
use super::show::{short_name, using};
use crate::cli::system::open_in_browser;
use crate::cli::{Result, environment};
use perihelion_runtime::{self as runtime, LoggedOut, LoginMade, log_in, log_out};
use perihelion_settings::config::Settings;

#[derive(Debug, clap::Args)]
#[command(after_help = "\
The login address is always printed. The browser must be able to reach 127.0.0.1 on this machine. If the \
browser runs on another machine, forward the printed port (ssh -L PORT:127.0.0.1:PORT). To get the same \
port each time, set oauth.callback_port in the server's table.

Examples:
  perihelion agents login tracker
  perihelion agents login tracker --no-open --timeout-sec 900")]
pub(super) struct LoginArgs {
    /// Agent name, with or without its prefix
    name: String,
    /// Open the address in the browser even without a terminal
    #[arg(long, conflicts_with = "no_open")]
    open: bool,
    /// Only print the address
    #[arg(long)]
    no_open: bool,
    /// Seconds to wait for the login to finish
    #[arg(long, default_value_t = 300, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..=86_400))]
    timeout_sec: u64,
}

#[derive(Debug, clap::Args)]
pub(super) struct LogoutArgs {
    /// Agent name, with or without its prefix
    name: String,
}

pub(super) async fn login(settings: &Settings, args: &LoginArgs, json: bool) -> Result<()> {
    let name = short_name(&args.name);
    let begun = log_in(settings, &environment, name).await?;
    let address = begun.address().to_owned();
    output::note(&format!("to log in to {name}, open this address in a browser on this machine:"));
    output::note(&address);
    let wanted = args.open || (!args.no_open && std::io::stderr().is_terminal());
    if wanted && let Err(why) = open_in_browser(&address) {
        output::note(&format!("cannot open the browser: {why}"));
    }
    output::note(&format!("waiting up to {} s for the login to finish", args.timeout_sec));
    let LoginMade { login, server } = begun.finish(Duration::from_secs(args.timeout_sec)).await?;
    let tools = server.as_ref().map(|info| info.tools.len()).ok();
    let shown = json!({
        "server": login.server, "issuer": login.issuer, "scopes": login.scopes,
        "renewable": login.is_renewable, "tools": tools,
    });
    output::either(json, &shown, || login_line(&login.server, &login, tools))?;
    if !using(settings).is_empty() {
        output::note(
            "running processes use the login from their next call, or after: perihelion agents reload",
        );
    }
    server.map_err(runtime::Error::Server)?;
    Ok(())
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
        text.push_str("; the login expires with its token and cannot be renewed");
    }
    text
}

/// Deletes a login and reports whether its tokens were revoked.
pub(super) async fn logout(settings: &Settings, args: &LogoutArgs, json: bool) -> Result<()> {
    let name = short_name(&args.name);
    let done = log_out(settings, &environment, name).await?;
    let was = !matches!(done, LoggedOut::WasNot);
    let revoked = matches!(done, LoggedOut::Revoked);
    let why = match &done {
        LoggedOut::WasNot => "not logged in".to_owned(),
        LoggedOut::Revoked => "its tokens were revoked".to_owned(),
        LoggedOut::Forgotten => {
            "its authorization server cannot revoke tokens; they remain valid until they expire"
                .to_owned()
        }
        LoggedOut::NotRevoked(why) => format!(
            "its tokens were not revoked and may remain valid until they expire: {}",
            output::one_line(why)
        ),
    };
    let shown = json!({ "server": name, "was_logged_in": was, "revoked": revoked, "detail": why });
    let out = if was { "logged out of " } else { "" };
    output::either(json, &shown, || format!("{out}{name}: {why}"))
}
