//! `perihelion threads`: manages threads; needs only the database.

mod archive;
mod change;
mod list;
mod prune;
mod show;
mod transfer;

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

impl Command {
    /// Returns the thread's name in the command, if the command has one.
    fn thread(&self) -> Option<&str> {
        match self {
            Self::List(_) | Self::Import(_) | Self::Archive(_) => None,
            Self::Show(args) => args.thread.as_deref(),
            Self::History(args) => args.thread.as_deref(),
            Self::State(args) => args.thread.as_deref(),
            Self::Cancel(args) => args.thread.as_deref(),
            Self::Update(args) => Some(&args.thread),
            Self::Fork(args) => Some(&args.thread),
            Self::Export(args) => args.thread.as_deref(),
            Self::Delete(args) => Some(&args.thread),
            Self::Prune(args) => args.thread.as_deref(),
        }
    }
}

pub(super) async fn run(globals: &Globals, settings: Settings, args: Args) -> Result<Exit> {
    if let Some(Command::Prune(args)) = &args.command {
        args.check(&settings)?;
    }
    let threads = match &args.command {
        Some(Command::Import(_)) => Threads::open(&settings).await?,
        _ => Threads::open_to_read(&settings).await?,
    };
    let name = args.command.as_ref().and_then(Command::thread).map(str::to_owned);
    let done = perform(globals, &settings, &threads, args).await;
    let done = done.map_err(|error| match &name {
        Some(name) => error.about(name),
        None => error,
    });
    threads.close().await;
    done.map(|()| Exit::Done)
}

async fn perform(
    globals: &Globals,
    settings: &Settings,
    threads: &Threads,
    args: Args,
) -> Result<()> {
    match args.command.unwrap_or(Command::List(args.list)) {
        Command::List(args) => list::run(threads, &args).await,
        Command::Show(args) => show::show(threads, &args, &globals.invocation()).await,
        Command::History(args) => show::history(threads, &args).await,
        Command::State(args) => show::state(threads, settings, &args).await,
        Command::Fork(args) => change::fork(threads, settings, &args, &globals.invocation()).await,
        Command::Cancel(args) => {
            change::cancel(threads, settings, &args, &globals.invocation()).await
        }
        Command::Update(args) => change::update(threads, settings, &args).await,
        Command::Export(args) => transfer::export(threads, settings, &args).await,
        Command::Import(args) => transfer::import(threads, &args).await,
        Command::Delete(args) => change::delete(threads, &args).await,
        Command::Prune(args) => prune::run(threads, settings, &args).await,
        Command::Archive(args) => archive::run(threads, settings, &args).await,
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
