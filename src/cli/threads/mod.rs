//! `perihelion threads`: manages threads; needs only the database.

mod archive;
mod change;
mod list;
mod prune;
mod show;
mod transfer;

use std::sync::OnceLock;

use super::{Error, Exit, Globals, Result};
use crate::cli::output::one_line;
use perihelion_engine::checkpoint::ThreadInfo;
use perihelion_engine::ids::ThreadId;
use perihelion_runtime::Threads;
use perihelion_settings::config::Settings;

#[derive(Debug, clap::Args)]
#[command(after_help = "\
THREAD is a UUID, a name given with --thread, or an unambiguous beginning or end of a UUID. For example, use \
the short ID that `list` prints. `show`, `history`, `state` and `cancel` default to the newest thread.

Examples:
  perihelion threads list --status interrupted
  perihelion threads show weekly-report
  perihelion threads history weekly-report
  perihelion threads state weekly-report --at 3 --json
  perihelion threads fork weekly-report --at 3 --thread what-if
  perihelion threads export weekly-report --output report.jsonl
  perihelion threads prune --older-than 30d")]
#[command(args_conflicts_with_subcommands = true)]
pub struct Args {
    #[command(subcommand)]
    command: Option<Command>,
    #[command(flatten)]
    list: list::Args,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    /// List threads, most recently updated first (the default).
    List(list::Args),
    /// Show the runs and open questions of a thread, and how to answer them.
    Show(show::ShowArgs),
    /// List the steps of a thread, newest first.
    History(show::HistoryArgs),
    /// Show the state of a thread at its newest step or at any other step.
    State(show::StateArgs),
    /// Create a thread that shares the history of another thread up to a step.
    Fork(change::ForkArgs),
    /// Cancel the current run of a thread in any process. Completed steps are preserved.
    Cancel(change::CancelArgs),
    /// Change the state of a thread. The change is recorded as a step.
    Update(change::UpdateArgs),
    /// Export a thread to a file or to standard output.
    Export(transfer::ExportArgs),
    /// Import a thread from a file written by `export`. It keeps its ID. Use - for standard input.
    Import(transfer::ImportArgs),
    /// Delete a thread with all of its data. Forks keep the history they share.
    Delete(change::DeleteArgs),
    /// Delete old threads and shorten long threads, by options or by the [retention] settings.
    Prune(prune::Args),
    /// Move threads at rest to files, by age or by the [archive] settings.
    Archive(archive::Args),
}

pub(super) async fn run(globals: &Globals, settings: Settings, args: Args) -> Result<Exit> {
    if let Some(Command::Prune(args)) = &args.command {
        args.check(&settings)?;
    }
    let threads = match &args.command {
        Some(Command::Import(_)) => Threads::open(&settings).await?,
        _ => Threads::open_to_read(&settings).await?,
    };
    let Args { command, list } = args;
    let invocation = globals.invocation();
    let name = OnceLock::new();
    let context = Context { threads: &threads, settings: &settings, invocation, name };
    let done = perform(&context, command.unwrap_or(Command::List(list))).await;
    let done = done.map_err(|error| match context.name.get() {
        Some(name) => error.about(name),
        None => error,
    });
    threads.close().await;
    done.map(Exit::from)
}

/// What the commands work with.
struct Context<'a> {
    threads: &'a Threads,
    settings: &'a Settings,
    /// The beginning of commands to be typed next.
    invocation: String,
    /// The thread's name in the command, for errors.
    name: OnceLock<String>,
}

impl Context<'_> {
    /// Finds a thread, or the newest one. Errors of the command name the thread as the caller did.
    async fn find(&self, name: Option<&str>) -> Result<ThreadId> {
        if let Some(name) = name {
            self.name.get_or_init(|| name.to_owned());
        }
        Ok(self.threads.find(name).await?)
    }
}

async fn perform(context: &Context<'_>, command: Command) -> Result<()> {
    match command {
        Command::List(args) => list::run(context, &args).await,
        Command::Show(args) => show::show(context, &args).await,
        Command::History(args) => show::history(context, &args).await,
        Command::State(args) => show::state(context, &args).await,
        Command::Fork(args) => change::fork(context, &args).await,
        Command::Cancel(args) => change::cancel(context, &args).await,
        Command::Update(args) => change::update(context, &args).await,
        Command::Export(args) => transfer::export(context, &args).await,
        Command::Import(args) => transfer::import(context, &args).await,
        Command::Delete(args) => change::delete(context, &args).await,
        Command::Prune(args) => prune::run(context, &args).await,
        Command::Archive(args) => archive::run(context, &args).await,
    }
}

fn title(info: &ThreadInfo) -> String {
    info.shown_title().map_or_else(|| "-".to_owned(), |title| one_line(&title))
}

async fn next_after(threads: &Threads, thread: ThreadId, step: u64) -> Result<Vec<String>> {
    let row = threads.history(thread, Some(step.saturating_add(1)), 1).await?.pop();
    Ok(row.map(|row| row.next).unwrap_or_default())
}

fn next_nodes(next: &[String]) -> String {
    if next.is_empty() { "the end".to_owned() } else { next.join(", ") }
}

fn moment(time: chrono::DateTime<chrono::Utc>) -> String {
    time.format("%Y-%m-%d %H:%M:%SZ").to_string()
}
