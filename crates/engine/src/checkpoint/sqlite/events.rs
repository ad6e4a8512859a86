//! The logs of what runs told.

use perihelion_database::{Database, query};

use super::super::{
    Error, EventRow,
    both::{now, why_not_appended},
    limits::big,
};
use crate::ids::ThreadId;

/// One statement, so that those of several threads share a flush. A trigger moves the thread's count of events.
const APPEND: &str = "INSERT INTO event (thread_id, first_id, events, step, run, codec, body, at)
     SELECT id, $3, $4, $5, $6, $7, $8, $9 FROM thread
     WHERE id = $1 AND fence = $2 AND events = $3 - 1";

pub(super) async fn append(
    database: &Database,
    thread: ThreadId,
    fence: u64,
    batch: &EventRow,
) -> Result<(), Error> {
    let append = query(APPEND)
        .bind(thread.0)
        .bind(big(fence))
        .bind(big(batch.first))
        .bind(batch.count as i32)
        .bind(big(batch.step))
        .bind(batch.run.0)
        .bind(batch.body.codec as i16)
        .bind(&batch.body.bytes[..])
        .bind(now());
    match database.execute(&append).await? {
        0 => why_not_appended(database, thread, fence, batch).await,
        _ => Ok(()),
    }
}
