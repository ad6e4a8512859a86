//! `perihelion agents`: what the MCP servers give, how they stand, and what is wrong with those that give nothing.

mod approve;
mod import;
mod login;
mod reload;
mod show;
mod status;

use super::{Error, Exit, Signals, environment, looking, output};
use perihelion_runtime::{Agents, review, servers_schema};
use perihelion_settings::config::Settings;

pub(super) use reload::words;

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Servers whose tools are known from an earlier time are not started; --refresh starts all of them.

Examples:
  perihelion agents
  perihelion agents show files
  perihelion agents approve files --dry-run
  perihelion agents login tracker
  perihelion agents list --refresh --json
  perihelion agents reload
  perihelion agents import .mcp.json --write")]
pub struct Args {
    #[command(subcommand)]
    command: Option<Command>,
    /// Print JSON
    #[arg(long, global = true)]
    json: bool,
    /// Start every server and ask for its tools, whatever is known of them
    #[arg(long)]
    refresh: bool,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    /// List the agents and how their servers stand, and the servers that failed with the reasons.
    List {
        /// Start every server and ask for its tools, whatever is known of them
        #[arg(long)]
        refresh: bool,
    },
    /// Show one agent: its server, its tools, and what was left out and why.
    Show {
        /// The agent's name, with or without its prefix
        name: String,
    },
    /// Show how a server differs from what was pinned of it, and accept it as it is now.
    ///
    /// A server whose name, version, instructions or tools changed is in quarantine until then.
    Approve(approve::Args),
    /// Log in to a server over HTTP that wants it, with a browser.
    Login(login::LoginArgs),
    /// Forget a login, and have its tokens revoked where the server's authorization server does that.
    Logout(login::LogoutArgs),
    /// Have the running processes of this machine read the servers file again and ask every server for its tools.
    Reload,
    /// Turn the servers of Claude, VS Code or Codex into tables for the servers file; secrets are not copied.
    Import(import::Args),
    /// Print the JSON Schema of the servers file, for editors.
    Schema,
}

pub(super) async fn run(settings: Settings, args: Args) -> Result<Exit, Error> {
    let signals = Signals::listen()?;
    let command = args.command.unwrap_or(Command::List { refresh: args.refresh });
    let refresh = match &command {
        Command::Schema => {
            output::bytes(schema()?.as_bytes())?;
            return Ok(Exit::Done);
        }
        Command::Approve(approved) => {
            let found = tokio::select! {
                biased;
                () = signals.stopped() => return Ok(Exit::Aborted),
                found = review(&settings, &environment, approved.server()) => found?,
            };
            approve::run(found, approved, args.json)?;
            return Ok(Exit::Done);
        }
        Command::Import(args) => return import::run(&settings, args),
        Command::Login(wanted) => {
            return tokio::select! {
                biased;
                () = signals.stopped() => Ok(Exit::Aborted),
                done = login::login(&settings, wanted, args.json) => done,
            };
        }
        Command::Logout(wanted) => {
            return tokio::select! {
                biased;
                () = signals.stopped() => Ok(Exit::Aborted),
                done = login::logout(&settings, wanted, args.json) => done,
            };
        }
        Command::Reload => {
            return tokio::select! {
                biased;
                () = signals.stopped() => Ok(Exit::Aborted),
                reloaded = reload::run(&settings, args.json) => reloaded,
            };
        }
        Command::List { refresh } => *refresh || args.refresh,
        Command::Show { .. } => args.refresh,
    };
    let survey = looking::shown(false, async |looks| {
        Agents::survey(&settings, &environment, refresh, looks).await
    });
    let found = tokio::select! {
        biased;
        // Dropping the scan ends the servers' processes.
        () = signals.stopped() => return Ok(Exit::Aborted),
        found = survey => found?,
    };
    match command {
        Command::Show { name } => show::run(&found, &name, args.json)?,
        _ => status::list(&found, &settings, args.json)?,
    }
    Ok(Exit::Done)
}

/// Returns the JSON Schema of the servers file as the text that is published.
pub fn schema() -> Result<String, Error> {
    let text = serde_json::to_string_pretty(&servers_schema());
    Ok(format!("{}\n", text.map_err(|error| Error::Output(error.into()))?))
}
