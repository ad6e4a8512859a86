//! Reading steps, a fork's shared ones included.

use perihelion_database::{idempotent, postgres::Connections};
use sqlx::Row;

use super::{
    super::{
        Error, Loaded, PendingRow, SnapshotRow, StepRow,
        chain::{not_beyond, reached},
        checksum,
        decode::{self, ThreadRow, step_columns},
        limits::big,
    },
    threads,
};
use crate::ids::ThreadId;

/// The thread and those it was forked from, each with the last step that counts in it.
///
/// Own steps begin after `parent_seq`, so no step is found twice.
macro_rules! line {
    () => {
        "WITH RECURSIVE line (id, upto) AS (
            SELECT id, least(head, $2) FROM thread WHERE id = $1
            UNION ALL
            SELECT t.parent_id, least(l.upto, t.parent_seq)
            FROM line l JOIN thread t ON t.id = l.id WHERE t.parent_id IS NOT NULL
         )"
    };
}

/// Snapshot (0), steps (1), pending writes (2) and a step that the head has not reached (3) in one consistent read.
const LOAD: &str = concat!(
    line!(),
    ", newest AS (
        SELECT s.* FROM line CROSS JOIN LATERAL (
            SELECT * FROM snapshot WHERE thread_id = line.id AND seq <= line.upto
            ORDER BY seq DESC LIMIT 1
        ) s ORDER BY s.seq DESC LIMIT 1
     )
     SELECT 0 AS part, seq, schema_version, codec, state AS body, checksum, blobs_codec, blobs,
        NULL::uuid AS run, NULL::timestamptz AS at, NULL::text AS kind, NULL::bytea AS hash,
        NULL::bytea AS frontier, NULL::integer AS task
     FROM newest
     UNION ALL
     SELECT 1, s.seq, s.schema_version, s.codec, s.delta, NULL, NULL, NULL, s.run, s.at, s.kind, s.hash, s.frontier, NULL
     FROM line JOIN step s ON s.thread_id = line.id AND s.seq <= line.upto
        AND s.seq > coalesce((SELECT seq FROM newest), 0)
     UNION ALL
     SELECT 2, p.step, NULL, p.codec, p.body, p.checksum, NULL, NULL, NULL, NULL, NULL, NULL, NULL, p.task
     FROM pending p JOIN thread t ON t.id = p.thread_id
     WHERE t.id = $1 AND p.step = t.head + 1 AND t.head <= $2
     UNION ALL
     SELECT 3, (SELECT min(s.seq) FROM step s WHERE s.thread_id = t.id AND s.seq > t.head),
        NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL
     FROM thread t WHERE t.id = $1"
);

pub(super) async fn load(
    connections: &Connections,
    thread: ThreadId,
    at: Option<u64>,
) -> Result<Loaded, Error> {
    let ThreadRow { mut info, base } = threads::info(connections, thread).await?;
    let head = info.head;
    if at.is_some_and(|at| at > head || at < base) {
        return Err(Error::UnknownStep { thread, seq: at.unwrap_or(head), head });
    }
    let rows = idempotent!(connections, |c| each row of sqlx::query(LOAD)
        .bind(thread.0)
        .bind(at.map_or(i64::MAX, big)))?;
    let mut snapshot = None;
    let mut steps: Vec<StepRow> = Vec::with_capacity(rows.len());
    let mut pending: Vec<PendingRow> = Vec::new();
    for row in &rows {
        match row.try_get::<i32, _>("part")? {
            0 => snapshot = Some(decode::snapshot(thread, row)?),
            1 => steps.push(decode::step(row)?),
            2 => pending.push(decode::pending(thread, row)?),
            _ => not_beyond(thread, row.try_get("seq")?)?,
        }
    }
    steps.sort_unstable_by_key(|step| step.seq);
    pending.sort_unstable_by_key(|row| row.task);
    // Somebody may have committed, or deleted the thread, between the two reads; the second one is
    // consistent in itself.
    let reached = match reached(thread, snapshot.as_ref(), &steps, at.unwrap_or(head)) {
        Ok(reached) => reached,
        Err(error) => return Err(threads::info(connections, thread).await.err().unwrap_or(error)),
    };
    info.head = head.max(reached);
    Ok(Loaded { info, snapshot, steps, pending })
}

const HISTORY: &str = concat!(
    line!(),
    " SELECT s.* FROM line CROSS JOIN LATERAL (
        SELECT ",
    step_columns!(),
    " FROM step WHERE thread_id = line.id AND seq <= line.upto ORDER BY seq DESC LIMIT $3
     ) s ORDER BY s.seq DESC LIMIT $3"
);

pub(super) async fn history(
    connections: &Connections,
    thread: ThreadId,
    before: Option<u64>,
    limit: u32,
) -> Result<Vec<StepRow>, Error> {
    let upto = before.map_or(i64::MAX, |before| big(before.saturating_sub(1)));
    let rows = idempotent!(connections, |c| each row of sqlx::query(HISTORY)
        .bind(thread.0)
        .bind(upto)
        .bind(i64::from(limit)))?;
    if rows.is_empty() {
        threads::info(connections, thread).await?;
    }
    rows.iter().map(decode::step).collect()
}

/// A thread that is deleted or truncated meanwhile keeps its row locked: then nothing is written.
const PUT_SNAPSHOT: &str = "WITH held AS (
        SELECT id, base FROM thread WHERE id = $1 AND head >= $2 FOR KEY SHARE
     ), put AS (
        INSERT INTO snapshot
            (thread_id, seq, schema_version, codec, state, checksum, blobs_codec, blobs)
        SELECT id, $2, $3, $4, $5, $6, $7, $8 FROM held WHERE base <= $2
        ON CONFLICT (thread_id, seq) DO NOTHING
     )
     SELECT count(*) FROM held";

pub(super) async fn put_snapshot(
    connections: &Connections,
    thread: ThreadId,
    snapshot: &SnapshotRow,
) -> Result<(), Error> {
    let held: i64 = idempotent!(connections, |c| sqlx::query_scalar(PUT_SNAPSHOT)
        .bind(thread.0)
        .bind(big(snapshot.seq))
        .bind(snapshot.schema_version as i32)
        .bind(snapshot.state.codec as i16)
        .bind(&snapshot.state.bytes[..])
        .bind(&checksum::snapshot(snapshot)[..])
        .bind(snapshot.blobs.as_ref().map(|names| names.codec as i16))
        .bind(snapshot.blobs.as_ref().map(|names| &names.bytes[..]))
        .fetch_one(&mut *c))?;
    if held == 0 {
        let head = threads::info(connections, thread).await?.info.head;
        return Err(Error::UnknownStep { thread, seq: snapshot.seq, head });
    }
    Ok(())
}
