//! `perihelion resume`: an answer to an open question, or continuing after a crash, a failure or a stop.

use clap::ValueEnum;
use serde_json::Value;

use super::execute;
use super::show::Show;
use super::{Error, Exit, Globals};
use perihelion_engine::ids::{InterruptId, ThreadId};
use perihelion_runtime::{Answer, Job, Threads};
use perihelion_settings::config::Settings;

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  perihelion resume weekly-report                         resume after a crash, a failure or a stop
  perihelion resume weekly-report --message \"Only 2024\"   answer the question that was asked
  perihelion resume weekly-report --approve               allow the tool call that waits
  perihelion resume weekly-report --deny --reason \"not on a Friday\"
  perihelion resume weekly-report --outcome done --result '{\"id\": 7}'
  perihelion resume weekly-report --outcome retry
  perihelion resume weekly-report --answer '{\"city\": \"Bern\"}'   fill a server's form in

`perihelion threads show THREAD` lists the open questions; where there are several, --interrupt
names one.")]
#[command(group = clap::ArgGroup::new("given"))]
#[command(group = clap::ArgGroup::new("decision").args(["approve", "deny"]))]
pub struct Args {
    /// The thread: a UUID or a part of one, or the name it was given; by default the newest
    thread: Option<String>,
    /// Answer a clarification, or ask on when the thread is finished
    #[arg(long, value_name = "TEXT", group = "given")]
    message: Option<String>,
    /// The open question that is answered; needed where several are open
    #[arg(long, value_name = "ID", requires = "given")]
    interrupt: Option<InterruptId>,
    /// Answer any question in its own form: JSON, or plain text
    #[arg(long, value_name = "TEXT", group = "given")]
    answer: Option<String>,
    /// Allow the call that waits for approval; or say that you were at the address a server asked you to visit
    #[arg(long, group = "given")]
    approve: bool,
    /// Refuse the call that waits for approval, or what a server asks for
    #[arg(long, group = "given")]
    deny: bool,
    /// Why it was allowed or refused; the agent is told
    #[arg(long, value_name = "TEXT", requires = "decision")]
    reason: Option<String>,
    /// Say what became of a call whose outcome is unknown: it happened, send it again, or leave it
    #[arg(long, value_name = "VERDICT", group = "given")]
    outcome: Option<Outcome>,
    /// What the call gave, as JSON or plain text
    #[arg(long, value_name = "TEXT", requires = "outcome")]
    result: Option<String>,
    /// Print one JSON object in place of the answer
    #[arg(long)]
    json: bool,
    /// Add the first table that was found to that object
    #[arg(long, requires = "json")]
    include_data: bool,
    /// Add what happened to that object, event by event
    #[arg(long = "trace", requires = "json")]
    events: bool,
    /// Print what happens as lines of JSON while it happens, and the object of --json last
    #[arg(long = "events")]
    lines: bool,
    /// Show no progress
    #[arg(long, short)]
    quiet: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Outcome {
    Done,
    Retry,
    Skip,
}

pub(super) async fn run(globals: &Globals, settings: Settings, args: Args) -> Result<Exit, Error> {
    let show = Show {
        json: args.json || args.lines,
        events: args.events,
        lines: args.lines,
        include_data: args.include_data,
        quiet: args.quiet,
        name: args.thread.clone(),
        ..Show::new(globals.invocation())
    };
    let thread = Threads::find_in(&settings, args.thread.as_deref()).await?;
    let name = args.thread.clone().unwrap_or_else(|| thread.to_string());
    execute::execute(settings, job(thread, args)?, &show).await.map_err(|error| error.about(&name))
}

fn job(thread: ThreadId, args: Args) -> Result<Job, Error> {
    if args.result.is_some() && args.outcome != Some(Outcome::Done) {
        return Err(Error::StrayResult);
    }
    let answer = if let Some(text) = args.message {
        if args.interrupt.is_none() {
            return Ok(Job::Message { thread, text });
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
            None => return Ok(Job::Resume { thread }),
        }
    };
    Ok(Job::Answer { thread, interrupt: args.interrupt, answer })
}

fn json_or_text(text: String) -> Value {
    serde_json::from_str(&text).unwrap_or(Value::String(text))
}
