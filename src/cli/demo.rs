//! `perihelion demo`: the whole star on bundled servers, real data and a scripted model.

use std::io::IsTerminal as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use clap::Parser as _;
use nix::sys::signal::{Signal, raise};
use tokio::process::Command;

use super::execute;
use super::show::{Observer, Show};
use super::{Error, Exit, Globals, Result, Signals, graphs, output, serve, trace};
use crate::demo::{self, Demo};
use perihelion_agents::kinds;
use perihelion_engine::ids::ThreadId;
use perihelion_runtime::{DEMO_TENANT, Job, Runtime};
use perihelion_servers::{Bundled, Finding};
use perihelion_settings::config::Settings;
use perihelion_star::{AgentEvent, ReflectionVerdict, Request};

#[derive(Debug, clap::Args)]
#[command(after_help = "\
The demo needs no API key and no network access. The servers, database and documents are real. The model is \
a script on a loopback HTTP server that only answers the demo's own questions. The data comes from the IANA \
time zone database (public domain). Threads are stored in the configured database.

Examples:
  perihelion demo
  perihelion demo --analyst
  perihelion demo --hands        Query a database, run a Python program, call an HTTP API
  perihelion demo --crash        Then run: perihelion resume THREAD
  perihelion demo --documents    Two agents cite documents, then an analyst counts
  perihelion demo --python       A LangGraph agent, killed twice. Needs perihelion-agents")]
pub struct Args {
    /// Ask an analyst three questions about the data, with tables and a chart
    #[arg(long, conflicts_with = "crash")]
    analyst: bool,
    /// Kill this process with SIGKILL during the run, so that you can resume it
    #[arg(long)]
    crash: bool,
    /// Let two agents find and cite pages of documents, and an analyst count what they found
    #[arg(long, conflicts_with = "analyst")]
    documents: bool,
    /// Query a database, run a Python program on the result, then call an HTTP API. Needs bubblewrap on Linux
    #[arg(long, conflicts_with_all = ["analyst", "documents", "crash"])]
    hands: bool,
    /// Ask a LangGraph agent with two tools, kill its process during each, and show the trace and the web UI
    #[arg(long, conflicts_with_all = ["analyst", "documents", "crash", "hands", "json"])]
    python: bool,
    /// Print one JSON object instead of the answer
    #[arg(long)]
    json: bool,
    /// Hide progress
    #[arg(long, short)]
    quiet: bool,
}

pub(super) async fn run(globals: &Globals, settings: Settings, args: Args) -> Result<Exit> {
    let signals = Signals::listen()?;
    let thread = ThreadId::new();
    let invocation = globals.invocation();
    if args.python {
        return python(settings, thread, &invocation, &signals).await;
    }
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
    let tell: fn(&str) = if args.quiet { |_| {} } else { output::note };
    tell(
        "the model is a script that only answers the demo's questions; servers and data are real (IANA time zones)",
    );
    if args.hands {
        check_python().await?;
    }
    let options = demo::Options { tell, ..demo::Options::of(demo) };
    let stage = demo::set(&options).await?;
    let runtime = Runtime::builder(settings, kinds()).on_stage(stage).open().await?;
    let mut ended = Ok(Exit::Done);
    for question in questions {
        tell(&format!("question: {question}"));
        let request = Request { question: (*question).to_owned(), ..Request::default() };
        let title = Some(demo.title().to_owned());
        let tenant = DEMO_TENANT.to_owned();
        let job = Job::Ask { thread, title, tenant, request };
        ended = execute::drive(&runtime, job, &show, &signals).await;
        if !matches!(ended, Ok(Exit::Done)) {
            break;
        }
    }
    execute::finish(runtime, ended, &signals).await
}

/// Serves a LangGraph agent, and runs the client that asks it and kills its process.
///
/// On a terminal, the web UI stays until it is stopped.
async fn python(
    mut settings: Settings,
    thread: ThreadId,
    invocation: &str,
    signals: &Signals,
) -> Result<Exit> {
    settings.serve.addr = ([127, 0, 0, 1], 0).into();
    let home = demo::Options::default().home;
    let demo = demo::python(&home, &thread.to_string()).await?;
    let Some(hosted) = graphs::host(Some(&demo.langgraph_json), &settings).await? else {
        return Ok(Exit::Failed);
    };
    let serving = serve::start(graphs::own(), settings.clone()).await?;
    let mut client = Command::new(&hosted.python);
    client.args(["-m", "perihelion.demo", &serving.url(), &thread.to_string()]);
    let client = client.arg(&demo.kills).kill_on_drop(true).status();
    let status = signals.unless_stopped(client).await?;
    let is_done = status.is_ok_and(|status| status.success());
    if is_done {
        trace::print(&settings, &thread.to_string()).await?;
    }
    if is_done && std::io::stdout().is_terminal() {
        output::note(&format!(
            "the thread is at {}/#/chat/{thread}; press Ctrl-C to stop",
            serving.url()
        ));
        signals.stop_token().cancelled().await;
    } else {
        let file = demo.langgraph_json.display();
        output::note(&format!("to see it in the web UI, run: {invocation} serve --graphs {file}"));
    }
    serving.stop().await?;
    Ok(if is_done { Exit::Done } else { Exit::Failed })
}

#[derive(clap::Parser)]
struct Mcp {
    #[command(subcommand)]
    server: Bundled,
}

async fn check_python() -> Result<()> {
    let Ok(Mcp { server }) = Mcp::try_parse_from(["mcp", "python"]) else { return Ok(()) };
    for finding in server.check().await {
        if let Finding::Bad(reason) = finding {
            return Err(Error::NoSandbox(reason));
        }
    }
    Ok(())
}

/// Kills the process when an output was judged: calls have been made, and the stage is not committed.
///
/// The documents demo is killed at the analyst, when no other work is active; the other one at the first rejection.
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
                "killing this process now, in the middle of a step; to continue, run: {resume}"
            ));
            // The one process that this may end is this one.
            let _ = raise(Signal::SIGKILL);
        }
    })
}
