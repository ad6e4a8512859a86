//! Texts that are kept beside the states that name them.

use perihelion_database::{Database, Transaction, query};

use super::{
    super::{BlobRow, Error},
    columns::blob_columns,
    decode, info,
};
use crate::ids::ThreadId;

/// The thread, the one at the top, and those they were forked from: whose texts it may name.
macro_rules! owners {
    ($statement:literal) => {
        concat!(
            "WITH RECURSIVE owner (id) AS (
                SELECT $1
                UNION
                SELECT next.id FROM owner o CROSS JOIN thread t CROSS JOIN thread next
                WHERE t.id = o.id AND next.id IN (t.root_id, t.parent_id)
             ) SELECT ",
            blob_columns!(),
            " FROM owner CROSS JOIN blob WHERE blob.thread_id = owner.id ",
            $statement
        )
    };
}

/// Reads a text that a thread may name.
pub(super) async fn find(
    database: &Database,
    thread: ThreadId,
    hash: &[u8; 32],
) -> Result<Option<BlobRow>, Error> {
    let find = query(owners!("AND hash = $2 LIMIT 1")).bind(thread.0).bind(&hash[..]);
    let row = database.fetch_optional(&find).await?;
    if row.is_none() {
        info(database, thread).await?;
    }
    row.as_ref().map(decode::blob).transpose()
}

/// Reads all texts that a thread may name.
pub(super) async fn all(
    transaction: &mut Transaction<'_>,
    thread: ThreadId,
) -> Result<Vec<BlobRow>, Error> {
    let all = query(owners!("ORDER BY step, hash")).bind(thread.0);
    transaction.fetch_all(&all).await?.iter().map(decode::blob).collect()
}
