//! What unfinished steps already have.

use sqlx::{Connection as _, Sqlite, SqliteConnection, query::Query, sqlite::SqliteArguments};

use super::{
    super::{BlobRow, Error, PendingRow, both::refusal::explain, checksum, limits::big},
    SqliteStore, blobs,
};
use crate::ids::ThreadId;

const SAVE: &str = "INSERT INTO pending (thread_id, step, task, codec, body, checksum)
     SELECT id, ?3, ?4, ?5, ?6, ?7 FROM thread WHERE id = ?1 AND fence = ?2 AND head = ?3 - 1
     ON CONFLICT DO NOTHING";

pub(super) async fn save(
    store: &SqliteStore,
    (thread, fence): (ThreadId, u64),
    row: &PendingRow,
    blobs: &[BlobRow],
) -> Result<(), Error> {
    let fenced = (thread, fence);
    let file = &store.file;
    file.check_place()?;
    let saved = if blobs.is_empty() {
        file.write(statement(fenced, row)).await
    } else {
        with_blobs(file.writer().await?.connection()?, fenced, row, blobs).await
    };
    if saved.map_err(|e| file.refine(e))? == 0 {
        // Refused, or already there: then the first one stands.
        let place = explain(&store.database, thread, fence).await?;
        if place.head + 1 != row.step {
            return Err(Error::Conflict { thread, seq: row.step, head: place.head });
        }
    }
    Ok(())
}

/// Saves a pending write and its texts, or neither.
async fn with_blobs(
    connection: &mut SqliteConnection,
    fenced: (ThreadId, u64),
    row: &PendingRow,
    rows: &[BlobRow],
) -> Result<u64, sqlx::Error> {
    let mut transaction = connection.begin_with("BEGIN IMMEDIATE").await?;
    let saved = statement(fenced, row).execute(&mut *transaction).await?.rows_affected();
    if saved > 0 {
        blobs::keep(&mut transaction, rows).await?;
    }
    transaction.commit().await?;
    Ok(saved)
}

fn statement(
    (thread, fence): (ThreadId, u64),
    row: &PendingRow,
) -> Query<'_, Sqlite, SqliteArguments> {
    sqlx::query(SAVE)
        .bind(thread.0)
        .bind(big(fence))
        .bind(big(row.step))
        .bind(row.task as i32)
        .bind(row.body.codec as i16)
        .bind(&row.body.bytes[..])
        .bind(checksum::pending(row).to_vec())
}
