//! `threads list`.

use clap::ValueEnum as _;
use serde_json::{Value, json};

use super::{Error, title};
use crate::cli::output;
use perihelion_engine::checkpoint::ThreadInfo;
use perihelion_runtime::{Listing, LiveStatus, Threads};

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
    /// Returns how threads stand that it means.
    fn statuses(self) -> Vec<LiveStatus> {
        vec![match self {
            Self::New => LiveStatus::New,
            Self::Done => LiveStatus::Done,
            Self::Queued => LiveStatus::Queued,
            Self::Busy => return vec![LiveStatus::Busy, LiveStatus::Crashed],
            Self::Interrupted => LiveStatus::Interrupted,
            Self::Failed => LiveStatus::Failed,
            Self::Parked => LiveStatus::Parked,
            Self::Crashed => LiveStatus::Crashed,
            Self::Idle => return vec![LiveStatus::New, LiveStatus::Done],
        }]
    }
}

pub(super) async fn run(threads: &Threads, args: &Args) -> Result<(), Error> {
    let limit = match args.limit {
        None => Some(LIMIT),
        Some(0) => None,
        some => some,
    };
    let statuses = args.status.map(ShownStatus::statuses).unwrap_or_default();
    let listing = Listing { statuses, tenant: args.tenant.clone(), limit };
    let listed = threads.list(&listing).await?;
    if args.json {
        return output::json(&listed.iter().map(as_json).collect::<Vec<_>>());
    }
    if listed.is_empty() {
        if let Some(tenant) = &args.tenant {
            output::note(&format!("no such thread here is of the tenant {tenant}"));
            return Ok(());
        }
        output::note(&match args.status {
            Some(status) => {
                let word = status.to_possible_value().map(|word| word.get_name().to_owned());
                format!("no thread here is {}", word.unwrap_or_default())
            }
            None => "there are no threads here; `perihelion run \"QUESTION\"` makes one".to_owned(),
        });
        return Ok(());
    }
    let ids: Vec<_> = listed.iter().map(|info| info.id).collect();
    let mut rows = Vec::with_capacity(listed.len());
    for (info, id) in listed.iter().zip(Threads::shorts(&ids)) {
        rows.push([
            id,
            output::brief(&called(threads, info).await, TITLE),
            LiveStatus::of(info).as_str().to_owned(),
            info.head.to_string(),
            info.updated_at.format("%m-%d %H:%MZ").to_string(),
        ]);
    }
    let head = ["thread", "title or question", "status", "steps", "updated"];
    output::text(&output::table(head, rows))?;
    if listed.len() == LIMIT as usize && args.limit.is_none() {
        output::note(&format!("the newest {LIMIT} are shown; --limit 0 shows all"));
    }
    Ok(())
}

/// Returns what a thread is called: its title, else its question.
async fn called(threads: &Threads, info: &ThreadInfo) -> String {
    if info.title.is_some() {
        return title(info);
    }
    // A row that cannot be read is listed all the same.
    let asked = threads.first_question(info).await.ok().flatten();
    asked.map_or_else(|| "-".to_owned(), |question| output::one_line(&question))
}

/// Returns a thread as programs are shown it.
pub(super) fn as_json(info: &ThreadInfo) -> Value {
    let status = LiveStatus::of(info);
    json!({
        "thread_id": info.id,
        "short_id": Threads::short(info.id),
        "graph": info.graph,
        "title": info.shown_title(),
        "status": status.as_str(),
        "crashed": status == LiveStatus::Crashed,
        "error": info.shown_error(),
        "steps": info.head,
        "forked_from": info.forked_from.map(|(thread, step)| json!({ "thread_id": thread, "step": step })),
        "created_at": info.created_at,
        "updated_at": info.updated_at,
    })
}
