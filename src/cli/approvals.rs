//! `perihelion approvals`: lists calls that need approval, and decides them as `resume` does.

use serde_json::{Value, json};

use super::execute;
use super::show::Show;
use super::{Error, Exit, Globals, Result, opening, output, questions};
use perihelion_engine::ids::InterruptId;
use perihelion_runtime::{Answer, Job, WaitingApproval};
use perihelion_settings::config::Settings;

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  perihelion approvals
  perihelion approvals show 0197…
  perihelion approvals approve 0197…
  perihelion approvals deny 0197… --reason \"not on a Friday\"

A decision applies once, to the call exactly as shown, and is written to the audit log. The thread then \
continues, as with `perihelion resume`.")]
pub struct Args {
    #[command(subcommand)]
    command: Option<Command>,
    /// Print JSON
    #[arg(long, global = true)]
    json: bool,
    /// Hide progress
    #[arg(long, short, global = true)]
    quiet: bool,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    /// List waiting calls, oldest first.
    List,
    /// Show a call with its arguments, the reasons for asking, and its deadline.
    Show {
        #[arg(value_parser = id)]
        id: InterruptId,
    },
    /// Approve a call and resume its thread.
    Approve {
        #[arg(value_parser = id)]
        id: InterruptId,
        /// Instructions for the agent
        #[arg(long, value_name = "TEXT")]
        reason: Option<String>,
    },
    /// Deny a call and resume its thread.
    Deny {
        #[arg(value_parser = id)]
        id: InterruptId,
        /// Reason for the decision, passed to the agent
        #[arg(long, value_name = "TEXT")]
        reason: Option<String>,
    },
}

pub(super) fn id(text: &str) -> Result<InterruptId, &'static str> {
    text.parse().map_err(|_| "expected the ID of a request, as `perihelion approvals` and `perihelion resume` print it")
}

pub(super) async fn run(globals: &Globals, settings: Settings, args: Args) -> Result<Exit> {
    let Args { command, json, quiet } = args;
    let all = opening::reading(&settings, async |threads| Ok(threads.approvals().await?)).await?;
    let (waiting, answer) = match command.unwrap_or(Command::List) {
        Command::List => return list(&all, json).map(Exit::from),
        Command::Show { id } => {
            return show(find(&all, id)?, json, globals).map(Exit::from);
        }
        Command::Approve { id, reason } => (find(&all, id)?, Answer::Approve { reason }),
        Command::Deny { id, reason } => (find(&all, id)?, Answer::Deny { reason }),
    };
    let interrupt = waiting.asked.id.parse().ok();
    let job = Job::Answer { thread: waiting.thread.id, interrupt, answer };
    let show = Show { json, quiet, ..Show::new(globals.invocation()) };
    execute::execute(settings, job, &show).await
}

fn find(all: &[WaitingApproval], id: InterruptId) -> Result<&WaitingApproval> {
    all.iter().find(|one| one.is(id)).ok_or_else(|| Error::NotWaiting(id.to_string()))
}

fn as_json(one: &WaitingApproval) -> Value {
    json!({
        "id": one.asked.id,
        "thread_id": one.thread.id,
        "title": one.thread.shown_title(),
        "tenant": one.thread.tenant,
        "agent": one.asked.agent,
        "payload": one.asked.payload,
    })
}

fn list(all: &[WaitingApproval], json: bool) -> Result<()> {
    let rows = all.iter().map(|one| {
        [
            one.asked.id.clone(),
            one.call.name(),
            one.asked.agent.clone(),
            one.thread.id.to_string(),
            one.call.expires_at.chars().take(19).collect(),
        ]
    });
    let head = ["id", "call", "agent", "thread", "until (UTC)"];
    let shown: Vec<Value> = all.iter().map(as_json).collect();
    let none = "no calls are waiting for approval";
    output::listed(json, &shown, none, || output::table(head, rows.collect()))
}

fn show(one: &WaitingApproval, json: bool, globals: &Globals) -> Result<()> {
    let thread = one.thread.id.to_string();
    let asked = std::slice::from_ref(&one.asked);
    output::either(json, &as_json(one), || {
        questions::explain(asked, &thread, &globals.invocation())
    })
}
