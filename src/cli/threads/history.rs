//! `threads history`.

use super::{Error, moment};
use crate::cli::output;
use perihelion_runtime::{StepView, ThreadView, Threads};

#[derive(Debug, clap::Args)]
pub struct Args {
    /// Thread. Defaults to the newest thread
    pub(super) thread: Option<String>,
    /// Only list steps before this step
    #[arg(long, value_name = "STEP")]
    before: Option<u64>,
    /// Maximum number of steps, or 0 for all
    #[arg(long, value_name = "N", default_value_t = 50)]
    limit: u32,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(super) async fn run(threads: &Threads, args: &Args) -> Result<(), Error> {
    let thread = threads.find(args.thread.as_deref()).await?;
    let limit = if args.limit == 0 { u32::MAX } else { args.limit };
    let steps = threads.history(thread, args.before, limit).await?;
    if args.json {
        return output::json(&steps);
    }
    let ThreadView { info, runs, .. } = threads.view(thread).await?;
    let shared = info.forked_from.map_or(0, |(_, step)| step);
    let run = |step: &StepView| match runs.iter().find(|run| run.id == step.run_id) {
        Some(run) => run.number.to_string(),
        None if step.step <= shared => "shared".to_owned(),
        None => "-".to_owned(),
    };
    let rows = steps.iter().map(|step| {
        [
            step.step.to_string(),
            run(step),
            step.kind.as_str().to_owned(),
            step.nodes.join(", "),
            step.wrote.join(", "),
            step.next.join(", "),
            step.bytes.to_string(),
            moment(step.at),
        ]
    });
    let head = ["step", "run", "kind", "ran", "wrote", "next", "bytes", "at"];
    output::text(&output::table(head, rows.collect()))?;
    if let Some(oldest) = steps.last().map(|step| step.step).filter(|step| *step > 1) {
        output::note(&if threads.history(thread, Some(oldest), 1).await?.is_empty() {
            format!("the steps before {oldest} were pruned")
        } else {
            format!("for older steps, pass --before {oldest}")
        });
    }
    Ok(())
}
