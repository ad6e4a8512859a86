//! `perihelion approvals`: calls that wait for a person, over all threads; a decision goes the way of `resume`.

use serde_json::{Value, json};

use super::execute;
use super::show::Show;
use super::{Error, Exit, Globals, output, questions};
use perihelion_engine::ids::InterruptId;
use perihelion_runtime::{Answer, Job, Threads, WaitingApproval};
use perihelion_settings::config::Settings;

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  perihelion approvals
  perihelion approvals show 0197…
  perihelion approvals approve 0197…
  perihelion approvals deny 0197… --reason \"not on a Friday\"

A decision counts once, is bound to the call as it was shown, and is written to the audit; the thread continues with it
at once, as by `perihelion resume`.")]
pub struct Args {
    #[command(subcommand)]
    command: Option<Command>,
    /// Print JSON
    #[arg(long, global = true)]
    json: bool,
    /// Show no progress
    #[arg(long, short, global = true)]
    quiet: bool,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    /// List the calls that wait, oldest first.
    List,
    /// Show a call with its arguments, why it is asked about, and until when it can be answered.
    Show { id: InterruptId },
    /// Allow a call, and resume its thread.
    Approve {
        id: InterruptId,
        /// What the agent is to mind
        #[arg(long, value_name = "TEXT")]
        reason: Option<String>,
    },
    /// Refuse a call, and resume its thread.
    Deny {
        id: InterruptId,
        /// Why; the agent is told
        #[arg(long, value_name = "TEXT")]
        reason: Option<String>,
    },
}

pub(super) async fn run(globals: &Globals, settings: Settings, args: Args) -> Result<Exit, Error> {
    let Args { command, json, quiet } = args;
    let threads = Threads::open(&settings).await?;
    let found = threads.approvals().await;
    threads.close().await;
    let all = found?;
    let (waiting, answer) = match command.unwrap_or(Command::List) {
        Command::List => return list(&all, json).map(|()| Exit::Done),
        Command::Show { id } => {
            return show(find(&all, id)?, json, globals).map(|()| Exit::Done);
        }
        Command::Approve { id, reason } => (find(&all, id)?, Answer::Approve { reason }),
        Command::Deny { id, reason } => (find(&all, id)?, Answer::Deny { reason }),
    };
    let interrupt = waiting.asked.id.parse().ok();
    let job = Job::Answer { thread: waiting.thread.id, interrupt, answer };
    let show = Show { json, quiet, ..Show::new(globals.invocation()) };
    execute::execute(settings, job, &show).await
}

fn find(all: &[WaitingApproval], id: InterruptId) -> Result<&WaitingApproval, Error> {
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

fn list(all: &[WaitingApproval], json: bool) -> Result<(), Error> {
    if json {
        return output::json(&all.iter().map(as_json).collect::<Vec<_>>());
    }
    if all.is_empty() {
        output::note("no call waits for approval");
        return Ok(());
    }
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
    output::text(&output::table(head, rows.collect()))
}

fn show(one: &WaitingApproval, json: bool, globals: &Globals) -> Result<(), Error> {
    if json {
        return output::json(&as_json(one));
    }
    let thread = one.thread.id.to_string();
    let asked = std::slice::from_ref(&one.asked);
    output::text(&questions::explain(asked, &thread, &globals.invocation()))
}
