//! `threads archive`.

use serde_json::json;
use tokio_util::sync::CancellationToken;

use super::{Context, Error, Result};
use crate::cli::output;
use perihelion_settings::config::Age;

#[derive(Debug, clap::Args)]
#[command(after_help = "\
`perihelion serve` does this once an hour. Threads that run, wait for a person, have forks, or have stored events or an \
unsent trace are not archived. Archived threads stay in lists and return when they are opened.

Example:
  perihelion threads archive --older-than 30d")]
pub struct Args {
    /// Archive threads without changes for this time, such as 45s, 10m, 12h, 30d or 8w. Defaults to archive.after
    #[arg(long, value_name = "AGE")]
    older_than: Option<Age>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(super) async fn run(context: &Context<'_>, args: &Args) -> Result<()> {
    if context.settings.archive.dir.is_none() {
        return Err(Error::NoArchive);
    }
    let age = args.older_than.unwrap_or(context.settings.archive.after);
    let report = context.threads.archive(context.settings, age, &CancellationToken::new()).await?;
    for (thread, error) in &report.failed {
        output::warning(&format!("{thread}: {error}"));
    }
    let shown = json!({ "archived": report.archived, "failed": report.failed.len() });
    let text = format!("archived {}", output::count(report.archived, "thread"));
    output::done(args.json, &shown, &text)?;
    match report.failed.len() {
        0 => Ok(()),
        count => Err(Error::NotArchived(count)),
    }
}
