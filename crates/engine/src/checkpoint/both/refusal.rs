//! Why a fenced statement changed nothing.

use perihelion_database::{Database, Query, Row, Transaction, query};

use super::{
    super::{Error, Fence},
    decode::count,
};
use crate::failpoint::{Point, Side, reach};

/// Reads where a thread stands.
pub(in super::super) const HEAD_AND_FENCE: &str = "SELECT head, fence FROM thread WHERE id = $1";

/// Where a thread stands: its newest step, and its newest fencing token.
#[derive(Clone, Copy)]
pub(in super::super) struct HeadAndFence {
    pub(in super::super) head: u64,
    token: u64,
}

impl HeadAndFence {
    /// Reads it where the token is the thread's newest.
    pub(in super::super) fn of(found: Option<Row>, fence: Fence) -> Result<Self, Error> {
        let row = found.ok_or(Error::UnknownThread(fence.thread))?;
        let place = Self { head: count(&row, "head")?, token: count(&row, "fence")? };
        if place.token == fence.token { Ok(place) } else { Err(place.fenced(fence)) }
    }

    /// Refuses a token as one that was stale when the statement looked.
    pub(in super::super) fn fenced(self, fence: Fence) -> Error {
        reach(Point::Fenced, Side::After);
        fence.stale(self.token)
    }
}

fn place(fence: Fence) -> Query {
    query(HEAD_AND_FENCE).bind(fence.thread.0)
}

/// Returns where the thread stands; an error when it is unknown or the token is not its newest.
pub(in super::super) async fn explain(
    database: &Database,
    fence: Fence,
) -> Result<HeadAndFence, Error> {
    HeadAndFence::of(database.fetch_short(&place(fence)).await?, fence)
}

/// Checks the token within the transaction that writes.
pub(in super::super) async fn check(
    transaction: &mut Transaction<'_>,
    fence: Fence,
) -> Result<HeadAndFence, Error> {
    HeadAndFence::of(transaction.fetch_optional(&place(fence)).await?, fence)
}
