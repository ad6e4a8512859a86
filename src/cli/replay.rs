//! `perihelion replay`: runs a recorded thread again, offline, and shows the first difference.

use super::{Exit, Result, changes, graphs, opening, output};
use perihelion_runtime::{self as runtime, About, Divergence, LeftOut, ReplayReport, Threads};
use perihelion_settings::config::Settings;

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Each step runs again with the current program, settings and prompts. Answers of models, tools and people, \
clock readings and random numbers come from the journal. Replay makes no calls, starts no servers and writes \
no data. Every step must commit the same bytes as before.

Examples:
  perihelion replay weekly-report
  perihelion replay weekly-report --run 2 --json

Exit codes:
  0  every step committed the same bytes
  1  a step differs, or the thread cannot be read
  2  invalid usage or configuration")]
pub struct Args {
    /// Thread, by UUID or name
    #[arg(value_name = "THREAD")]
    thread: String,
    /// Replay only the steps of this run
    #[arg(long, value_name = "N")]
    run: Option<u32>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(super) async fn run(settings: Settings, args: Args) -> Result<Exit> {
    let replay = async |threads: &Threads| {
        let thread = threads.find(Some(&args.thread)).await?;
        let graph = graphs::to_use(&settings, threads, thread).await?;
        Ok(threads.traces(&settings).replay(graph.as_ref(), thread, args.run).await?)
    };
    let replayed = opening::reading(&settings, replay).await;
    let report = replayed.map_err(|error| error.about(&args.thread))?;
    output::either(args.json, &report, || drawn(&report))?;
    Ok(if report.divergence.is_none() { Exit::Done } else { Exit::Failed })
}

fn drawn(report: &ReplayReport) -> String {
    let ReplayReport { from, replayed, taken, effects, .. } = report;
    let mut text = String::new();
    if let Some(left_out) = report.left_out {
        let why = match left_out {
            LeftOut::Pruned => "were pruned",
            LeftOut::Foreign => {
                "belong to another thread, and their recorded calls are incomplete here"
            }
            LeftOut::OtherRun => "belong to earlier runs",
        };
        text.push_str(&format!("replay begins at step {from}, because the earlier steps {why}\n"));
    }
    if let Some(divergence) = &report.divergence {
        text.push_str(&format!(
            "{} replayed with the same bytes, then a difference:\n",
            output::count(*replayed, "step")
        ));
        text.push_str(&diverged(divergence));
        return text;
    }
    text.push_str(&format!(
        "{} replayed from {effects} recorded effects; each committed the same bytes\n",
        output::count(*replayed, "step")
    ));
    if *taken > 0 {
        text.push_str(&format!(
            "{} (inputs and edits) copied as stored\n",
            output::count(*taken, "step")
        ));
    }
    text
}

fn diverged(divergence: &Divergence) -> String {
    let Divergence { step, node, reason, about, expected, actual } = divergence;
    let title = match about {
        About::Request => "request",
        About::Update => "wrote",
        About::Next => "next",
    };
    let node = if node.is_empty() { "(no node)" } else { node };
    let mut text = format!("step {step}, {node}: {}\n", output::one_line(reason));
    text.push_str("  (- recorded, + replayed)\n");
    text.push_str(&changes::draw(&runtime::changes(expected, actual), title, "  "));
    text
}
