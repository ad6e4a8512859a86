//! `perihelion demo`: the whole star on bundled servers, real data and a scripted model.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use nix::sys::signal::{Signal, raise};

use super::execute;
use super::show::{Observer, Show};
use super::{Error, Exit, Globals, Signals, output};
use perihelion_engine::ids::ThreadId;
use perihelion_runtime::demo::{self, Demo};
use perihelion_runtime::{Job, Runtime};
use perihelion_settings::config::Settings;
use perihelion_star::{AgentEvent, ReflectionVerdict, Request};

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Needs no key and no network: the model is a script served over HTTP on loopback, everything else is
the real thing. The data are the IANA time zone database (public domain): tables in SQLite, and its
own documents. Threads are kept in the configured database.

Examples:
  perihelion demo
  perihelion demo --analyst
  perihelion demo --hands        an analyst counts, a program computes, an API is asked
  perihelion demo --crash        then: perihelion resume THREAD
  perihelion demo --documents    two agents with documents, and an analyst that waits for both")]
pub struct Args {
    /// Ask the analyst three questions about the data, with a table each and a chart
    #[arg(long, conflicts_with = "crash")]
    analyst: bool,
    /// Kill this process with SIGKILL in the middle of the run, to be resumed afterwards
    #[arg(long)]
    crash: bool,
    /// Ask documents: two agents find, rank and cite pages, and an analyst counts on what both found
    #[arg(long, conflicts_with = "analyst")]
    documents: bool,
    /// Use hands: an analyst counts, a Python program computes on its table, an HTTP API is asked about the outcome
    #[arg(long, conflicts_with_all = ["analyst", "documents", "crash"])]
    hands: bool,
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
    let (demo, questions) = if args.documents {
        (Demo::Documents, &[demo::DOCUMENTS_QUESTION][..])
    } else if args.hands {
        (Demo::Hands, &[demo::HANDS_QUESTION][..])
    } else if args.analyst {
        (Demo::Star, demo::ANALYST_QUESTIONS.as_slice())
    } else {
        (Demo::Star, &[demo::QUESTION][..])
    };
    let show = Show {
        every_line: true,
        json: args.json,
        found: args.analyst && !args.quiet,
        quiet: args.quiet,
        observer: args
            .crash
            .then(|| crash(format!("{invocation} resume {thread}"), args.documents)),
        ..Show::new(invocation)
    };
    if !args.quiet {
        output::note(
            "scripted model on loopback, real servers, the IANA time zone database (public domain)",
        );
    }
    let tell: fn(&str) = if args.quiet { |_| {} } else { output::note };
    let options = demo::Options { tell, ..demo::Options::of(demo) };
    let runtime = Runtime::builder(settings).for_demo(options).open().await?;
    let mut ended = Ok(Exit::Done);
    for question in questions {
        if !args.quiet {
            output::note(&format!("question: {question}"));
        }
        let request = Request { question: (*question).to_owned(), ..Request::default() };
        let title = Some(demo.title().to_owned());
        let tenant = demo::TENANT.to_owned();
        let job = Job::Ask { thread, title, tenant, request };
        ended = execute::drive(&runtime, job, &show, &signals).await;
        if !matches!(ended, Ok(Exit::Done)) {
            break;
        }
    }
    execute::finish(runtime, ended, &signals).await
}

/// Kills the process when an output was judged: calls have been made, and the stage is not committed.
///
/// The demo of documents is killed at the analyst's, when nothing else is under way; the other one at the first rejection.
fn crash(resume: String, documents: bool) -> Observer {
    let done = AtomicBool::new(false);
    Arc::new(move |event| {
        let event = event.custom().as_ref().and_then(AgentEvent::read);
        let Some(AgentEvent::Reflection { agent, status, .. }) = event else { return };
        let wanted = if documents {
            agent == demo::DOCUMENTS_LAST && status == ReflectionVerdict::Approved
        } else {
            status == ReflectionVerdict::Rejected
        };
        if wanted && !done.swap(true, Ordering::SeqCst) {
            output::note(&format!(
                "killing this process now, in the middle of a step; continue with: {resume}"
            ));
            // The one process that this may end is this one.
            let _ = raise(Signal::SIGKILL);
        }
    })
}
