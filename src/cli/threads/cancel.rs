//! `threads cancel`.

use serde_json::json;

use super::{Error, found};
use crate::checkpoint::Store;
use crate::cli::args::quoted;
use crate::cli::{naming, output};
use crate::runtime;

#[derive(Debug, clap::Args)]
pub struct Args {
    /// The thread; by default the newest
    pub(super) thread: Option<String>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(super) async fn run(store: &dyn Store, args: &Args, invocation: &str) -> Result<(), Error> {
    let thread = found(store, args.thread.as_deref()).await?;
    let name = args.thread.clone().unwrap_or_else(|| thread.to_string());
    let Some(had) = runtime::cancel(store, thread).await? else {
        return Err(Error::NothingUnderWay(name));
    };
    let had = had.as_deref().map(naming::holder);
    if args.json {
        return output::json(&json!({ "thread_id": thread, "cancelled": true, "was_run_by": had }));
    }
    output::note(&match had {
        Some(who) => {
            format!("cancelled; the thread was taken from {who}, which writes nothing more of it")
        }
        None => "cancelled; nobody had begun with it".to_owned(),
    });
    output::note(&format!("go on from there with: {invocation} resume {}", quoted(&name)));
    Ok(())
}
