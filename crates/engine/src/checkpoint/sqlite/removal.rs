//! Deleting and shortening threads without taking history from their forks.

use perihelion_database::sqlite::File;
use sqlx::{Connection, SqliteConnection};

use super::{
    super::{Error, ThreadInfo, limits::big},
    threads,
};
use crate::ids::ThreadId;

/// The thread ?1, and with ?2 its subgraphs' threads.
macro_rules! doomed {
    () => {
        "(SELECT id FROM thread WHERE id = ?1 OR (?2 AND root_id = ?1))"
    };
}

/// Walks from each fork of the doomed threads through them, and ends at the first one that stays.
macro_rules! line {
    ($statement:literal) => {
        concat!(
            "WITH RECURSIVE doomed (id) AS ",
            doomed!(),
            ", line (fork, id, upto) AS (
                SELECT id, parent_id, parent_seq FROM thread
                WHERE parent_id IN (SELECT id FROM doomed) AND id NOT IN (SELECT id FROM doomed)
                UNION ALL
                SELECT l.fork, t.parent_id, min(l.upto, t.parent_seq)
                FROM line l JOIN thread t ON t.id = l.id
                WHERE l.id IN (SELECT id FROM doomed) AND t.parent_id IS NOT NULL
             ) ",
            $statement
        )
    };
}

/// Hands every fork the rows it shares with doomed threads, and makes it a fork of what lies before
/// them, if anything does.
const HAND_OVER: [&str; 4] = [
    line!(
        "INSERT INTO step
            (thread_id, run, seq, at, schema_version, codec, kind, hash, frontier, delta)
         SELECT l.fork, s.run, s.seq, s.at, s.schema_version, s.codec, s.kind, s.hash, s.frontier,
            s.delta
         FROM line l CROSS JOIN step s ON s.thread_id = l.id AND s.seq <= l.upto
         WHERE l.id IN (SELECT id FROM doomed)"
    ),
    line!(
        "INSERT INTO snapshot
            (thread_id, seq, schema_version, codec, state, checksum, blobs_codec, blobs)
         SELECT l.fork, s.seq, s.schema_version, s.codec, s.state, s.checksum, s.blobs_codec,
            s.blobs
         FROM line l CROSS JOIN snapshot s ON s.thread_id = l.id AND s.seq <= l.upto
         WHERE l.id IN (SELECT id FROM doomed)
         ON CONFLICT DO NOTHING"
    ),
    // The steps of a subgraph's thread have numbers of their own: then all texts that there are.
    line!(
        "INSERT INTO blob (thread_id, hash, step, codec, body)
         SELECT coalesce(f.root_id, f.id), b.hash, b.step, b.codec, b.body
         FROM line l CROSS JOIN thread t ON t.id = l.id CROSS JOIN thread f ON f.id = l.fork
         CROSS JOIN blob b ON b.thread_id = coalesce(t.root_id, t.id)
            AND (t.root_id IS NOT NULL OR b.step <= l.upto)
         WHERE l.id IN (SELECT id FROM doomed)
         ON CONFLICT (thread_id, hash) DO UPDATE SET step = min(step, excluded.step)"
    ),
    line!(
        "UPDATE thread AS f SET (parent_id, parent_seq) = (
            SELECT l.id, l.upto FROM line l
            WHERE l.fork = f.id AND l.id NOT IN (SELECT id FROM doomed)
         )
         WHERE f.id IN (SELECT fork FROM line)"
    ),
];

const DELETE: [&str; 9] = [
    concat!("DELETE FROM step WHERE thread_id IN ", doomed!()),
    concat!("DELETE FROM snapshot WHERE thread_id IN ", doomed!()),
    concat!("DELETE FROM blob WHERE thread_id IN ", doomed!()),
    concat!("DELETE FROM effect WHERE thread_id IN ", doomed!()),
    concat!("DELETE FROM effect_count WHERE thread_id IN ", doomed!()),
    concat!("DELETE FROM pending WHERE thread_id IN ", doomed!()),
    concat!("DELETE FROM event WHERE thread_id IN ", doomed!()),
    concat!("DELETE FROM run WHERE thread_id IN ", doomed!()),
    concat!("DELETE FROM thread WHERE id IN ", doomed!()),
];

/// Deletes a thread; with `seen`, only while it is as it was seen.
pub(super) async fn delete(
    file: &File,
    thread: ThreadId,
    seen: Option<&ThreadInfo>,
) -> Result<(), Error> {
    let mut writer = file.writer().await?;
    let refine = |e| Error::from(file.refine(e));
    let mut transaction =
        writer.connection()?.begin_with("BEGIN IMMEDIATE").await.map_err(refine)?;
    let info = threads::read(&mut transaction, thread).await?.info;
    if seen.is_some_and(|seen| !info.is_as_seen(seen)) {
        return Err(Error::Moved { thread });
    }
    for statement in HAND_OVER.iter().chain(&DELETE) {
        sqlx::query(*statement)
            .bind(thread.0)
            .bind(true)
            .execute(&mut *transaction)
            .await
            .map_err(refine)?;
    }
    transaction.commit().await.map_err(refine)
}

