//! `threads list`.

use serde_json::{Value, json};

use super::{Error, title};
use crate::checkpoint::{Store, ThreadFilter, ThreadInfo, ThreadStatus};
use crate::cli::{naming, output};
use crate::runtime::{first_question, is_abandoned};

#[derive(Debug, Default, clap::Args)]
#[group(skip)]
pub struct Args {
    /// Only threads that stand so
    #[arg(long, value_name = "STATUS")]
    status: Option<ShownStatus>,
    /// Only threads of this tenant
    #[arg(long, value_name = "TENANT")]
    tenant: Option<String>,
    /// At most so many; 0 for all
    #[arg(long, value_name = "N")]
    limit: Option<u32>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Threads listed unless asked otherwise.
const LIMIT: u32 = 50;

/// Characters of a title or question in a row that is to fit 80 columns.
const TITLE: usize = 30;

/// How a thread stands, in a word.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum ShownStatus {
    /// It never ran.
    New,
    /// Its last run ended with an answer.
    Done,
    /// It is left to the workers.
    Queued,
    Busy,
    /// It waits for a person.
    Interrupted,
    Failed,
    /// A node that is next is not there.
    Parked,
    /// Its process died in the middle of a run.
    Crashed,
    /// New or done.
    #[value(hide = true)]
    Idle,
}

impl ShownStatus {
    fn as_str(self) -> &'static str {
        match self {
            Self::New => "new",
            Self::Done => "done",
            Self::Queued => "queued",
            Self::Busy => "busy",
            Self::Interrupted => "interrupted",
            Self::Failed => "failed",
            Self::Parked => "parked",
            Self::Crashed => "crashed",
            Self::Idle => "idle",
        }
    }

    /// Returns the status under which such threads are kept.
    fn kept(self) -> ThreadStatus {
        match self {
            Self::New | Self::Done | Self::Idle => ThreadStatus::Idle,
            Self::Queued => ThreadStatus::Queued,
            Self::Busy | Self::Crashed => ThreadStatus::Busy,
            Self::Interrupted => ThreadStatus::Interrupted,
            Self::Failed => ThreadStatus::Failed,
            Self::Parked => ThreadStatus::Parked,
        }
    }

    fn has(self, info: &ThreadInfo) -> bool {
        // Each of these two stands for whatever is kept under that status.
        matches!(self, Self::Idle | Self::Busy) || status_word(info) == self.as_str()
    }
}

pub(super) async fn run(store: &dyn Store, args: &Args) -> Result<(), Error> {
    let limit = match args.limit {
        None => Some(LIMIT),
        Some(0) => None,
        some => some,
    };
    // More than one word stands for some of what is kept, so that is told apart here.
    let status = args.status.map(ShownStatus::kept);
    let is_whole = args.status.is_none() && args.tenant.is_none();
    let filter_limit = limit.filter(|_| is_whole);
    let filter = ThreadFilter { status, limit: filter_limit, ..ThreadFilter::default() };
    let mut threads = store.list(&filter).await?;
    threads.retain(|info| args.status.is_none_or(|status| status.has(info)));
    threads.retain(|info| args.tenant.as_ref().is_none_or(|tenant| info.tenant == *tenant));
    threads.truncate(limit.map_or(usize::MAX, |limit| limit as usize));
    if args.json {
        return output::json(&threads.iter().map(as_json).collect::<Vec<_>>());
    }
    if threads.is_empty() {
        if let Some(tenant) = &args.tenant {
            output::note(&format!("no such thread here is of the tenant {tenant}"));
            return Ok(());
        }
        output::note(&match args.status {
            Some(status) => format!("no thread here is {}", status.as_str()),
            None => "there are no threads here; `perihelion run \"QUESTION\"` makes one".to_owned(),
        });
        return Ok(());
    }
    let ids: Vec<_> = threads.iter().map(|info| info.id).collect();
    let mut rows = Vec::with_capacity(threads.len());
    for (info, id) in threads.iter().zip(naming::shorts(&ids)) {
        rows.push([
            id,
            output::brief(&called(store, info).await, TITLE),
            status_word(info),
            info.head.to_string(),
            info.updated_at.format("%m-%d %H:%MZ").to_string(),
        ]);
    }
    let head = ["thread", "title or question", "status", "steps", "updated"];
    output::text(&output::table(head, rows))?;
    if threads.len() == LIMIT as usize && args.limit.is_none() {
        output::note(&format!("the newest {LIMIT} are shown; --limit 0 shows all"));
    }
    Ok(())
}

/// Returns what a thread is called: its title, else its question.
async fn called(store: &dyn Store, info: &ThreadInfo) -> String {
    if info.title.is_some() {
        return title(info);
    }
    // A row that cannot be read is listed all the same.
    let asked = first_question(store, info).await.ok().flatten();
    asked.map_or_else(|| "-".to_owned(), |question| output::one_line(&question))
}

/// Says how a thread stands; a run whose process is gone is not called busy.
pub(super) fn status_word(info: &ThreadInfo) -> String {
    let shared = info.forked_from.map_or(0, |(_, step)| step);
    match info.status {
        _ if is_abandoned(info) => "crashed",
        ThreadStatus::Idle if info.head <= shared => "new",
        ThreadStatus::Idle => "done",
        other => other.as_str(),
    }
    .to_owned()
}

/// Returns a thread as programs are shown it.
pub(super) fn as_json(info: &ThreadInfo) -> Value {
    json!({
        "thread_id": info.id,
        "short_id": naming::short(info.id),
        "graph": info.graph,
        "title": info.shown_title(),
        "status": status_word(info),
        "crashed": is_abandoned(info),
        "error": info.shown_error(),
        "steps": info.head,
        "forked_from": info.forked_from.map(|(thread, step)| json!({ "thread_id": thread, "step": step })),
        "created_at": info.created_at,
        "updated_at": info.updated_at,
    })
}
