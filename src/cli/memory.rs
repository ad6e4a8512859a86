//! `perihelion memory`: lists, sets and deletes memories about a user.

use clap::builder::NonEmptyStringValueParser;
use serde_json::json;

use super::globals::TenantOptions;
use super::{Error, Exit, Result, output};
use perihelion_engine::clock;
use perihelion_runtime::{MemoryEntry, MemoryKind, Scope, UserMemory, open_memory, to_read};
use perihelion_settings::config::Settings;

/// Keys that are preferences unless the kind is given.
const PREFERENCES: [&str; 8] =
    ["tone", "detail", "language", "style", "format", "length", "units", "time_zone"];

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  perihelion memory --user ada
  perihelion memory set company Acme --user ada
  perihelion memory set tone \"brief, no greetings\" --user ada
  perihelion memory delete company --user ada")]
pub struct Args {
    #[command(subcommand)]
    command: Option<Command>,
    /// User, as passed to `run --user`
    #[arg(long, global = true, value_name = "NAME", value_parser = NonEmptyStringValueParser::new())]
    user: Option<String>,
    #[command(flatten)]
    options: TenantOptions,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    /// List memories.
    List {
        /// Include replaced values with their dates
        #[arg(long)]
        all: bool,
    },
    /// Store a value. An earlier value stays in the history.
    Set {
        key: String,
        value: String,
        /// Kind: fact or preference. By default, known keys such as `tone` are preferences
        #[arg(long, value_name = "KIND", value_parser = kind)]
        kind: Option<MemoryKind>,
    },
    /// Delete a key with all of its values.
    #[command(alias = "forget")]
    Delete { key: String },
}

fn kind(text: &str) -> Result<MemoryKind, &'static str> {
    MemoryKind::from_name(text).ok_or("expected fact or preference")
}

pub(super) async fn run(settings: Settings, args: Args) -> Result<Exit> {
    let user = args.user.as_deref().ok_or(Error::NoUser)?;
    let scope = Scope::new(&args.options.tenant, user).map_err(perihelion_runtime::Error::from)?;
    let command = args.command.unwrap_or(Command::List { all: false });
    let creates = matches!(command, Command::Set { .. });
    let settings = if creates { settings } else { to_read(settings)? };
    let memory = open_memory(&settings).await?;
    let done = perform(&memory, &scope, command, args.options.json).await;
    memory.index.database().close().await;
    done.map(Exit::from)
}

async fn perform(memory: &UserMemory, scope: &Scope, command: Command, json: bool) -> Result<()> {
    match command {
        Command::List { all } => {
            let entries = if all { memory.history(scope).await } else { memory.list(scope).await };
            let entries = entries?;
            let none = "no memories about this user";
            output::listed(json, &entries, none, || output::lines(&entries, line))
        }
        Command::Set { key, value, kind } => {
            let kind = kind.unwrap_or_else(|| suggested(&key));
            let entry = (kind, key.as_str(), value.as_str());
            memory.set(scope, entry, "command line", clock::now()).await?;
            let shown = json!({ "kind": kind.as_str(), "key": key, "value": value });
            output::done(json, &shown, &format!("set: {key}"))
        }
        Command::Delete { key } => {
            memory.forget(scope, &key, clock::now()).await?;
            let shown = json!({ "key": key, "deleted": true });
            output::done(json, &shown, &format!("deleted: {key}"))
        }
    }
}

fn suggested(key: &str) -> MemoryKind {
    let key = key.to_lowercase().replace([' ', '-'], "_");
    if PREFERENCES.contains(&key.as_str()) { MemoryKind::Preference } else { MemoryKind::Fact }
}

fn line(entry: &MemoryEntry) -> String {
    let until = entry.until.map(|until| format!(" to {}", until.format("%Y-%m-%d")));
    let until = until.unwrap_or_default();
    let since = entry.since.format("%Y-%m-%d");
    format!("{}  {} = {}  (since {since}{until})", entry.kind.as_str(), entry.key, entry.value)
}
