//! `perihelion memory`: what is known of a user, for the user to see, correct and forget.

use clap::builder::NonEmptyStringValueParser;

use super::{Error, Exit, output};
use perihelion_engine::clock;
use perihelion_runtime::{
    LOCAL_TENANT, MemoryEntry, MemoryError, MemoryKind, Scope, UserMemory, open_memory,
};
use perihelion_settings::config::Settings;

/// Keys that say how to answer, where the kind is not given.
const PREFERENCES: [&str; 8] =
    ["tone", "detail", "language", "style", "format", "length", "units", "time_zone"];

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  perihelion memory --user ada
  perihelion memory set company Acme --user ada
  perihelion memory set tone \"brief, no greetings\" --user ada
  perihelion memory forget company --user ada")]
pub struct Args {
    #[command(subcommand)]
    command: Option<Command>,
    /// The user, as named by `run --user`
    #[arg(long, global = true, value_name = "NAME", value_parser = NonEmptyStringValueParser::new())]
    user: Option<String>,
    /// Whose users are meant; the command line's own by default
    #[arg(long, global = true, value_name = "TENANT", default_value = LOCAL_TENANT)]
    tenant: String,
    /// Print JSON
    #[arg(long, global = true)]
    json: bool,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    /// List what is known.
    List {
        /// Also what was so before, with its dates
        #[arg(long)]
        all: bool,
    },
    /// Remember a value, in place of an earlier one, which is kept with its dates.
    Set {
        key: String,
        value: String,
        /// fact or preference; by default what the key suggests
        #[arg(long, value_name = "KIND", value_parser = kind)]
        kind: Option<MemoryKind>,
    },
    /// Forget a key with every value that it ever had.
    Forget { key: String },
}

fn kind(text: &str) -> Result<MemoryKind, String> {
    match text {
        "fact" => Ok(MemoryKind::Fact),
        "preference" => Ok(MemoryKind::Preference),
        _ => Err("expected fact or preference".to_owned()),
    }
}

pub(super) async fn run(settings: Settings, args: Args) -> Result<Exit, Error> {
    let user = args.user.as_deref().ok_or(Error::NoUser)?;
    let scope = Scope::new(&args.tenant, user).map_err(perihelion_runtime::Error::from)?;
    let memory = open_memory(&settings).await?;
    let command = args.command.unwrap_or(Command::List { all: false });
    let done = perform(&memory, &scope, command, args.json).await;
    memory.index().database().close().await;
    done.map(|()| Exit::Done)
}

async fn perform(
    memory: &UserMemory,
    scope: &Scope,
    command: Command,
    json: bool,
) -> Result<(), Error> {
    let refused = |error: MemoryError| Error::from(perihelion_runtime::Error::from(error));
    match command {
        Command::List { all } => {
            let entries = if all { memory.history(scope).await } else { memory.list(scope).await };
            show(&entries.map_err(refused)?, json)
        }
        Command::Set { key, value, kind } => {
            let kind = kind.unwrap_or_else(|| suggested(&key));
            let entry = (kind, key.as_str(), value.as_str());
            memory.set(scope, entry, "command line", clock::now()).await.map_err(refused)
        }
        Command::Forget { key } => memory.forget(scope, &key).await.map_err(refused),
    }
}

fn suggested(key: &str) -> MemoryKind {
    let key = key.to_lowercase().replace([' ', '-'], "_");
    if PREFERENCES.contains(&key.as_str()) { MemoryKind::Preference } else { MemoryKind::Fact }
}

fn show(entries: &[MemoryEntry], json: bool) -> Result<(), Error> {
    if json {
        return output::json(&entries);
    }
    if entries.is_empty() {
        output::note("nothing is known of this user");
        return Ok(());
    }
    let line = |entry: &MemoryEntry| {
        let until = entry
            .until
            .map_or_else(String::new, |until| format!(" to {}", until.format("%Y-%m-%d")));
        let since = entry.since.format("%Y-%m-%d");
        format!("{}  {} = {}  (since {since}{until})", entry.kind.as_str(), entry.key, entry.value)
    };
    output::text(&entries.iter().map(line).collect::<Vec<_>>().join("\n"))
}
