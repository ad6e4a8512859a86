//! `perihelion approvals`: calls that wait for a person, over all threads; a decision goes the way of `resume`.

use serde_json::{Value, json};

use super::execute;
use super::show::Show;
use super::{Error, Exit, Globals, output, questions};
use crate::checkpoint::{Store, ThreadFilter, ThreadInfo, ThreadStatus};
use crate::config::Settings;
use crate::ids::InterruptId;
use crate::runtime::{Answer, InterruptView, Job, ThreadView, open_store};
use crate::swarm::question::kind::APPROVAL;

/// How threads stand that may wait for a person: agents beside the one that asks go on.
const WAITING: [ThreadStatus; 3] =
    [ThreadStatus::Interrupted, ThreadStatus::Busy, ThreadStatus::Queued];

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

/// A call that waits, with its thread.
struct Waiting {
    thread: ThreadInfo,
    asked: InterruptView,
}

pub(super) async fn run(globals: &Globals, settings: Settings, args: Args) -> Result<Exit, Error> {
    let Args { command, json, quiet } = args;
    let store = open_store(&settings).await?;
    let found = look(store.as_ref()).await;
    store.close().await;
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

async fn look(store: &dyn Store) -> Result<Vec<Waiting>, Error> {
    let mut all = Vec::new();
    for status in WAITING {
        let filter = ThreadFilter { status: Some(status), ..ThreadFilter::default() };
        for thread in store.list(&filter).await? {
            let open = ThreadView::read(store, thread.id).await?.open;
            let calls = open.into_iter().filter(|one| one.kind == APPROVAL);
            all.extend(calls.map(|asked| Waiting { thread: thread.clone(), asked }));
        }
    }
    all.sort_by_key(|one| text(one, "asked_at").to_owned());
    Ok(all)
}

fn find(all: &[Waiting], id: InterruptId) -> Result<&Waiting, Error> {
    let id = id.to_string();
    all.iter().find(|one| one.asked.id == id).ok_or(Error::NotWaiting(id))
}

fn text<'a>(one: &'a Waiting, key: &str) -> &'a str {
    one.asked.payload.get(key).and_then(Value::as_str).unwrap_or_default()
}

fn as_json(one: &Waiting) -> Value {
    json!({
        "id": one.asked.id,
        "thread_id": one.thread.id,
        "title": one.thread.shown_title(),
        "tenant": one.thread.tenant,
        "agent": one.asked.agent,
        "payload": one.asked.payload,
    })
}

fn list(all: &[Waiting], json: bool) -> Result<(), Error> {
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
            format!("{}.{}", text(one, "server"), text(one, "tool")),
            one.asked.agent.clone(),
            one.thread.id.to_string(),
            text(one, "expires_at").chars().take(19).collect(),
        ]
    });
    let head = ["id", "call", "agent", "thread", "until (UTC)"];
    output::text(&output::table(head, rows.collect()))
}

fn show(one: &Waiting, json: bool, globals: &Globals) -> Result<(), Error> {
    if json {
        return output::json(&as_json(one));
    }
    let thread = one.thread.id.to_string();
    let asked = std::slice::from_ref(&one.asked);
    output::text(&questions::explain(asked, &thread, &globals.invocation()))
}
