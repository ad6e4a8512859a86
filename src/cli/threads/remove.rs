//! `threads delete` and `threads prune`.

use std::io::{BufRead as _, IsTerminal as _, Write as _};

use chrono::TimeDelta;
use serde_json::json;

use super::list::{as_json, standing};
use super::{Error, moment, named};
use crate::checkpoint::{Store, ThreadFilter, ThreadInfo, ThreadStatus};
use crate::cli::output;
use crate::clock;
use crate::runtime::{compact, is_abandoned};

#[derive(Debug, clap::Args)]
pub struct DeleteArgs {
    /// The thread
    pub(super) thread: String,
    /// Do not ask
    #[arg(long, short)]
    yes: bool,
}

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Threads that wait for a person, and those under way, are never pruned by age.

Examples:
  perihelion threads prune --older-than 30d --dry-run
  perihelion threads prune --keep-steps 100 weekly-report")]
#[command(group = clap::ArgGroup::new("what").required(true))]
pub struct PruneArgs {
    /// Delete threads that were not touched for so long: 45s, 10m, 12h, 30d or 8w
    #[arg(long, value_name = "AGE", value_parser = age, group = "what", conflicts_with = "thread")]
    older_than: Option<TimeDelta>,
    /// Shorten one thread to its newest N steps; its state stays as it is
    #[arg(long, value_name = "N", group = "what", requires = "thread", value_parser = clap::value_parser!(u64).range(1..))]
    keep_steps: Option<u64>,
    /// The thread to shorten
    pub(super) thread: Option<String>,
    /// Only say what would be deleted
    #[arg(long, conflicts_with = "keep_steps")]
    dry_run: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

fn age(text: &str) -> Result<TimeDelta, String> {
    let expected = || "expected a number and a unit, such as 12h, 30d or 8w".to_owned();
    let text = text.trim();
    let (number, unit) =
        text.split_at(text.len() - text.chars().next_back().map_or(0, char::len_utf8));
    let seconds = match unit {
        "s" => 1,
        "m" => 60,
        "h" => 3_600,
        "d" => 86_400,
        "w" => 7 * 86_400,
        _ => return Err(expected()),
    };
    let number: i64 = number.trim().parse::<u32>().map_err(|_| expected())?.into();
    TimeDelta::try_seconds(number * seconds).ok_or_else(expected)
}

pub(super) async fn delete(store: &dyn Store, args: &DeleteArgs) -> Result<(), Error> {
    let info = store.info(named(&args.thread)).await?;
    if !args.yes && !confirmed(&info)? {
        output::note("nothing was deleted");
        return Ok(());
    }
    store.delete(info.id).await?;
    output::note(&format!("deleted the thread {}", info.id));
    Ok(())
}

fn confirmed(info: &ThreadInfo) -> Result<bool, Error> {
    if !std::io::stdin().is_terminal() {
        return Err(Error::Unconfirmed { what: "delete the thread", name: info.id.to_string() });
    }
    let title = info.title.as_ref().map(|title| format!(" ({})", output::one_line(title)));
    eprint!(
        "delete the thread {}{}, {}, {} steps? [y/N] ",
        info.id,
        title.unwrap_or_default(),
        standing(info),
        info.head
    );
    let _ = std::io::stderr().flush();
    let mut line = String::new();
    std::io::stdin().lock().read_line(&mut line).map_err(Error::Input)?;
    Ok(matches!(line.trim().to_lowercase().as_str(), "y" | "yes"))
}

pub(super) async fn prune(store: &dyn Store, args: &PruneArgs) -> Result<(), Error> {
    if let (Some(keep), Some(thread)) = (args.keep_steps, &args.thread) {
        return shorten(store, thread, keep, args.json).await;
    }
    let age = args.older_than.unwrap_or_default();
    let updated_before = clock::now().checked_sub_signed(age);
    let filter = ThreadFilter { updated_before, ..ThreadFilter::default() };
    let old = match updated_before {
        Some(_) => store.list(&filter).await?,
        // Before the beginning of time nothing was touched.
        None => Vec::new(),
    };
    let (kept, doomed): (Vec<_>, Vec<_>) = old.into_iter().partition(is_needed);
    for info in &doomed {
        if !args.dry_run {
            store.delete(info.id).await?;
        }
        if !args.json {
            let title = info.title.as_deref().unwrap_or("-");
            output::text(&format!("{}  {}  {title}", info.id, moment(info.updated_at)))?;
        }
    }
    if args.json {
        let list = |threads: &[ThreadInfo]| threads.iter().map(as_json).collect::<Vec<_>>();
        return output::json(&json!({
            "dry_run": args.dry_run, "deleted": list(&doomed), "kept": list(&kept),
        }));
    }
    let would = if args.dry_run { "would delete" } else { "deleted" };
    let waiting = match kept.len() {
        0 => String::new(),
        count => format!("; {count} that wait for a person or are under way were left"),
    };
    output::note(&format!("{would} {} threads{waiting}", doomed.len()));
    Ok(())
}

/// Returns whether somebody may still come back for the thread's run.
fn is_needed(info: &ThreadInfo) -> bool {
    match info.status {
        ThreadStatus::Interrupted | ThreadStatus::Queued => true,
        ThreadStatus::Busy => !is_abandoned(info),
        ThreadStatus::Idle | ThreadStatus::Failed | ThreadStatus::Parked => false,
    }
}

async fn shorten(store: &dyn Store, thread: &str, keep: u64, json: bool) -> Result<(), Error> {
    let thread = named(thread);
    let first = compact(store, thread, keep).await?;
    if json {
        return output::json(&json!({ "thread_id": thread, "first_step": first.unwrap_or(1) }));
    }
    output::note(&match first {
        Some(first) => format!("the thread {thread} now begins at step {first}"),
        None => format!("the thread {thread} has no more than {keep} steps; nothing was dropped"),
    });
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_age_is_a_number_and_a_unit() {
        assert_eq!(age("30d"), Ok(TimeDelta::days(30)));
        assert_eq!(age(" 8w "), Ok(TimeDelta::weeks(8)));
        for wrong in ["", "d", "30", "-1d", "1y", "3é", "99999999999d"] {
            assert!(age(wrong).is_err(), "{wrong}");
        }
    }
}
