//! `threads delete`.

use std::io::{BufRead as _, IsTerminal as _, Write as _};

use super::list::standing;
use super::{Error, named};
use crate::checkpoint::{Store, ThreadInfo};
use crate::cli::output;

#[derive(Debug, clap::Args)]
pub struct DeleteArgs {
    /// The thread
    pub(super) thread: String,
    /// Do not ask
    #[arg(long, short)]
    yes: bool,
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
