//! `threads list`.

use serde_json::{Value, json};

use super::{Error, moment, title};
use crate::checkpoint::{Store, ThreadFilter, ThreadInfo, ThreadStatus};
use crate::cli::output;
use crate::runtime::is_abandoned;

#[derive(Debug, Default, clap::Args)]
#[group(skip)]
pub struct Args {
    /// Only threads that stand so: idle, queued, busy, interrupted, failed or parked
    #[arg(long, value_name = "STATUS", value_parser = status)]
    status: Option<ThreadStatus>,
    /// At most so many; 0 for all
    #[arg(long, value_name = "N")]
    limit: Option<u32>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Threads listed unless asked otherwise.
const LIMIT: u32 = 50;

fn status(text: &str) -> Result<ThreadStatus, String> {
    ThreadStatus::from_name(text)
        .ok_or_else(|| "expected idle, queued, busy, interrupted, failed or parked".to_owned())
}

pub(super) async fn run(store: &dyn Store, args: &Args) -> Result<(), Error> {
    let limit = match args.limit {
        None => Some(LIMIT),
        Some(0) => None,
        some => some,
    };
    let filter = ThreadFilter { status: args.status, limit, ..ThreadFilter::default() };
    let threads = store.list(&filter).await?;
    if args.json {
        return output::json(&threads.iter().map(as_json).collect::<Vec<_>>());
    }
    if threads.is_empty() {
        output::note(&match args.status {
            Some(status) => format!("no thread here is {}", status.as_str()),
            None => "there are no threads here; `perihelion run \"QUESTION\"` makes one".to_owned(),
        });
        return Ok(());
    }
    let rows = threads.iter().map(|info| {
        [
            info.id.to_string(),
            title(info),
            standing(info),
            info.head.to_string(),
            moment(info.updated_at),
        ]
    });
    let head = ["thread", "title", "status", "steps", "updated"];
    output::text(&output::table(head, rows.collect()))?;
    if threads.len() == LIMIT as usize && args.limit.is_none() {
        output::note(&format!("the newest {LIMIT} are shown; --limit 0 shows all"));
    }
    Ok(())
}

/// Says how a thread stands; a run whose process is gone is not called busy.
pub(super) fn standing(info: &ThreadInfo) -> String {
    match is_abandoned(info) {
        true => "crashed".to_owned(),
        false => info.status.as_str().to_owned(),
    }
}

/// Returns a thread as programs are shown it.
pub(super) fn as_json(info: &ThreadInfo) -> Value {
    json!({
        "thread_id": info.id,
        "title": info.shown_title(),
        "status": standing(info),
        "crashed": is_abandoned(info),
        "error": info.shown_error(),
        "steps": info.head,
        "forked_from": info.forked_from.map(|(thread, step)| json!({ "thread_id": thread, "step": step })),
        "created_at": info.created_at,
        "updated_at": info.updated_at,
    })
}
