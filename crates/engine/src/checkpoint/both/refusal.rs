//! Why a fenced statement changed nothing.

use perihelion_database::{Database, Query, Row, Transaction, query};

use super::{super::Error, decode::count};
use crate::failpoint::{Point, Side, reach};
use crate::ids::ThreadId;

/// Reads where a thread stands.
pub(in super::super) const HEAD_AND_FENCE: &str = "SELECT head, fence FROM thread WHERE id = $1";

/// Where a thread stands.
pub(in super::super) struct HeadAndFence {
    pub(in super::super) head: u64,
    fence: u64,
}

impl HeadAndFence {
    pub(in super::super) fn of(row: &Row) -> Result<Self, Error> {
        Ok(Self { head: count(row, "head")?, fence: count(row, "fence")? })
    }

    /// Returns it where the token is the thread's newest.
    pub(in super::super) fn checked(
        found: Option<Self>,
        thread: ThreadId,
        fence: u64,
    ) -> Result<Self, Error> {
        match found {
            None => Err(Error::UnknownThread(thread)),
            Some(place) if place.fence != fence => Err(place.fenced(thread, fence)),
            Some(place) => Ok(place),
        }
    }

    /// Refuses a token as one that was stale when the statement looked.
    pub(in super::super) fn fenced(&self, thread: ThreadId, token: u64) -> Error {
        reach(Point::Fenced, Side::After);
        Error::Fenced { thread, token, current: self.fence }
    }
}

fn place(thread: ThreadId) -> Query {
    query(HEAD_AND_FENCE).bind(thread.0)
}

/// Returns where the thread stands; an error when it is unknown or the token is not its newest.
pub(in super::super) async fn explain(
    database: &Database,
    thread: ThreadId,
    fence: u64,
) -> Result<HeadAndFence, Error> {
    let found = database.fetch_short(&place(thread)).await?;
    HeadAndFence::checked(found.as_ref().map(HeadAndFence::of).transpose()?, thread, fence)
}

/// Checks the token within the transaction that writes.
pub(in super::super) async fn check(
    transaction: &mut Transaction<'_>,
    thread: ThreadId,
    fence: u64,
) -> Result<HeadAndFence, Error> {
    let found = transaction.fetch_optional(&place(thread)).await?;
    HeadAndFence::checked(found.as_ref().map(HeadAndFence::of).transpose()?, thread, fence)
}
