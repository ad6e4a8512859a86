//! `threads delete`.

use std::io::{BufRead as _, IsTerminal as _, Write as _};

use super::{Error, title};
use crate::cli::output;
use perihelion_engine::checkpoint::ThreadInfo;
use perihelion_runtime::{LiveStatus, Removal, Threads};

#[derive(Debug, clap::Args)]
pub struct DeleteArgs {
    /// The thread
    pub(super) thread: String,
    /// Do not ask
    #[arg(long, short)]
    yes: bool,
    /// Also one that is under way: its run loses what it has not finished, and fails
    #[arg(long)]
    force: bool,
}

pub(super) async fn delete(threads: &Threads, args: &DeleteArgs) -> Result<(), Error> {
    let info = threads.info(threads.find(Some(&args.thread)).await?).await?;
    let removal = if args.force { Removal::Forced } else { Removal::AtRest };
    Threads::check_removal(&info, removal)?;
    if !args.yes && !wanted(&info)? {
        output::note("nothing was deleted");
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
    confirmed(&format!("delete the thread {} ({title}), {status}, {} steps?", info.id, info.head))
}

/// Asks a person on the terminal; anything but yes is no.
pub(super) fn confirmed(question: &str) -> Result<bool, Error> {
    eprint!("{} [y/N] ", output::one_line(question));
    let _ = std::io::stderr().flush();
    let mut line = String::new();
    std::io::stdin().lock().read_line(&mut line).map_err(Error::Input)?;
    Ok(matches!(line.trim().to_lowercase().as_str(), "y" | "yes"))
}
