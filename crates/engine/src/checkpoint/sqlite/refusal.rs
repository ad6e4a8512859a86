//! Why a fenced statement changed nothing.

use sqlx::SqliteConnection;

use super::super::Error;
use crate::failpoint::{Point, Side, reach};
use crate::ids::ThreadId;

/// Where a thread stands.
pub(super) struct Place {
    pub(super) head: u64,
}

/// Returns where the thread stands; an error when it is unknown or the token is not its newest.
pub(super) async fn check(
    connection: &mut SqliteConnection,
    thread: ThreadId,
    fence: u64,
) -> Result<Place, Error> {
    let found: Option<(i64, i64)> = sqlx::query_as("SELECT head, fence FROM thread WHERE id = ?1")
        .bind(thread.0)
        .fetch_optional(connection)
        .await?;
    match found {
        None => Err(Error::UnknownThread(thread)),
        Some((_, current)) if current as u64 != fence => {
            reach(Point::Fenced, Side::After);
            Err(Error::Fenced { thread, held: fence, current: current as u64 })
        }
        Some((head, _)) => Ok(Place { head: head as u64 }),
    }
}
