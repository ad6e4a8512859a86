//! What unfinished steps already have.

use perihelion_database::idempotent;

use super::{
    super::{BlobRow, Error, PendingRow, both::refusal::explain, checksum, limits::big},
    PostgresStore,
    blobs::{Unnested, bind_blobs, kept},
};
use crate::ids::ThreadId;

// The thread's row is locked in share mode first: a claim waits for it, and after a claim the fence no longer matches.
// Tasks of one step do not wait for each other.

macro_rules! save_pending {
    ($more:expr) => {
        concat!(
            "WITH leased AS (
                SELECT id FROM thread WHERE id = $1 AND fence = $2 AND head = $3 - 1 FOR SHARE
             ), saved AS (
                INSERT INTO pending (thread_id, step, task, codec, body, checksum)
                SELECT id, $3, $4, $5, $6, $7 FROM leased
                ON CONFLICT (thread_id, step, task) DO NOTHING
             )",
            $more,
            " SELECT count(*) FROM leased"
        )
    };
}

const SAVE_PENDING: &str = save_pending!("");
const SAVE_PENDING_AND_KEEP: &str =
    save_pending!(concat!(", kept AS (", kept!("leased, ", "8", "9", "10", "11", "12"), ")"));

pub(super) async fn save(
    store: &PostgresStore,
    thread: ThreadId,
    fence: u64,
    row: &PendingRow,
    blobs: &[BlobRow],
) -> Result<(), Error> {
    let sum = checksum::pending(row);
    let statement = if blobs.is_empty() { SAVE_PENDING } else { SAVE_PENDING_AND_KEEP };
    let query = || {
        let query = sqlx::query_scalar(statement)
            .bind(thread.0)
            .bind(big(fence))
            .bind(big(row.step))
            .bind(row.task as i32)
            .bind(row.body.codec as i16)
            .bind(&row.body.bytes[..])
            .bind(&sum[..]);
        if blobs.is_empty() { query } else { bind_blobs!(query, Unnested::new(blobs)) }
    };
    let token: i64 = idempotent!(store.connections, |c| query().fetch_one(&mut *c))?;
    match token {
        0 => {
            let place = explain(&store.database, thread, fence).await?;
            Err(Error::Conflict { thread, seq: row.step, head: place.head })
        }
        _ => Ok(()),
    }
}
