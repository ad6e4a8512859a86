//! One step, one statement, one round trip; the texts that it brings are part of the statement. While many threads commit
//! at the same time, their steps are one statement.

use std::collections::HashSet;

use perihelion_database::postgres::{Connections, is_broken};
use sqlx::{PgConnection, Row, postgres::PgRow};
use uuid::Uuid;

use super::super::blobs::in_order;
use super::super::both::leases::{HEAD_AND_FENCE, HeadAndFence};
use super::super::limits::big;
use super::super::{BlobRow, Commit, Error, Fence, Result};
use super::PostgresStore;
use super::together::{Shared, column};
use crate::failpoint::{Point, wrap};
use crate::ids::ThreadId;

pub(super) struct Unnested<'r> {
    pub(super) owners: Vec<Uuid>,
    pub(super) hashes: Vec<&'r [u8]>,
    pub(super) steps: Vec<i64>,
    pub(super) codecs: Vec<i16>,
    pub(super) bodies: Vec<&'r [u8]>,
}

impl<'r> Unnested<'r> {
    pub(super) fn new(rows: impl IntoIterator<Item = &'r BlobRow>) -> Self {
        let rows = in_order(rows);
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

/// Stores the texts of five parameters next to the row of `$from`; for a text that exists, the earlier step counts.
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

macro_rules! commit_sql {
    ($more:expr) => {
        concat!(
            "WITH moved AS (
                UPDATE thread SET head = $2, status = $3, updated_at = now()
                WHERE id = $1 AND head = $2 - 1 AND fence = $4
                RETURNING id
             )",
            $more,
            "INSERT INTO step
                (thread_id, run, seq, schema_version, codec, kind, hash, frontier, delta)
             SELECT id, $5, $2, $6, $7, $8, $9, $10, $11 FROM moved"
        )
    };
}

macro_rules! cleared {
    () => {
        ", cleared AS (
            DELETE FROM pending USING moved WHERE pending.thread_id = moved.id AND pending.step <= $2
         )"
    };
}

macro_rules! with_blobs {
    ($more:expr) => {
        concat!($more, ", kept AS (", kept!("moved, ", "12", "13", "14", "15", "16"), ")")
    };
}

const COMMIT: &str = commit_sql!("");
const COMMIT_AND_CLEAR: &str = commit_sql!(cleared!());
const COMMIT_AND_KEEP: &str = commit_sql!(with_blobs!(""));
const COMMIT_KEEP_AND_CLEAR: &str = commit_sql!(with_blobs!(cleared!()));

/// Commits a step. After a lost reply it finds out what became of the statement before it sends it again.
async fn commit(connections: &Connections, commit: &Commit) -> Result<()> {
    let mut connection = connections.take().await?;
    match connections.brief(send(&mut connection, commit)).await {
        Ok(true) => {
            connection.give_back();
            Ok(())
        }
        Ok(false) => {
            let place = connections.brief(read_place(&mut connection, commit)).await;
            Err(refused(connection.settle(place)?, commit))
        }
        Err(error) if is_broken(&error) => {
            drop(connection);
            recover(connections, commit, error).await
        }
        Err(error) => Ok(connection.settle(Err(error))?),
    }
}

async fn send(connection: &mut PgConnection, commit: &Commit) -> Result<bool, sqlx::Error> {
    let step = &commit.step;
    let statement = if commit.blobs.is_empty() {
        if commit.clears_pending { COMMIT_AND_CLEAR } else { COMMIT }
    } else if commit.clears_pending {
        COMMIT_KEEP_AND_CLEAR
    } else {
        COMMIT_AND_KEEP
    };
    let query = sqlx::query(statement)
        .bind(commit.thread.0)
        .bind(big(step.seq))
        .bind(commit.status.as_str())
        .bind(big(commit.fence))
        .bind(step.run.0)
        .bind(step.schema_version as i32)
        .bind(step.delta.codec as i16)
        .bind(step.kind.as_str())
        .bind(&step.hash[..])
        .bind(&step.frontier[..])
        .bind(&step.delta.bytes[..]);
    let done = if commit.blobs.is_empty() {
        query.execute(connection).await?
    } else {
        bind_blobs!(query, Unnested::new(&commit.blobs)).execute(connection).await?
    };
    Ok(done.rows_affected() == 1)
}

/// Attempts after a lost reply; a server that breaks this many connections in a row is down.
const ATTEMPTS: usize = 3;

async fn recover(connections: &Connections, commit: &Commit, mut error: sqlx::Error) -> Result<()> {
    for _ in 0..ATTEMPTS {
        let mut connection = connections.fresh().await?;
        let settled = connections.brief(settle_lost(&mut connection, commit));
        match wrap(Point::CommitReread, settled).await {
            Ok(outcome) => {
                connection.give_back();
                return outcome;
            }
            Err(again) if is_broken(&again) => error = again,
            Err(other) => return Ok(connection.settle(Err(other))?),
        }
    }
    Err(connections.refine(error).into())
}

