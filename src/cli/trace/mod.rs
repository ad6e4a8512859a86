//! `perihelion trace`: runs as trees, read from the database; no backend is needed.
//!
//! [`tree`] draws one and [`panels`] the analyses behind an analyst's answer, [`follow`] prints it during the run,
//! [`diff`] compares two, [`open_page`] makes a page of it, [`export`] sends old ones to a collector, and lets other
//! viewers read them.

mod diff;
mod export;
mod follow;
mod panels;
mod tree;
mod words;

use std::path::PathBuf;

use self::tree::{Detail, render};
use super::system::open_in_browser;
use super::{Error, Exit, Result, files, opening, output};
use perihelion_runtime::{Threads, Trace};
use perihelion_settings::config::Settings;

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  perihelion trace weekly-report
  perihelion trace weekly-report --run 2 --all
  perihelion trace weekly-report --follow
  perihelion trace weekly-report --open
  perihelion trace weekly-report --json | jq '.spans[] | select(.status.code == \"error\")'
  perihelion trace diff weekly-report weekly-report --run 1 --run 2
  perihelion trace export weekly-report --to otlp --endpoint http://localhost:4318
  perihelion trace serve

A trace contains one run and the runs that continued it after a crash, failure or stop. A new question or an \
answer starts another trace. If the name of a thread is also a command, pass it with --thread.")]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub struct Args {
    #[command(subcommand)]
    command: Option<Command>,
    /// Thread, by UUID, part of a UUID, or name. Defaults to the newest thread
    #[arg(value_name = "THREAD")]
    thread: Option<String>,
    /// Thread with a name such as diff, export, serve or help
    #[arg(long = "thread", value_name = "THREAD", conflicts_with = "thread")]
    name: Option<String>,
    /// Show the trace of this run. Defaults to the newest run
    #[arg(long, value_name = "N")]
    run: Option<u32>,
    /// Show all spans of long traces
    #[arg(long, conflicts_with_all = ["json", "otlp", "follow", "open", "out"])]
    all: bool,
    /// Stream the run until it ends, in whichever process it runs
    #[arg(long, conflicts_with_all = ["otlp", "open", "out"])]
    follow: bool,
    /// Print the spans as one JSON object, or with --follow one finished span per line
    #[arg(long, conflicts_with_all = ["otlp", "open", "out"])]
    json: bool,
    /// Print the spans as an OTLP/JSON request for a collector
    #[arg(long, conflicts_with_all = ["open", "out"])]
    otlp: bool,
    /// Write a page with waterfall and graph to a temporary file, and open it in the browser
    #[arg(long)]
    open: bool,
    /// Write the page to this file
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    /// Compare the traces of two runs or threads: decisions, reviews, texts, time and cost.
    Diff(diff::Args),
    /// Send the traces of threads to a collector, including old traces.
    Export(export::ExportArgs),
    /// Serve the traces in the database to the Jaeger UI and other Jaeger clients.
    Serve(export::ServeArgs),
}

pub(super) async fn run(settings: Settings, mut args: Args) -> Result<Exit> {
    match args.command.take() {
        Some(Command::Diff(args)) => diff::run(settings, args).await,
        Some(Command::Export(args)) => export::export(settings, args).await,
        Some(Command::Serve(args)) => export::serve(settings, args).await,
        None => {
            let show = async |threads: &Threads| show(threads, &settings, args).await;
            opening::reading(&settings, show).await
        }
    }
}

async fn show(threads: &Threads, settings: &Settings, args: Args) -> Result<Exit> {
    let name = match args.thread.or(args.name) {
        Some(name) => name,
        None => threads.find(None).await?.to_string(),
    };
    if args.follow {
        return follow::run(threads, settings, &name, args.run, args.json).await;
    }
    let trace = read(threads, settings, &name, args.run).await?;
    if args.otlp {
        let json = trace.to_otlp_json(settings).map_err(|error| Error::Output(error.into()))?;
        output::text(&json)?;
    } else if args.open || args.out.is_some() {
        open_page(&trace, args.out, args.open)?;
    } else if args.json {
        output::json(&trace)?;
    } else {
        let tree = render(&trace, if args.all { Detail::All } else { Detail::Folded });
        output::text(&format!("{tree}{}", panels::render(&trace.analyses)))?;
    }
    Ok(Exit::Done)
}

/// Prints the trace of a thread's newest run.
///
/// # Errors
/// [`Error`] if the thread cannot be read.
pub(super) async fn print(settings: &Settings, thread: &str) -> Result<()> {
    let read = async |threads: &Threads| read(threads, settings, thread, None).await;
    output::text(&render(&opening::reading(settings, read).await?, Detail::Folded))
}

fn head_line(trace: &Trace) -> String {
    let thread = trace.head.thread_id;
    let title = trace.head.title.as_ref().map(|title| format!(" ({})", output::brief(title, 80)));
    let of = if trace.head.runs > 1 { format!(" of {}", trace.head.runs) } else { String::new() };
    format!(
        "thread {thread}{} run {}{of} trace {}",
        title.unwrap_or_default(),
        trace.head.run,
        trace.head.trace_id
    )
}

async fn read(
    threads: &Threads,
    settings: &Settings,
    name: &str,
    run: Option<u32>,
) -> Result<Trace> {
    let thread = threads.find(Some(name)).await?;
    let trace = threads.traces(settings).read(thread, run).await;
    trace.map_err(|error| Error::from(error).about(name))
}

/// Writes the page and prints its path; opens it on request if there is a display.
fn open_page(trace: &Trace, out: Option<PathBuf>, open: bool) -> Result<()> {
    let page = trace.to_page().map_err(|error| Error::Output(error.into()))?;
    let path = out.unwrap_or_else(|| {
        std::env::temp_dir().join(format!("perihelion-trace-{}.html", trace.head.trace_id))
    });
    files::replace(&path, page.as_bytes())?;
    output::text(&path.display().to_string())?;
    if open && let Err(why) = open_in_browser(&path) {
        output::note(&format!("cannot open the page: {why}"));
    }
    Ok(())
}
