//! Texts that are kept beside the states that name them.

use perihelion_database::{idempotent, postgres::Connections};
use sqlx::PgConnection;
use uuid::Uuid;

use super::{
    super::{
        BlobRow, Error,
        decode::{self, blob_columns},
        limits::big,
    },
    parts::parts,
    threads,
};
use crate::ids::ThreadId;

/// Rows as the columns that a statement unnests, in one order, so that no two writers of the same ones wait for each other.
pub(super) struct Unnested<'r> {
    pub(super) owners: Vec<Uuid>,
    pub(super) hashes: Vec<&'r [u8]>,
    pub(super) steps: Vec<i64>,
    pub(super) codecs: Vec<i16>,
    pub(super) bodies: Vec<&'r [u8]>,
}

impl<'r> Unnested<'r> {
    pub(super) fn new(rows: impl IntoIterator<Item = &'r BlobRow>) -> Self {
        let mut rows: Vec<&BlobRow> = rows.into_iter().collect();
        rows.sort_by_key(|row| (row.owner, row.hash, row.step));
        rows.dedup_by_key(|row| (row.owner, row.hash));
        Self {
            owners: rows.iter().map(|row| row.owner.0).collect(),
            hashes: rows.iter().map(|row| &row.hash[..]).collect(),
            steps: rows.iter().map(|row| big(row.step)).collect(),
            codecs: rows.iter().map(|row| row.body.codec as i16).collect(),
            bodies: rows.iter().map(|row| &row.body.bytes[..]).collect(),
        }
    }
}

/// Binds texts where [`kept`] unnests them.
macro_rules! bind_blobs {
    ($query:expr, $blobs:expr) => {
        $query
            .bind($blobs.owners)
            .bind($blobs.hashes)
            .bind($blobs.steps)
            .bind($blobs.codecs)
            .bind($blobs.bodies)
    };
}
pub(super) use bind_blobs;

/// Keeps the texts of five parameters beside the row of `$from`; of one that is there already the earlier step counts.
macro_rules! kept {
    ($from:literal, $one:literal, $two:literal, $three:literal, $four:literal, $five:literal) => {
        concat!(
            "INSERT INTO blob (thread_id, hash, step, codec, body)
             SELECT b.* FROM ",
            $from,
            "unnest($",
            $one,
            "::uuid[], $",
            $two,
            "::bytea[], $",
            $three,
            "::bigint[], $",
            $four,
            "::smallint[], $",
            $five,
            "::bytea[]) AS b (thread_id, hash, step, codec, body)
             ON CONFLICT (thread_id, hash) DO UPDATE SET step = excluded.step
                WHERE blob.step > excluded.step"
        )
    };
}
pub(super) use kept;

const KEEP: &str = kept!("", "1", "2", "3", "4", "5");

/// Keeps the texts of a thread that is imported.
pub(super) async fn keep(
    connection: &mut PgConnection,
    rows: &[BlobRow],
) -> Result<(), sqlx::Error> {
    for these in parts(rows, |row| row.body.bytes.len()) {
        let blobs = Unnested::new(these);
        bind_blobs!(sqlx::query(KEEP), blobs).execute(&mut *connection).await?;
    }
    Ok(())
}

/// The thread, the one at the top, and those they were forked from: whose texts it may name.
macro_rules! owners {
    ($statement:expr) => {
        concat!(
            "WITH RECURSIVE owner (id) AS (
                SELECT $1::uuid
                UNION
                SELECT next.id FROM owner o JOIN thread t ON t.id = o.id
                CROSS JOIN LATERAL (VALUES (t.root_id), (t.parent_id)) next (id)
                WHERE next.id IS NOT NULL
             ) SELECT ",
            blob_columns!(),
            " FROM owner JOIN blob ON blob.thread_id = owner.id ",
            $statement
        )
    };
}

pub(super) async fn find(
    connections: &Connections,
    thread: ThreadId,
    hash: &[u8; 32],
) -> Result<Option<BlobRow>, Error> {
    let rows = idempotent!(connections, |c| each row of sqlx::query(owners!("WHERE hash = $2 LIMIT 1"))
        .bind(thread.0)
        .bind(&hash[..]))?;
    if rows.is_empty() {
        threads::info(connections, thread).await?;
    }
    rows.first().map(decode::blob).transpose()
}

/// Reads all texts that a thread may name.
pub(super) async fn all(
    connection: &mut PgConnection,
    thread: ThreadId,
) -> Result<Vec<BlobRow>, Error> {
    let rows =
        sqlx::query(owners!("ORDER BY step, hash")).bind(thread.0).fetch_all(connection).await?;
    rows.iter().map(decode::blob).collect()
}
