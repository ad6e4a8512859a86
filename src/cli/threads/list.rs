//! `threads list`.

use clap::builder::{PossibleValue, PossibleValuesParser};
use serde_json::{Value, json};

use super::{Context, Result, title};
use crate::cli::output;
use perihelion_engine::checkpoint::ThreadInfo;
use perihelion_runtime::{Listing, LiveStatus, Threads};

#[derive(Debug, Default, clap::Args)]
#[group(skip)]
pub struct Args {
    /// Only list threads with this status
    #[arg(long, value_name = "STATUS", value_parser = statuses())]
    status: Option<String>,
    /// Only list threads of this tenant
    #[arg(long, value_name = "TENANT")]
    tenant: Option<String>,
    /// Maximum number of threads, or 0 for all. Defaults to 50
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

/// Statuses by name, with their help and the statuses that they select.
const STATUSES: [(&str, &str, &[LiveStatus]); 10] = [
    ("new", "Never ran", &[LiveStatus::New]),
    ("done", "The last run ended with an answer", &[LiveStatus::Done]),
    ("queued", "Waiting for a worker", &[LiveStatus::Queued]),
    ("busy", "Running", &[LiveStatus::Busy, LiveStatus::Crashed]),
    ("interrupted", "Waiting for a person", &[LiveStatus::Interrupted]),
    ("failed", "The last run failed", &[LiveStatus::Failed]),
    ("stopped", "The last run was stopped", &[LiveStatus::Stopped]),
    ("parked", "The next node is not in the graph", &[LiveStatus::Parked]),
    ("crashed", "The process died during a run", &[LiveStatus::Crashed]),
    ("idle", "New or done", &[LiveStatus::New, LiveStatus::Done]),
];

fn statuses() -> PossibleValuesParser {
    STATUSES.map(|(name, help, _)| PossibleValue::new(name).help(help).hide(name == "idle")).into()
}

pub(super) async fn run(context: &Context<'_>, args: &Args) -> Result<()> {
    let limit = match args.limit {
        // One more shows whether there are more.
        None => Some(LIMIT + 1),
        Some(0) => None,
        some => some,
    };
    let wanted = args.status.as_deref();
    let found = STATUSES.iter().find(|(name, ..)| Some(*name) == wanted);
    let statuses = found.map(|(.., statuses)| statuses.to_vec()).unwrap_or_default();
    let listing = Listing { statuses, tenant: args.tenant.clone(), limit };
    let mut listed = context.threads.list(&listing).await?;
    let has_more = args.limit.is_none() && listed.len() > LIMIT as usize;
    if has_more {
        listed.truncate(LIMIT as usize);
    }
    if args.json {
        return output::json(&listed.iter().map(as_json).collect::<Vec<_>>());
    }
    if listed.is_empty() {
        if let Some(tenant) = &args.tenant {
            output::note(&format!("no matching threads of the tenant {tenant}"));
            return Ok(());
        }
        output::note(&match wanted {
            Some(status) => format!("no threads with status {status}"),
            None => "no threads yet; start one with `perihelion run \"QUESTION\"`".to_owned(),
        });
        return Ok(());
    }
    let ids: Vec<_> = listed.iter().map(|info| info.id).collect();
    let mut rows = Vec::with_capacity(listed.len());
    for (info, id) in listed.iter().zip(Threads::shorts(&ids)) {
        rows.push([
            id,
            output::brief(&called(context.threads, info).await, TITLE),
            LiveStatus::of(info).as_str().to_owned(),
            info.head.to_string(),
            info.updated_at.format("%m-%d %H:%MZ").to_string(),
        ]);
    }
    let head = ["thread", "title or question", "status", "steps", "updated"];
    output::text(&output::table(head, rows))?;
    if has_more {
        output::note(&format!("showing the newest {LIMIT} threads; pass --limit 0 to show all"));
    }
    Ok(())
}

/// Returns the name of a thread: its title, otherwise its question.
async fn called(threads: &Threads, info: &ThreadInfo) -> String {
    if info.title.is_some() {
        return title(info);
    }
    // A row that cannot be read is listed all the same.
    let asked = threads.first_question(info.id).await.ok().flatten();
    asked.map_or_else(|| "-".to_owned(), |question| output::one_line(&question))
}

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
        "archived": info.archived.is_some(),
        "forked_from": info.forked_from.map(|(thread, step)| json!({ "thread_id": thread, "step": step })),
        "created_at": info.created_at,
        "updated_at": info.updated_at,
    })
}
