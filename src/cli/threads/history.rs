//! `threads history`.

use super::{Error, moment, named};
use crate::checkpoint::Store;
use crate::cli::output;
use crate::runtime::history;

#[derive(Debug, clap::Args)]
pub struct Args {
    /// The thread
    pub(super) thread: String,
    /// Only steps before this one
    #[arg(long, value_name = "STEP")]
    before: Option<u64>,
    /// At most so many
    #[arg(long, value_name = "N", default_value_t = 50)]
    limit: u32,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(super) async fn run(store: &dyn Store, args: &Args) -> Result<(), Error> {
    let thread = named(&args.thread);
    // An unknown thread is an error, not an empty history.
    store.info(thread).await?;
    let steps = history(store, thread, args.before, args.limit).await?;
    if args.json {
        return output::json(&steps);
    }
    let rows = steps.iter().map(|step| {
        [
            step.step.to_string(),
            step.kind.as_str().to_owned(),
            step.nodes.join(", "),
            step.wrote.join(", "),
            step.next.join(", "),
            step.bytes.to_string(),
            moment(step.at),
        ]
    });
    let head = ["step", "kind", "ran", "wrote", "next", "bytes", "at"];
    output::text(&output::table(head, rows.collect()))
}
