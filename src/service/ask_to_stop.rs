//! Asks whichever service drives a thread to stop, from a process that is none.

use perihelion_database::Database;

use super::kept::{self, Cancel, Kept, RunStatus};
use crate::clock;
use crate::ids::ThreadId;

/// Has the runs that services drive or keep for a thread stopped; returns how many there were.
///
/// A service looks for what it is to stop twice a second; what it has sent is awaited and recorded.
///
/// # Errors
/// [`kept::Error`] when the database cannot be used.
pub async fn ask_to_stop(url: &str, tenant: &str, thread: ThreadId) -> Result<usize, kept::Error> {
    let kept = Kept::new(Database::open(url).await?, tenant);
    let asked = ask(&kept, thread).await;
    kept.close().await;
    asked
}

async fn ask(kept: &Kept, thread: ThreadId) -> Result<usize, kept::Error> {
    let open = kept.open_ids(thread.0).await?;
    for (run, status) in &open {
        let has_ended =
            *status == RunStatus::Pending && kept.end_pending(*run, clock::now()).await?;
        if !has_ended {
            kept.ask_to_cancel(*run, Cancel::Interrupt).await?;
        }
    }
    Ok(open.iter().filter(|(_, status)| *status == RunStatus::Running).count())
}
