//! Threads as such: made, forked, looked up, listed.

use perihelion_database::sqlite::{File, code};
use sqlx::{Connection, SqliteConnection};

use super::{
    super::{
        Error, NewThread, ThreadFilter, ThreadInfo, ThreadStatus,
        decode::{self, ThreadRow, thread_columns},
        limits::{big, text},
    },
    leases::now,
};
use crate::ids::ThreadId;

const INFO: &str = concat!("SELECT ", thread_columns!(), " FROM thread WHERE id = ?1");

const CREATE: &str = concat!(
    "INSERT INTO thread (id, root_id, parent_id, parent_seq, head, base, graph, title, namespace,
        tenant, created_at, updated_at)
     VALUES (?1, ?2, ?3, ?4, coalesce(?4, 0), ?5, ?6, ?7, ?8, ?9, ?10, ?10)
     RETURNING ",
    thread_columns!()
);

const LIST: &str = concat!(
    "SELECT ",
    thread_columns!(),
    " FROM thread
     WHERE (?1 IS NULL OR status = ?1) AND (?2 OR root_id IS NULL)
        AND (?5 IS NULL OR root_id = ?5) AND (?3 IS NULL OR updated_at < ?3)
     ORDER BY updated_at DESC, id DESC LIMIT ?4"
);

const COUNT: &str =
    "SELECT status, count(*) AS threads FROM thread WHERE root_id IS NULL GROUP BY status";

/// SQLITE_CONSTRAINT_PRIMARYKEY
pub(super) const TAKEN: &str = "1555";
/// SQLITE_CONSTRAINT_FOREIGNKEY
const NO_ROOT: &str = "787";

/// Makes a thread; with `origin`, one that shares that thread's history up to that step.
pub(super) async fn create(
    file: &File,
    new: &NewThread,
    origin: Option<(ThreadId, u64)>,
) -> Result<ThreadInfo, Error> {
    let mut writer = file.writer().await?;
    let mut transaction =
        writer.connection()?.begin_with("BEGIN IMMEDIATE").await.map_err(|e| file.refine(e))?;
    let mut base = 0;
    if let Some((source, at)) = origin {
        let found = read(&mut transaction, source).await?;
        let head = found.info.head;
        base = found.base;
        if at > head || at < base {
            return Err(Error::UnknownStep { thread: source, seq: at, head });
        }
    }
    let rows = sqlx::query(CREATE)
        .bind(new.id.0)
        .bind(new.root.map(|id| id.0))
        .bind(origin.map(|(source, _)| source.0))
        .bind(origin.map(|(_, at)| big(at)))
        .bind(big(base))
        .bind(text(&new.graph))
        .bind(new.title.as_deref().map(text))
        .bind(text(&new.namespace))
        .bind(text(&new.tenant))
        .bind(now())
        .fetch_all(&mut *transaction)
        .await
        .map_err(|error| match code(&error).as_deref() {
            Some(TAKEN) => Error::ThreadExists(new.id),
            Some(NO_ROOT) => Error::UnknownThread(new.root.unwrap_or(new.id)),
            _ => file.refine(error).into(),
        })?;
    transaction.commit().await.map_err(|e| file.refine(e))?;
    let row = rows.first().ok_or(Error::UnknownThread(new.id))?;
    Ok(decode::thread(row)?.info)
}

pub(super) async fn read(
    connection: &mut SqliteConnection,
    thread: ThreadId,
) -> Result<ThreadRow, Error> {
    let row = sqlx::query(INFO).bind(thread.0).fetch_optional(connection).await?;
    decode::thread(&row.ok_or(Error::UnknownThread(thread))?)
}

pub(super) async fn info(file: &File, thread: ThreadId) -> Result<ThreadRow, Error> {
    let mut reader = file.reader().await?;
    let row = sqlx::query(INFO).bind(thread.0).fetch_optional(reader.connection()?).await;
    decode::thread(&reader.settle(row)?.ok_or(Error::UnknownThread(thread))?)
}

pub(super) async fn list(file: &File, filter: &ThreadFilter) -> Result<Vec<ThreadInfo>, Error> {
    let mut reader = file.reader().await?;
    let rows = sqlx::query(LIST)
        .bind(filter.status.map(|status| status.as_str()))
        .bind(filter.with_children || filter.root.is_some())
        .bind(filter.updated_before.map(|time| time.timestamp_micros()))
        .bind(filter.limit.map_or(-1, i64::from))
        .bind(filter.root.map(|root| root.0))
        .fetch_all(reader.connection()?)
        .await;
    reader.settle(rows)?.iter().map(|row| Ok(decode::thread(row)?.info)).collect()
}

pub(super) async fn count(file: &File) -> Result<Vec<(ThreadStatus, u64)>, Error> {
    let mut reader = file.reader().await?;
    let rows = sqlx::query(COUNT).fetch_all(reader.connection()?).await;
    reader.settle(rows)?.iter().map(decode::counted).collect()
}