/// Decides over a commit whose reply was lost: done, refused, or to be sent again.
///
/// The lost statement may still wait in the server. Then the second one waits for its row lock and changes no row, and
/// the last read distinguishes this from a step of another process.
async fn settle_lost(
    connection: &mut PgConnection,
    commit: &Commit,
) -> Result<Result<()>, sqlx::Error> {
    if is_committed(connection, commit).await? || send(connection, commit).await? {
        return Ok(Ok(()));
    }
    if is_committed(connection, commit).await? {
        return Ok(Ok(()));
    }
    let place = read_place(connection, commit).await?;
    Ok(Err(refused(place, commit)))
}

async fn is_committed(connection: &mut PgConnection, commit: &Commit) -> Result<bool, sqlx::Error> {
    let row = sqlx::query("SELECT hash, run FROM step WHERE thread_id = $1 AND seq = $2")
        .bind(commit.thread.0)
        .bind(big(commit.step.seq))
        .fetch_optional(connection)
        .await?;
    let Some(row) = row else { return Ok(false) };
    let hash: &[u8] = row.try_get("hash")?;
    let run: Uuid = row.try_get("run")?;
    Ok(hash == commit.step.hash && run == commit.step.run.0)
}

async fn read_place(
    connection: &mut PgConnection,
    commit: &Commit,
) -> Result<Option<PgRow>, sqlx::Error> {
    sqlx::query(HEAD_AND_FENCE).bind(commit.thread.0).fetch_optional(connection).await
}

/// Explains why a commit changed no row.
fn refused(row: Option<PgRow>, commit: &Commit) -> Error {
    let Commit { thread, fence, .. } = *commit;
    match HeadAndFence::of(row.map(Into::into), Fence::new(thread, fence)) {
        Ok(HeadAndFence { head, .. }) => Error::Conflict { thread, seq: commit.step.seq, head },
        Err(error) => error,
    }
}

const COMMIT_MANY: &str = "WITH input AS (
        SELECT * FROM unnest($1::uuid[], $2::bigint[], $3::text[], $4::bigint[], $5::uuid[], $6::int[],
            $7::smallint[], $8::text[], $9::bytea[], $10::bytea[], $11::bytea[], $12::bool[])
        AS t (id, seq, status, fence, run, schema_version, codec, kind, hash, frontier, delta, clears)
     ), free AS (
        SELECT thread.id FROM thread JOIN input USING (id)
        WHERE thread.head = input.seq - 1 AND thread.fence = input.fence
        FOR NO KEY UPDATE OF thread SKIP LOCKED
     ), moved AS (
        UPDATE thread SET head = input.seq, status = input.status, updated_at = now()
        FROM free JOIN input USING (id)
        WHERE thread.id = free.id AND thread.head = input.seq - 1 AND thread.fence = input.fence
        RETURNING thread.id
     ), cleared AS (
        DELETE FROM pending USING moved JOIN input USING (id)
        WHERE input.clears AND pending.thread_id = moved.id AND pending.step <= input.seq
     )
     INSERT INTO step
        (thread_id, run, seq, schema_version, codec, kind, hash, frontier, delta)
     SELECT id, run, seq, schema_version, codec, kind, hash, frontier, delta
     FROM moved JOIN input USING (id)
     RETURNING thread_id";

impl Shared for Commit {
    fn thread(&self) -> ThreadId {
        self.thread
    }

    async fn alone(&self, store: &PostgresStore) -> Result<()> {
        commit(&store.connections, self).await
    }

    async fn recover(&self, store: &PostgresStore, error: sqlx::Error) -> Result<()> {
        recover(&store.connections, self, error).await
    }

    async fn many(
        connection: &mut PgConnection,
        commits: &[&Self],
    ) -> Result<HashSet<ThreadId>, sqlx::Error> {
        let rows = sqlx::query(COMMIT_MANY)
            .bind(column(commits, |commit| commit.thread.0))
            .bind(column(commits, |commit| big(commit.step.seq)))
            .bind(column(commits, |commit| commit.status.as_str()))
            .bind(column(commits, |commit| big(commit.fence)))
            .bind(column(commits, |commit| commit.step.run.0))
            .bind(column(commits, |commit| commit.step.schema_version as i32))
            .bind(column(commits, |commit| commit.step.delta.codec as i16))
            .bind(column(commits, |commit| commit.step.kind.as_str()))
            .bind(column(commits, |commit| &commit.step.hash[..]))
            .bind(column(commits, |commit| &commit.step.frontier[..]))
            .bind(column(commits, |commit| &commit.step.delta.bytes[..]))
            .bind(column(commits, |commit| commit.clears_pending))
            .fetch_all(connection)
            .await?;
        rows.iter().map(|row| row.try_get::<Uuid, _>(0).map(ThreadId)).collect()
    }
}
