//! `perihelion resume`: an answer to an open question, or continuing after a crash, a failure or a stop.

use clap::ValueEnum;
use serde_json::Value;

use super::files::json_or_text;
use super::show::{Printed, Show};
use super::{Error, Exit, Globals, Result, opening};
use super::{approvals, execute};
use perihelion_engine::ids::{InterruptId, ThreadId};
use perihelion_runtime::{Answer, Job, Threads};
use perihelion_settings::config::Settings;

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  perihelion resume weekly-report                         Continue after a crash, failure or stop
  perihelion resume weekly-report --message \"Only 2024\"   Answer the open question
  perihelion resume weekly-report --approve               Approve the waiting tool call
  perihelion resume weekly-report --deny --reason \"not on a Friday\"
  perihelion resume weekly-report --outcome done --result '{\"id\": 7}'
  perihelion resume weekly-report --outcome retry
  perihelion resume weekly-report --answer '{\"city\": \"Bern\"}'   Fill in a server's form

`perihelion threads show THREAD` lists the open questions. If there are several, select one with
--interrupt.")]
#[command(group = clap::ArgGroup::new("given"))]
#[command(group = clap::ArgGroup::new("decision").args(["approve", "deny"]))]
pub struct Args {
    /// Thread, by UUID, part of a UUID, or name. Defaults to the newest thread
    thread: Option<String>,
    /// Answer a clarification, or ask another question if the thread is finished
    #[arg(long, value_name = "TEXT", group = "given")]
    message: Option<String>,
    /// Question to answer. Required if several are open
    #[arg(long, value_name = "ID", requires = "given", value_parser = approvals::id)]
    interrupt: Option<InterruptId>,
    /// Answer any question with JSON or plain text
    #[arg(long, value_name = "TEXT", group = "given")]
    answer: Option<String>,
    /// Approve the waiting call, or confirm that you opened the address that a server gave you
    #[arg(long, group = "given")]
    approve: bool,
    /// Deny the waiting call, or decline a server's request
    #[arg(long, group = "given")]
    deny: bool,
    /// Reason for the decision, passed to the agent
    #[arg(long, value_name = "TEXT", requires = "decision")]
    reason: Option<String>,
    /// Resolve a call with an unknown outcome: it happened, send it again, or skip it
    #[arg(long, value_name = "VERDICT", group = "given")]
    outcome: Option<Outcome>,
    /// Result of the call, as JSON or plain text
    #[arg(long, value_name = "TEXT", requires = "outcome")]
    result: Option<String>,
    #[command(flatten)]
    printed: Printed,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Outcome {
    Done,
    Retry,
    Skip,
}

pub(super) async fn run(globals: &Globals, settings: Settings, args: Args) -> Result<Exit> {
    if args.result.is_some() && args.outcome != Some(Outcome::Done) {
        return Err(Error::StrayResult);
    }
    let show = args.printed.show(globals.invocation());
    let show = Show { name: args.thread.clone(), ..show };
    let named = |error: Error, thread: ThreadId| match &show.name {
        Some(name) => error.about(name),
        None => error.about(&thread.to_string()),
    };
    // An unknown thread is refused before servers are started and a database is created.
    let find = async |threads: &Threads| {
        let thread = threads.find(show.name.as_deref()).await?;
        let known = threads.info(thread).await;
        known.map(|info| info.id).map_err(|error| named(error.into(), thread))
    };
    let thread = opening::reading(&settings, find).await?;
    let ended = execute::execute(settings, job(thread, args), &show).await;
    ended.map_err(|error| named(error, thread))
}

fn job(thread: ThreadId, args: Args) -> Job {
    let answer = if let Some(text) = args.message {
        if args.interrupt.is_none() {
            return Job::Message { thread, text };
        }
        Answer::Message(text)
    } else if let Some(text) = args.answer {
        Answer::Value(json_or_text(text))
    } else if args.approve {
        Answer::Approve { reason: args.reason }
    } else if args.deny {
        Answer::Deny { reason: args.reason }
    } else {
        match args.outcome {
            Some(Outcome::Done) => {
                Answer::OutcomeDone { result: args.result.map_or(Value::Null, json_or_text) }
            }
            Some(Outcome::Retry) => Answer::OutcomeRetry,
            Some(Outcome::Skip) => Answer::OutcomeSkip,
            None => return Job::Resume { thread },
        }
    };
    Job::Answer { thread, interrupt: args.interrupt, answer }
}
