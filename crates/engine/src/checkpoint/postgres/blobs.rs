//! Texts that are kept beside the states that name them.

use uuid::Uuid;

use super::super::{BlobRow, limits::big};

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
