//! `perihelion demo`: the whole star on bundled servers, real data and a scripted model.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use nix::sys::signal::{Signal, raise};

use super::execute::{self, Job, Observer, Show};
use super::{Error, Exit, Globals, Signals, output};
use crate::config::Settings;
use crate::graph::{RunEvent, StreamMode};
use crate::ids::ThreadId;
use crate::runtime::{self, demo};
use crate::swarm::Request;

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Needs no key and no network: the model is a script served over HTTP on loopback, everything else is
the real thing. The data are the IANA time zone database (public domain): tables in SQLite, and its
own documents. Threads are kept in the configured database.

Examples:
  perihelion demo
  perihelion demo --crash        then: perihelion resume THREAD")]
pub struct Args {
    /// Kill this process with SIGKILL in the middle of the run, to be resumed afterwards
    #[arg(long)]
    crash: bool,
    /// Print one JSON object in place of the answer
    #[arg(long)]
    json: bool,
    /// Show no progress
    #[arg(long, short)]
    quiet: bool,
}

pub(super) async fn run(globals: &Globals, settings: Settings, args: Args) -> Result<Exit, Error> {
    let signals = Signals::listen()?;
    let thread = ThreadId::new();
    let invocation = globals.invocation();
    let show = Show {
        json: args.json,
        events: false,
        quiet: args.quiet,
        observer: args.crash.then(|| crash_at_rejection(format!("{invocation} resume {thread}"))),
        invocation,
    };
    if !args.quiet {
        output::note(
            "scripted model on loopback, real servers, the IANA time zone database (public domain)",
        );
        output::note(&format!("question: {}", demo::QUESTION));
    }
    let store = runtime::open_store(&settings).await?;
    let runtime = demo::open(settings, store).await?;
    let request = Request { question: demo::QUESTION.to_owned(), ..Request::default() };
    let job = Job::Ask { thread, title: Some("demo".to_owned()), request };
    let ended = execute::drive(&runtime, job, &show, &signals).await;
    execute::finish(runtime, ended, &signals).await
}

/// Kills the process when the first output was rejected: calls have been made, nothing is committed.
fn crash_at_rejection(resume: String) -> Observer {
    let done = AtomicBool::new(false);
    Arc::new(move |event| {
        let RunEvent::Published { mode: StreamMode::Custom, payload, .. } = event else { return };
        if payload["status"] == "REJECTED" && !done.swap(true, Ordering::SeqCst) {
            output::note(&format!(
                "killing this process now, in the middle of a step; go on with: {resume}"
            ));
            // The one process that this may end is this one.
            let _ = raise(Signal::SIGKILL);
        }
    })
}