/// Walks the threads that ?1 was forked from.
macro_rules! origins {
    ($statement:literal) => {
        concat!(
            "WITH RECURSIVE line (id, upto) AS (
                SELECT parent_id, parent_seq FROM thread WHERE id = ?1 AND parent_id IS NOT NULL
                UNION ALL
                SELECT t.parent_id, min(l.upto, t.parent_seq)
                FROM line l JOIN thread t ON t.id = l.id WHERE t.parent_id IS NOT NULL
             ) ",
            $statement
        )
    };
}

/// Makes what a fork shares beyond step ?2 its own, and the snapshot at ?2 and all texts as well.
const TAKE_OVER: [&str; 3] = [
    origins!(
        "INSERT INTO step
            (thread_id, run, seq, at, schema_version, codec, kind, hash, frontier, delta)
         SELECT ?1, s.run, s.seq, s.at, s.schema_version, s.codec, s.kind, s.hash, s.frontier,
            s.delta
         FROM line l CROSS JOIN step s ON s.thread_id = l.id AND s.seq <= l.upto AND s.seq > ?2"
    ),
    origins!(
        "INSERT INTO snapshot
            (thread_id, seq, schema_version, codec, state, checksum, blobs_codec, blobs)
         SELECT ?1, s.seq, s.schema_version, s.codec, s.state, s.checksum, s.blobs_codec, s.blobs
         FROM line l CROSS JOIN snapshot s
            ON s.thread_id = l.id AND s.seq = ?2 AND s.seq <= l.upto
         WHERE true
         ON CONFLICT DO NOTHING"
    ),
    origins!(
        "INSERT INTO blob (thread_id, hash, step, codec, body)
         SELECT (SELECT coalesce(root_id, id) FROM thread WHERE id = ?1), b.hash, b.step, b.codec,
            b.body
         FROM line l CROSS JOIN thread t ON t.id = l.id
         CROSS JOIN blob b ON b.thread_id = coalesce(t.root_id, t.id)
            AND (t.root_id IS NOT NULL OR b.step <= l.upto)
         WHERE true
         ON CONFLICT (thread_id, hash) DO UPDATE SET step = min(step, excluded.step)"
    ),
];

const DROP: [&str; 5] = [
    "DELETE FROM step WHERE thread_id = ?1 AND seq <= ?2",
    "DELETE FROM snapshot WHERE thread_id = ?1 AND seq < ?2",
    "DELETE FROM effect WHERE thread_id = ?1 AND step <= ?2",
    "DELETE FROM effect_count WHERE thread_id = ?1 AND step <= ?2",
    "UPDATE thread SET base = ?2, parent_id = NULL, parent_seq = NULL WHERE id = ?1",
];

pub(super) async fn truncate(file: &File, thread: ThreadId, seq: u64) -> Result<(), Error> {
    let mut writer = file.writer().await?;
    let refine = |e| Error::from(file.refine(e));
    let mut transaction =
        writer.connection()?.begin_with("BEGIN IMMEDIATE").await.map_err(refine)?;
    let head = threads::read(&mut transaction, thread).await?.info.head;
    for statement in HAND_OVER {
        sqlx::query(statement)
            .bind(thread.0)
            .bind(false)
            .execute(&mut *transaction)
            .await
            .map_err(refine)?;
    }
    run_all(&mut transaction, &TAKE_OVER, thread, seq).await.map_err(refine)?;
    let there: bool = sqlx::query_scalar(
        "SELECT EXISTS (SELECT 1 FROM snapshot WHERE thread_id = ?1 AND seq = ?2)",
    )
    .bind(thread.0)
    .bind(big(seq))
    .fetch_one(&mut *transaction)
    .await?;
    if !there {
        return Err(Error::UnknownStep { thread, seq, head });
    }
    run_all(&mut transaction, &DROP, thread, seq).await.map_err(refine)?;
    transaction.commit().await.map_err(refine)
}

async fn run_all(
    connection: &mut SqliteConnection,
    statements: &[&'static str],
    thread: ThreadId,
    seq: u64,
) -> Result<(), sqlx::Error> {
    for statement in statements {
        sqlx::query(*statement).bind(thread.0).bind(big(seq)).execute(&mut *connection).await?;
    }
    Ok(())
}
