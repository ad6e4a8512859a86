//! Deleting and shortening threads without taking history from their forks.

use perihelion_database::postgres::Connections;
use sqlx::{Connection, PgConnection, Row};
use uuid::Uuid;

use super::super::{
    Error, ThreadInfo,
    decode::{self, thread_columns},
    limits::big,
};
use crate::ids::ThreadId;

/// Hands every fork of the threads `$1` the rows it shares with them, and makes it a fork of what lies
/// before them, if anything does.
///
/// `line` walks from each fork through the threads `$1` and ends at the first one that stays. The steps of a subgraph's
/// thread have numbers of their own: of those forks share all texts.
const HAND_OVER: &str = "WITH RECURSIVE line (fork, id, upto) AS (
        SELECT id, parent_id, parent_seq FROM thread
        WHERE parent_id = ANY($1) AND id <> ALL($1)
        UNION ALL
        SELECT l.fork, t.parent_id, least(l.upto, t.parent_seq)
        FROM line l JOIN thread t ON t.id = l.id
        WHERE l.id = ANY($1) AND t.parent_id IS NOT NULL
     ), steps AS (
        INSERT INTO step
            (thread_id, run, seq, at, schema_version, codec, kind, hash, frontier, delta)
        SELECT l.fork, s.run, s.seq, s.at, s.schema_version, s.codec, s.kind, s.hash, s.frontier, s.delta
        FROM line l JOIN step s ON s.thread_id = l.id AND s.seq <= l.upto
        WHERE l.id = ANY($1)
     ), snapshots AS (
        INSERT INTO snapshot
            (thread_id, seq, schema_version, codec, state, checksum, blobs_codec, blobs)
        SELECT l.fork, s.seq, s.schema_version, s.codec, s.state, s.checksum, s.blobs_codec, s.blobs
        FROM line l JOIN snapshot s ON s.thread_id = l.id AND s.seq <= l.upto
        WHERE l.id = ANY($1)
        ON CONFLICT (thread_id, seq) DO NOTHING
     ), blobs AS (
        INSERT INTO blob (thread_id, hash, step, codec, body)
        SELECT DISTINCT ON (1, 2) coalesce(f.root_id, f.id), b.hash, b.step, b.codec, b.body
        FROM line l JOIN thread t ON t.id = l.id JOIN thread f ON f.id = l.fork
        JOIN blob b ON b.thread_id = coalesce(t.root_id, t.id)
            AND (t.root_id IS NOT NULL OR b.step <= l.upto)
        WHERE l.id = ANY($1)
        ORDER BY 1, 2, 3
        ON CONFLICT (thread_id, hash) DO UPDATE SET step = least(blob.step, excluded.step)
     )
     UPDATE thread f SET (parent_id, parent_seq) =
        (SELECT l.id, l.upto FROM line l WHERE l.fork = f.id AND l.id <> ALL($1))
     WHERE f.id IN (SELECT fork FROM line)";

const DELETE: [&str; 9] = [
    "DELETE FROM step WHERE thread_id = ANY($1)",
    "DELETE FROM snapshot WHERE thread_id = ANY($1)",
    "DELETE FROM blob WHERE thread_id = ANY($1)",
    "DELETE FROM effect WHERE thread_id = ANY($1)",
    "DELETE FROM effect_count WHERE thread_id = ANY($1)",
    "DELETE FROM pending WHERE thread_id = ANY($1)",
    "DELETE FROM event WHERE thread_id = ANY($1)",
    "DELETE FROM run WHERE thread_id = ANY($1)",
    "DELETE FROM thread WHERE id = ANY($1)",
];

const HOLD: &str = concat!("SELECT ", thread_columns!(), " FROM thread WHERE id = $1 FOR UPDATE");

/// Deletes a thread; with `seen`, only while it is as it was seen.
pub(super) async fn delete(
    connections: &Connections,
    thread: ThreadId,
    seen: Option<&ThreadInfo>,
) -> Result<(), Error> {
    let mut connection = connections.take_tested().await?;
    let done = connections.long(delete_all(&mut connection, thread, seen)).await;
    connection.settle(done)?
}

/// Holds the thread's row first: anyone who claims it meanwhile waits, and then finds it gone.
async fn delete_all(
    connection: &mut PgConnection,
    thread: ThreadId,
    seen: Option<&ThreadInfo>,
) -> Result<Result<(), Error>, sqlx::Error> {
    let mut transaction = connection.begin().await?;
    let row = sqlx::query(HOLD).bind(thread.0).fetch_optional(&mut *transaction).await?;
    let held = match row.as_ref().map(decode::thread) {
        None => Err(Error::UnknownThread(thread)),
        Some(Ok(row)) if seen.is_some_and(|seen| !row.info.is_as_seen(seen)) => {
            Err(Error::Moved { thread })
        }
        Some(Ok(_)) => Ok(()),
        Some(Err(error)) => Err(error),
    };
    if let Err(refused) = held {
        transaction.rollback().await?;
        return Ok(Err(refused));
    }
    let doomed: Vec<Uuid> = sqlx::query_scalar(
        "SELECT id FROM thread WHERE id = $1 OR root_id = $1 ORDER BY id FOR UPDATE",
    )
    .bind(thread.0)
    .fetch_all(&mut *transaction)
    .await?;
    hand_over(&mut transaction, &doomed).await?;
    for statement in DELETE {
        sqlx::query(statement).bind(&doomed).execute(&mut *transaction).await?;
    }
    transaction.commit().await?;
    Ok(Ok(()))
}

