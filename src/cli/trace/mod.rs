//! `perihelion trace`: a run as a tree, read from the database; no backend is needed.

mod render;

use self::render::{Detail, render};
use super::{Error, Exit, output};
use crate::config::Settings;
use crate::ids::ThreadId;
use crate::runtime::{self, open_store};

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

pub(super) async fn run(settings: Settings, args: Args) -> Result<Exit, Error> {
    let (thread, _) = ThreadId::from_name(&args.thread);
    let store = open_store(&settings).await?;
    let read = runtime::trace(store.as_ref(), &settings, thread, args.run).await;
    store.close().await;
    let trace = read.map_err(|error| Error::from(error).about(&args.thread))?;
    if args.otlp {
        let json = trace.to_otlp_json(&settings).map_err(|error| Error::Output(error.into()))?;
        output::text(&json)?;
    } else if args.json {
        output::json(&trace)?;
    } else {
        output::text(&render(&trace, if args.all { Detail::All } else { Detail::Folded }))?;
    }
    Ok(Exit::Done)
}
