//! `perihelion trace`: a run as a tree, read from the database; no backend is needed.

mod render;

pub use render::{Detail, render};

use crate::checkpoint::Store;
use crate::config::Settings;
use crate::ids::ThreadId;
use crate::runtime;

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  perihelion trace weekly-report
  perihelion trace weekly-report --run 2 --all
  perihelion trace weekly-report --json | jq '.spans[] | select(.status.code == \"error\")'
  perihelion trace weekly-report --otlp > trace.json

A trace holds one run and the runs that went on with it after a crash, a failure or a stop. A new question
and a resume after an answer begin a trace of their own.")]
pub struct Args {
    /// The thread: a UUID, or a name that stands for one
    #[arg(value_name = "THREAD")]
    thread: String,
    /// Show the trace that this run belongs to; by default the newest
    #[arg(long, value_name = "N")]
    run: Option<u32>,
    /// Fold nothing, however long it is
    #[arg(long, conflicts_with_all = ["json", "otlp"])]
    all: bool,
    /// Print the spans as one JSON object
    #[arg(long, conflicts_with = "otlp")]
    json: bool,
    /// Print the spans as an OTLP request in JSON, as it would be sent to a collector
    #[arg(long)]
    otlp: bool,
}

/// Reads a trace and returns what is to be written to standard output.
///
/// # Errors
/// [`runtime::Error`] when the thread or the run does not exist.
pub async fn run(
    store: &dyn Store,
    settings: &Settings,
    args: &Args,
) -> Result<String, runtime::Error> {
    let (thread, _) = ThreadId::from_name(&args.thread);
    let trace = runtime::trace(store, settings, thread, args.run).await?;
    let unwritable = |error: serde_json::Error| {
        runtime::Error::Store(crate::checkpoint::Error::Damaged(error.to_string()))
    };
    if args.otlp {
        return trace.to_otlp_json(settings).map_err(unwritable);
    }
    if args.json {
        return serde_json::to_string_pretty(&trace).map_err(unwritable);
    }
    Ok(render(&trace, if args.all { Detail::All } else { Detail::Folded }))
}
