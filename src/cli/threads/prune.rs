//! `threads prune`.

use std::io::IsTerminal as _;

use serde_json::json;

use super::list::as_json;
use super::{Context, Error, Result, moment, title};
use crate::cli::bars::Form;
use crate::cli::{graphs, output};
use perihelion_engine::checkpoint::ThreadInfo;
use perihelion_runtime::{PruneOptions, PruneReport, Pruned};
use perihelion_settings::config::{Age, Retention, Settings};

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Without options, the [retention] settings apply. Running threads are never pruned. Threads that wait for a \
person are only pruned with --include-interrupted. Forks keep the history they share.

Examples:
  perihelion threads prune --older-than 30d --dry-run
  perihelion threads prune --keep 1000 --keep-steps 500
  perihelion threads prune --keep-steps 100 weekly-report")]
pub struct Args {
    /// Delete threads not updated for this time, such as 45s, 10m, 12h, 30d or 8w
    #[arg(long, value_name = "AGE", conflicts_with = "thread")]
    older_than: Option<Age>,
    /// Delete all threads except the newest N
    #[arg(long, value_name = "N", conflicts_with = "thread", value_parser = clap::value_parser!(u64).range(1..))]
    keep: Option<u64>,
    /// Shorten threads to their newest N steps. The state does not change
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    keep_steps: Option<u64>,
    /// Shorten only this thread
    #[arg(requires = "keep_steps")]
    thread: Option<String>,
    /// Include threads that wait for a person
    #[arg(long = "include-interrupted", alias = "waiting", conflicts_with = "thread")]
    waiting: bool,
    /// Show the effect without pruning
    #[arg(long, conflicts_with = "thread")]
    dry_run: bool,
    /// Skip confirmation
    #[arg(long, short)]
    yes: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Number of threads that are listed before they are deleted; the rest is counted.
const SHOWN: usize = 10;

impl Args {
    /// Rejects a prune without conditions before it opens the database.
    pub(super) fn check(&self, settings: &Settings) -> Result<()> {
        if self.retention(settings).keeps_all() { Err(Error::NothingToPrune) } else { Ok(()) }
    }

    /// Returns the options' retention, or the settings' without options.
    fn retention(&self, settings: &Settings) -> Retention {
        let asked = Retention {
            max_age: self.older_than,
            max_threads: self.keep,
            max_steps: self.keep_steps,
        };
        if asked.keeps_all() { settings.retention.clone() } else { asked }
    }
}

pub(super) async fn run(context: &Context<'_>, args: &Args) -> Result<()> {
    if let (Some(keep), Some(thread)) = (args.keep_steps, &args.thread) {
        return shorten(context, thread, keep, args.json).await;
    }
    let retention = &args.retention(context.settings);
    if !args.dry_run
        && !args.yes
        && std::io::stdin().is_terminal()
        && !asked(context, retention, args).await?
    {
        output::note("no threads were pruned");
        return Ok(());
    }
    // Drawn on a terminal only.
    let bar = output::BARS.add(Form::Spinner);
    let mut failed = None;
    let mut count = 0;
    let mut done = |one: Pruned<'_>| {
        count += 1;
        bar.set_message(format!("{} pruned", output::count(count, "thread")));
        if args.json || failed.is_some() {
            return;
        }
        let line = match one {
            Pruned::Deleted(info) => shown(info),
            Pruned::Shortened(info, first) => {
                format!("{}  now begins at step {first}", shown(info))
            }
        };
        failed = output::BARS.suspend(|| output::text(&line)).err();
    };
    let options = PruneOptions { dry_run: args.dry_run, waiting: args.waiting };
    let find_graph = |info: &ThreadInfo| graphs::of_thread(context.settings, context.threads, info);
    let report = context.threads.prune(retention, options, &find_graph, &mut done).await;
    bar.end();
    let report = report?;
    if let Some(error) = failed {
        return Err(error);
    }
    if args.json {
        output::json(&as_object(args.dry_run, &report))?
    } else {
        for (info, error) in &report.failed {
            output::warning(&format!("{}: {error}", info.id));
        }
        output::note(&summary(args.dry_run, &report));
    }
    match report.failed.len() {
        0 => Ok(()),
        count => Err(Error::NotShortened(count)),
    }
}

/// Lists the threads to delete and asks for confirmation; without any, it does not ask.
async fn asked(context: &Context<'_>, retention: &Retention, args: &Args) -> Result<bool> {
    let options = PruneOptions { dry_run: true, waiting: args.waiting };
    let find_graph = |info: &ThreadInfo| graphs::of_thread(context.settings, context.threads, info);
    let would = context.threads.prune(retention, options, &find_graph, &mut |_| {}).await?;
    if would.deleted.is_empty() && would.shortened.is_empty() {
        return Ok(true);
    }
    for info in would.deleted.iter().take(SHOWN) {
        output::note(&shown(info));
    }
    if would.deleted.len() > SHOWN {
        output::note(&format!("… and {} more", would.deleted.len() - SHOWN));
    }
    output::confirmed(&format!("{}: continue?", summary(true, &would)))
}

fn shown(info: &ThreadInfo) -> String {
    format!("{}  {}  {}", info.id, moment(info.updated_at), title(info))
}

fn as_object(dry_run: bool, report: &PruneReport) -> serde_json::Value {
    let list = |threads: &[ThreadInfo]| threads.iter().map(as_json).collect::<Vec<_>>();
    let shortened = report.shortened.iter();
    let shortened =
        shortened.map(|(info, first)| json!({ "thread_id": info.id, "first_step": first }));
    let failed = report.failed.iter();
    let failed =
        failed.map(|(info, error)| json!({ "thread_id": info.id, "error": error.to_string() }));
    json!({
        "dry_run": dry_run,
        "deleted": list(&report.deleted),
        "shortened": shortened.collect::<Vec<_>>(),
        "kept": list(&report.kept),
        "failed": failed.collect::<Vec<_>>(),
    })
}

fn summary(dry_run: bool, report: &PruneReport) -> String {
    let would = if dry_run { "would delete" } else { "deleted" };
    let mut text = format!("{would} {}", output::count(report.deleted.len() as u64, "thread"));
    if !report.shortened.is_empty() {
        let would = if dry_run { "would shorten" } else { "shortened" };
        text.push_str(&format!("; {would} {}", report.shortened.len()));
    }
    if !report.kept.is_empty() {
        let count = report.kept.len();
        text.push_str(&format!("; skipped {count} running or interrupted"));
    }
    text
}

async fn shorten(context: &Context<'_>, thread: &str, keep: u64, json: bool) -> Result<()> {
    let thread = context.find(Some(thread)).await?;
    let graph = graphs::to_use(context.settings, context.threads, thread).await?;
    let first = graph.compact(thread, keep).await?;
    let text = match first {
        Some(first) => format!("the thread {thread} now begins at step {first}"),
        None => format!("the thread {thread} has at most {keep} steps already"),
    };
    output::done(json, &json!({ "thread_id": thread, "first_step": first }), &text)
}
