//! Reading steps, a fork's shared ones included.

use perihelion_database::sqlite::File;
use sqlx::{Connection, SqliteConnection};

use super::{
    super::{
        Error, Loaded, PendingRow, SnapshotRow, StepRow,
        chain::{not_beyond, reached},
        checksum,
        decode::{self, ThreadRow, snapshot_columns, step_columns},
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
            SELECT id, min(head, ?2) FROM thread WHERE id = ?1
            UNION ALL
            SELECT t.parent_id, min(l.upto, t.parent_seq)
            FROM line l JOIN thread t ON t.id = l.id WHERE t.parent_id IS NOT NULL
         )"
    };
}

const SNAPSHOT: &str = concat!(
    line!(),
    " SELECT ",
    snapshot_columns!(),
    " FROM line CROSS JOIN snapshot s ON s.thread_id = line.id AND s.seq <= line.upto
        AND s.seq = (SELECT max(seq) FROM snapshot
            WHERE thread_id = line.id AND seq <= line.upto)
     ORDER BY s.seq DESC LIMIT 1"
);

const STEPS: &str = concat!(
    line!(),
    " SELECT ",
    step_columns!(),
    " FROM line CROSS JOIN step ON step.thread_id = line.id AND seq > ?3 AND seq <= line.upto
     ORDER BY seq"
);

const PENDING: &str = "SELECT step AS seq, task, codec, body, checksum FROM pending
     WHERE thread_id = ?1 AND step = ?2 ORDER BY task";

const BEYOND: &str = "SELECT min(seq) FROM step WHERE thread_id = ?1 AND seq > ?2";

/// Reads in one transaction, so that all parts are of the same moment.
pub(super) async fn load(file: &File, thread: ThreadId, at: Option<u64>) -> Result<Loaded, Error> {
    let mut reader = file.reader().await?;
    let mut transaction = reader.connection()?.begin().await?;
    let loaded = read(&mut transaction, thread, at).await;
    let ended = transaction.rollback().await;
    reader.settle(ended)?;
    loaded
}

async fn read(
    connection: &mut SqliteConnection,
    thread: ThreadId,
    at: Option<u64>,
) -> Result<Loaded, Error> {
    let ThreadRow { info, base } = threads::read(connection, thread).await?;
    let at = at.unwrap_or(info.head);
    if at > info.head || at < base {
        return Err(Error::UnknownStep { thread, seq: at, head: info.head });
    }
    let beyond = sqlx::query_scalar(BEYOND).bind(thread.0).bind(big(info.head));
    not_beyond(thread, beyond.fetch_one(&mut *connection).await?)?;
    let snapshot = newest_snapshot(connection, thread, at).await?;
    let after = snapshot.as_ref().map_or(0, |snapshot| snapshot.seq);
    let steps = steps(connection, thread, after, at).await?;
    reached(thread, snapshot.as_ref(), &steps, at)?;
    let pending = match at == info.head {
        true => pending(connection, thread, info.head + 1).await?,
        false => Vec::new(),
    };
    Ok(Loaded { info, snapshot, steps, pending })
}

pub(super) async fn newest_snapshot(
    connection: &mut SqliteConnection,
    thread: ThreadId,
    upto: u64,
) -> Result<Option<SnapshotRow>, Error> {
    let row =
        sqlx::query(SNAPSHOT).bind(thread.0).bind(big(upto)).fetch_optional(connection).await?;
    row.as_ref().map(|row| decode::snapshot(thread, row)).transpose()
}

/// Reads steps after `after` up to `upto`, oldest first.
pub(super) async fn steps(
    connection: &mut SqliteConnection,
    thread: ThreadId,
    after: u64,
    upto: u64,
) -> Result<Vec<StepRow>, Error> {
    let rows = sqlx::query(STEPS)
        .bind(thread.0)
        .bind(big(upto))
        .bind(big(after))
        .fetch_all(connection)
        .await?;
    rows.iter().map(decode::step).collect()
}

pub(super) async fn pending(
    connection: &mut SqliteConnection,
    thread: ThreadId,
    step: u64,
) -> Result<Vec<PendingRow>, Error> {
    let rows = sqlx::query(PENDING).bind(thread.0).bind(big(step)).fetch_all(connection).await?;
    rows.iter().map(|row| decode::pending(thread, row)).collect()
}

pub(super) async fn history(
    file: &File,
    thread: ThreadId,
    before: Option<u64>,
    limit: u32,
) -> Result<Vec<StepRow>, Error> {
    let head = threads::info(file, thread).await?.info.head;
    let upto = before.map_or(head, |before| before.saturating_sub(1).min(head));
    let mut reader = file.reader().await?;
    let rows = sqlx::query(STEPS)
        .bind(thread.0)
        .bind(big(upto))
        .bind(big(upto.saturating_sub(u64::from(limit))))
        .fetch_all(reader.connection()?)
        .await;
    reader.settle(rows)?.iter().rev().map(decode::step).collect()
}

const PUT_SNAPSHOT: &str =
    "INSERT INTO snapshot (thread_id, seq, schema_version, codec, state, checksum, blobs_codec, blobs)
     SELECT id, ?2, ?3, ?4, ?5, ?6, ?7, ?8 FROM thread WHERE id = ?1 AND head >= ?2 AND base <= ?2
     ON CONFLICT DO NOTHING";

pub(super) async fn put_snapshot(
    file: &File,
    thread: ThreadId,
    snapshot: &SnapshotRow,
) -> Result<(), Error> {
    let mut writer = file.writer().await?;
    let connection = writer.connection()?;
    let done = sqlx::query(PUT_SNAPSHOT)
        .bind(thread.0)
        .bind(big(snapshot.seq))
        .bind(snapshot.schema_version as i32)
        .bind(snapshot.state.codec as i16)
        .bind(&snapshot.state.bytes[..])
        .bind(&checksum::snapshot(snapshot)[..])
        .bind(snapshot.blobs.as_ref().map(|names| names.codec as i16))
        .bind(snapshot.blobs.as_ref().map(|names| &names.bytes[..]))
        .execute(&mut *connection)
        .await
        .map_err(|e| file.refine(e))?;
    if done.rows_affected() == 0 {
        let head = threads::read(connection, thread).await?.info.head;
        if snapshot.seq > head {
            return Err(Error::UnknownStep { thread, seq: snapshot.seq, head });
        }
    }
    Ok(())
}
