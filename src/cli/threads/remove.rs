//! `threads delete`.

use std::io::IsTerminal as _;

use super::{Error, title};
use crate::cli::output;
use perihelion_engine::checkpoint::ThreadInfo;
use perihelion_runtime::{LiveStatus, Removal, Threads};

#[derive(Debug, clap::Args)]
pub struct DeleteArgs {
    /// Thread to delete
    pub(super) thread: String,
    /// Skip confirmation
    #[arg(long, short)]
    yes: bool,
    /// Delete the thread even during a run. The run fails and loses its unfinished step
    #[arg(long)]
    force: bool,
}

pub(super) async fn delete(threads: &Threads, args: &DeleteArgs) -> Result<(), Error> {
    let info = threads.info(threads.find(Some(&args.thread)).await?).await?;
    let removal = if args.force { Removal::Forced } else { Removal::AtRest };
    Threads::check_removal(&info, removal)?;
    if !args.yes && !wanted(&info)? {
        output::note("the thread was not deleted");
        return Ok(());
    }
    threads.remove(&info, removal).await?;
    output::note(&format!("deleted the thread {}", info.id));
    Ok(())
}

/// Asks a person about a thread that is to go.
fn wanted(info: &ThreadInfo) -> Result<bool, Error> {
    if !std::io::stdin().is_terminal() {
        return Err(Error::Unconfirmed { what: "delete the thread", name: info.id.to_string() });
    }
    let title = title(info);
    let status = LiveStatus::of(info).as_str();
    output::confirmed(&format!(
        "delete the thread {} ({title}), {status}, {} steps?",
        info.id, info.head
    ))
}
