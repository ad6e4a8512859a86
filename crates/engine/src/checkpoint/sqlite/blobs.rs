//! Texts that are kept beside the states that name them.

use perihelion_database::sqlite::File;
use sqlx::SqliteConnection;

use super::{
    super::{
        BlobRow, Error,
        decode::{self, blob_columns},
        limits::big,
    },
    threads,
};
use crate::ids::ThreadId;

const KEEP: &str = "INSERT INTO blob (thread_id, hash, step, codec, body)
     VALUES (?1, ?2, ?3, ?4, ?5)
     ON CONFLICT (thread_id, hash) DO UPDATE SET step = min(step, excluded.step)";

/// Keeps texts; of one that is there already the earlier step counts.
pub(super) async fn keep(
    connection: &mut SqliteConnection,
    rows: &[BlobRow],
) -> Result<(), sqlx::Error> {
    for row in rows {
        sqlx::query(KEEP)
            .bind(row.owner.0)
            .bind(&row.hash[..])
            .bind(big(row.step))
            .bind(row.body.codec as i16)
            .bind(&row.body.bytes[..])
            .execute(&mut *connection)
            .await?;
    }
    Ok(())
}

/// The thread, the one at the top, and those they were forked from: whose texts it may name.
macro_rules! owners {
    ($statement:expr) => {
        concat!(
            "WITH RECURSIVE owner (id) AS (
                SELECT ?1
                UNION
                SELECT t.root_id FROM owner o JOIN thread t ON t.id = o.id
                WHERE t.root_id IS NOT NULL
                UNION
                SELECT t.parent_id FROM owner o JOIN thread t ON t.id = o.id
                WHERE t.parent_id IS NOT NULL
             ) SELECT ",
            blob_columns!(),
            " FROM owner CROSS JOIN blob ON blob.thread_id = owner.id ",
            $statement
        )
    };
}

pub(super) async fn find(
    file: &File,
    thread: ThreadId,
    hash: &[u8; 32],
) -> Result<Option<BlobRow>, Error> {
    let mut reader = file.reader().await?;
    let row = sqlx::query(owners!("WHERE hash = ?2 LIMIT 1"))
        .bind(thread.0)
        .bind(&hash[..])
        .fetch_optional(reader.connection()?)
        .await;
    let row = reader.settle(row)?;
    if row.is_none() {
        threads::info(file, thread).await?;
    }
    row.as_ref().map(decode::blob).transpose()
}

/// Reads all texts that a thread may name.
pub(super) async fn all(
    connection: &mut SqliteConnection,
    thread: ThreadId,
) -> Result<Vec<BlobRow>, Error> {
    let rows =
        sqlx::query(owners!("ORDER BY step, hash")).bind(thread.0).fetch_all(connection).await?;
    rows.iter().map(decode::blob).collect()
}
