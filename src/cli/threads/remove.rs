//! `threads delete`.

use std::io::{BufRead as _, IsTerminal as _, Write as _};

use super::list::status_word;
use super::{Error, found, title};
use crate::checkpoint::{Store, ThreadInfo, ThreadStatus};
use crate::cli::{naming, output};
use crate::runtime::is_abandoned;

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

pub(super) async fn delete(store: &dyn Store, args: &DeleteArgs) -> Result<(), Error> {
    let info = store.info(found(store, Some(&args.thread)).await?).await?;
    if !args.force {
        let thread = info.id;
        let under_way = under_way(&info);
        under_way.map_or(Ok(()), |how| Err(Error::UnderWay { thread, how }))?;
    }
    if !args.yes && !wanted(&info)? {
        output::note("nothing was deleted");
        return Ok(());
    }
    if args.force {
        store.delete(info.id).await?
    } else {
        store.delete_as_seen(&info).await?
    }
    output::note(&format!("deleted the thread {}", info.id));
    Ok(())
}

/// Says who is at work on a thread; nobody where its process is known to be gone.
fn under_way(info: &ThreadInfo) -> Option<String> {
    match info.status {
        ThreadStatus::Busy if !is_abandoned(info) => {
            let owner = naming::holder(info.owner.as_deref().unwrap_or_default());
            Some(format!("being run by {owner}"))
        }
        ThreadStatus::Queued => Some("queued for the workers".to_owned()),
        _ => None,
    }
}

/// Asks a person about a thread that is to go.
fn wanted(info: &ThreadInfo) -> Result<bool, Error> {
    if !std::io::stdin().is_terminal() {
        return Err(Error::Unconfirmed { what: "delete the thread", name: info.id.to_string() });
    }
    let title = title(info);
    let status_word = status_word(info);
    confirmed(&format!(
        "delete the thread {} ({title}), {status_word}, {} steps?",
        info.id, info.head
    ))
}

/// Asks a person on the terminal; anything but yes is no.
pub(super) fn confirmed(question: &str) -> Result<bool, Error> {
    eprint!("{} [y/N] ", output::one_line(question));
    let _ = std::io::stderr().flush();
    let mut line = String::new();
    std::io::stdin().lock().read_line(&mut line).map_err(Error::Input)?;
    Ok(matches!(line.trim().to_lowercase().as_str(), "y" | "yes"))
}
