//! Why a fenced statement changed nothing.

use perihelion_database::{idempotent, postgres::Connections};
use sqlx::{PgConnection, Row};

use super::super::Error;
use crate::failpoint::{Point, Side, reach};
use crate::ids::ThreadId;

/// Where a thread stands.
pub(super) struct Place {
    pub(super) head: u64,
    pub(super) fence: u64,
}

impl Place {
    pub(super) fn fenced(&self, thread: ThreadId, held: u64) -> Error {
        reach(Point::Fenced, Side::After);
        Error::Fenced { thread, held, current: self.fence }
    }
}

pub(super) async fn read_place(
    connection: &mut PgConnection,
    thread: ThreadId,
) -> Result<Option<Place>, sqlx::Error> {
    let row = sqlx::query("SELECT head, fence FROM thread WHERE id = $1")
        .bind(thread.0)
        .fetch_optional(connection)
        .await?;
    row.map(|row| {
        Ok(Place {
            head: row.try_get::<i64, _>("head")? as u64,
            fence: row.try_get::<i64, _>("fence")? as u64,
        })
    })
    .transpose()
}

/// Says why a fenced statement found nothing to change; `otherwise` when the token was the newest.
pub(super) async fn explain<T>(
    connections: &Connections,
    thread: ThreadId,
    fence: u64,
    otherwise: impl FnOnce(Place) -> Result<T, Error>,
) -> Result<T, Error> {
    let place = idempotent!(connections, |c| read_place(&mut c, thread))?;
    match place {
        None => Err(Error::UnknownThread(thread)),
        Some(place) if place.fence != fence => Err(place.fenced(thread, fence)),
        Some(place) => otherwise(place),
    }
}