/// Locks the forks first: nobody deletes, shortens or forks one of them while it receives its rows.
async fn hand_over(connection: &mut PgConnection, doomed: &[Uuid]) -> Result<(), sqlx::Error> {
    let forks = sqlx::query(
        "SELECT id FROM thread WHERE parent_id = ANY($1) AND id <> ALL($1) ORDER BY id FOR UPDATE",
    )
    .bind(doomed)
    .fetch_all(&mut *connection)
    .await?;
    if !forks.is_empty() {
        sqlx::query(HAND_OVER).bind(doomed).execute(connection).await?;
    }
    Ok(())
}

/// Makes what a fork shares beyond step `$2` its own, and the snapshot at `$2` and all texts as well.
const TAKE_OVER: &str = "WITH RECURSIVE line (id, upto) AS (
        SELECT parent_id, parent_seq FROM thread WHERE id = $1 AND parent_id IS NOT NULL
        UNION ALL
        SELECT t.parent_id, least(l.upto, t.parent_seq)
        FROM line l JOIN thread t ON t.id = l.id WHERE t.parent_id IS NOT NULL
     ), steps AS (
        INSERT INTO step
            (thread_id, run, seq, at, schema_version, codec, kind, hash, frontier, delta)
        SELECT $1, s.run, s.seq, s.at, s.schema_version, s.codec, s.kind, s.hash, s.frontier, s.delta
        FROM line l JOIN step s ON s.thread_id = l.id AND s.seq <= l.upto AND s.seq > $2
     ), blobs AS (
        INSERT INTO blob (thread_id, hash, step, codec, body)
        SELECT DISTINCT ON (2) (SELECT coalesce(root_id, id) FROM thread WHERE id = $1),
            b.hash, b.step, b.codec, b.body
        FROM line l JOIN thread t ON t.id = l.id
        JOIN blob b ON b.thread_id = coalesce(t.root_id, t.id)
            AND (t.root_id IS NOT NULL OR b.step <= l.upto)
        ORDER BY 2, 3
        ON CONFLICT (thread_id, hash) DO UPDATE SET step = least(blob.step, excluded.step)
     )
     INSERT INTO snapshot
        (thread_id, seq, schema_version, codec, state, checksum, blobs_codec, blobs)
     SELECT $1, s.seq, s.schema_version, s.codec, s.state, s.checksum, s.blobs_codec, s.blobs
     FROM line l JOIN snapshot s ON s.thread_id = l.id AND s.seq = $2 AND s.seq <= l.upto
     ON CONFLICT (thread_id, seq) DO NOTHING";

const DROP: [&str; 5] = [
    "DELETE FROM step WHERE thread_id = $1 AND seq <= $2",
    "DELETE FROM snapshot WHERE thread_id = $1 AND seq < $2",
    "DELETE FROM effect WHERE thread_id = $1 AND step <= $2",
    "DELETE FROM effect_count WHERE thread_id = $1 AND step <= $2",
    "UPDATE thread SET base = $2, parent_id = NULL, parent_seq = NULL WHERE id = $1",
];

pub(super) async fn truncate(
    connections: &Connections,
    thread: ThreadId,
    seq: u64,
) -> Result<(), Error> {
    let mut connection = connections.take_tested().await?;
    let done = connections.long(drop_before(&mut connection, thread, seq)).await;
    connection.settle(done)?
}

async fn drop_before(
    connection: &mut PgConnection,
    thread: ThreadId,
    seq: u64,
) -> Result<Result<(), Error>, sqlx::Error> {
    let mut transaction = connection.begin().await?;
    let head = sqlx::query("SELECT head FROM thread WHERE id = $1 FOR UPDATE")
        .bind(thread.0)
        .fetch_optional(&mut *transaction)
        .await?
        .map(|row| row.try_get::<i64, _>("head"))
        .transpose()?;
    let Some(head) = head else {
        transaction.rollback().await?;
        return Ok(Err(Error::UnknownThread(thread)));
    };
    hand_over(&mut transaction, &[thread.0]).await?;
    sqlx::query(TAKE_OVER).bind(thread.0).bind(big(seq)).execute(&mut *transaction).await?;
    let there: bool = sqlx::query_scalar(
        "SELECT EXISTS (SELECT FROM snapshot WHERE thread_id = $1 AND seq = $2)",
    )
    .bind(thread.0)
    .bind(big(seq))
    .fetch_one(&mut *transaction)
    .await?;
    if !there {
        transaction.rollback().await?;
        return Ok(Err(Error::UnknownStep { thread, seq, head: head as u64 }));
    }
    for statement in DROP {
        sqlx::query(statement).bind(thread.0).bind(big(seq)).execute(&mut *transaction).await?;
    }
    transaction.commit().await?;
    Ok(Ok(()))
}
