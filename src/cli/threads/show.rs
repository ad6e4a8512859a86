//! `threads show`.

use serde_json::json;

use super::list::as_json;
use super::{Error, moment, title};
use crate::cli::globals::quoted;
use crate::cli::{output, questions};
use perihelion_engine::checkpoint::{RunRow, RunStatus};
use perihelion_engine::ids::RunId;
use perihelion_runtime::{LiveStatus, ThreadView, Threads};

#[derive(Debug, clap::Args)]
pub struct Args {
    /// Thread. Defaults to the newest thread
    pub(super) thread: Option<String>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(super) async fn run(threads: &Threads, args: &Args, invocation: &str) -> Result<(), Error> {
    let thread = threads.find(args.thread.as_deref()).await?;
    let ThreadView { info, runs, open, .. } = threads.view(thread).await?;
    let status = LiveStatus::of(&info);
    let under_way = runs.last().filter(|_| status == LiveStatus::Busy).map(|run| run.id);
    if args.json {
        let mut all = as_json(&info);
        let rows = runs.iter().map(|run| {
            let mut row = json!(run);
            row["status"] = json!(status_of(run, under_way));
            row
        });
        all["runs"] = rows.collect();
        all["interrupts"] = json!(open);
        return output::json(&all);
    }
    let mut text = format!("thread   {}\n", info.id);
    if info.title.is_some() {
        text.push_str(&format!("title    {}\n", title(&info)));
    }
    text.push_str(&format!("status   {}\n", status.as_str()));
    if let Some(error) = info.shown_error() {
        text.push_str(&format!("because  {}\n", output::one_line(&error)));
    }
    text.push_str(&format!("steps    {}\n", info.head));
    if let Some((source, step)) = info.forked_from {
        text.push_str(&format!("fork of  {source} at step {step}\n"));
    }
    text.push_str(&format!("created  {}\n", moment(info.created_at)));
    text.push_str(&format!("updated  {}\n", moment(info.updated_at)));
    if !runs.is_empty() {
        let rows = runs.iter().map(|run| {
            [
                run.number.to_string(),
                run.id.to_string(),
                status_of(run, under_way).to_owned(),
                moment(run.started_at),
                run.ended_at.map_or_else(|| "-".to_owned(), moment),
            ]
        });
        let head = ["run", "id", "status", "started", "ended"];
        text.push_str(&format!("\n{}\n", output::table(head, rows.collect())));
    }
    let id = args.thread.as_deref().map_or_else(|| info.id.to_string(), quoted);
    if !open.is_empty() {
        text.push_str(&format!("\n{}", questions::explain(&open, &id, invocation)));
    } else if LiveStatus::can_continue(&info) {
        text.push_str(&format!("\nto continue, run: {invocation} resume {id}\n"));
    }
    output::text(&text)
}

/// Returns the status of a run in the words that its thread has for it.
fn status_of(run: &RunRow, under_way: Option<RunId>) -> &'static str {
    match run.status {
        // A run whose process died has no end of its own; the next one began where it stood.
        RunStatus::Running if under_way != Some(run.id) => LiveStatus::Crashed.as_str(),
        RunStatus::Cancelled => LiveStatus::Stopped.as_str(),
        other => other.as_str(),
    }
}
