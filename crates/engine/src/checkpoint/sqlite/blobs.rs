//! Texts that are kept beside the states that name them.

use sqlx::SqliteConnection;

use super::super::{BlobRow, limits::big};

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
