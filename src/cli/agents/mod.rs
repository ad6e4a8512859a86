//! `perihelion agents`: lists, shows, approves and imports MCP servers and their agents.

mod login;
mod servers;
mod show;

use super::{Exit, Result, Signals, environment, opening, output};
use perihelion_runtime::{review, servers_schema};
use perihelion_settings::config::Settings;

pub(super) use servers::words;

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Servers with cached tool definitions are not started. Use --refresh to start all of them.

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
    /// Start every server and list its tools again
    #[arg(long)]
    refresh: bool,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    /// List the agents with the status of their servers, and the servers that failed.
    List {
        /// Start every server and list its tools again
        #[arg(long)]
        refresh: bool,
    },
    /// Show an agent with its server, tools and rejected tools.
    Show {
        /// Agent name, with or without its prefix
        name: String,
    },
    /// Show how a server differs from its pin, and accept the changes.
    ///
    /// A server with a changed name, version, instructions or tools stays in quarantine until you approve it.
    Approve(servers::ApproveArgs),
    /// Log in to an HTTP server with a browser.
    Login(login::LoginArgs),
    /// Delete a login, and revoke its tokens if the authorization server supports it.
    Logout(login::LogoutArgs),
    /// Make running processes on this machine reload the servers file and list all tools again.
    Reload,
    /// Convert servers of Claude, VS Code or Codex to tables of the servers file. Secrets are not copied.
    Import(servers::ImportArgs),
    /// Print the JSON Schema of the servers file, for editors.
    Schema,
}

pub(super) async fn run(settings: Settings, args: Args) -> Result<Exit> {
    let signals = Signals::listen()?;
    let command = args.command.unwrap_or(Command::List { refresh: args.refresh });
    // A signal drops the work, which ends the servers' processes.
    signals.unless_stopped(perform(&settings, command, args.json, args.refresh)).await?
}

async fn perform(settings: &Settings, command: Command, json: bool, refresh: bool) -> Result<Exit> {
    match command {
        Command::Schema => output::bytes(schema()?.as_bytes())?,
        Command::Approve(args) => {
            let found = review(settings, &environment, args.server()).await?;
            servers::approve(found, &args, json)?;
        }
        Command::Import(args) => servers::import(settings, &args)?,
        Command::Login(args) => login::login(settings, &args, json).await?,
        Command::Logout(args) => login::logout(settings, &args, json).await?,
        Command::Reload => return servers::reload(settings, json).await,
        Command::List { refresh: again } => {
            show::list(&opening::survey(settings, again || refresh).await?, settings, json)?;
        }
        Command::Show { name } => {
            show::show(&opening::survey(settings, refresh).await?, &name, json)?;
        }
    }
    Ok(Exit::Done)
}

/// Returns the JSON Schema of the servers file as the text that is published.
pub fn schema() -> Result<String> {
    Ok(format!("{}\n", output::pretty(&servers_schema())?))
}
