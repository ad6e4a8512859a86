//! Threads as such: made, forked, looked up, listed.

use chrono::{DateTime, Utc};
use perihelion_database::{
    idempotent,
    postgres::{Borrowed, Connections, code},
};
use sqlx::{Connection, PgConnection, Row};

use super::super::{
    Error, NewThread, ThreadFilter, ThreadInfo, ThreadStatus,
    decode::{self, ThreadRow, thread_columns},
    limits::{big, text},
};
use crate::ids::ThreadId;

const INFO: &str = concat!("SELECT ", thread_columns!(), " FROM thread WHERE id = $1");

const CREATE: &str = concat!(
    "INSERT INTO thread
        (id, root_id, parent_id, parent_seq, head, base, graph, title, namespace, tenant)
     VALUES ($1, $2, $3, $4, coalesce($4, 0), $5, $6, $7, $8, $9)
     RETURNING ",
    thread_columns!()
);

const LIST: &str = concat!(
    "SELECT ",
    thread_columns!(),
    " FROM thread
     WHERE ($1::text IS NULL OR status = $1) AND ($2 OR root_id IS NULL)
        AND ($5::uuid IS NULL OR root_id = $5) AND ($3::timestamptz IS NULL OR updated_at < $3)
     ORDER BY updated_at DESC, id DESC LIMIT $4"
);

pub(super) async fn create(
    connections: &Connections,
    new: &NewThread,
) -> Result<ThreadInfo, Error> {
    let mut connection = connections.take_tested().await?;
    let made = connections.brief(insert(&mut connection, new, None)).await;
    name_refusal(connection, made, new, None)
}

/// Makes a thread that shares the history of `source` up to `at`.
///
/// The source's row is held meanwhile, so that it cannot be deleted or truncated under the fork.
pub(super) async fn fork(
    connections: &Connections,
    source: ThreadId,
    at: u64,
    new: &NewThread,
) -> Result<ThreadInfo, Error> {
    let mut connection = connections.take_tested().await?;
    let mut transaction = connections.brief(connection.begin()).await?;
    let place = sqlx::query("SELECT head, base FROM thread WHERE id = $1 FOR KEY SHARE")
        .bind(source.0)
        .fetch_optional(&mut *transaction);
    let place = connections.brief(place).await?;
    let Some(place) = place else { return Err(Error::UnknownThread(source)) };
    let head = place.try_get::<i64, _>("head")? as u64;
    let base = place.try_get::<i64, _>("base")? as u64;
    if at > head || at < base {
        return Err(Error::UnknownStep { thread: source, seq: at, head });
    }
    let inserted = connections.brief(insert(&mut transaction, new, Some((source, at, base)))).await;
    let made = match inserted {
        Ok(made) => connections.brief(transaction.commit()).await.map(|()| made),
        Err(refused) => {
            drop(transaction);
            Err(refused)
        }
    };
    name_refusal(connection, made, new, Some(source))
}

async fn insert(
    connection: &mut PgConnection,
    new: &NewThread,
    origin: Option<(ThreadId, u64, u64)>,
) -> Result<sqlx::postgres::PgRow, sqlx::Error> {
    sqlx::query(CREATE)
        .bind(new.id.0)
        .bind(new.root.map(|id| id.0))
        .bind(origin.map(|(source, ..)| source.0))
        .bind(origin.map(|(_, at, _)| big(at)))
        .bind(origin.map_or(0, |(.., base)| big(base)))
        .bind(text(&new.graph))
        .bind(new.title.as_deref().map(text))
        .bind(text(&new.namespace))
        .bind(text(&new.tenant))
        .fetch_one(connection)
        .await
}

fn name_refusal(
    connection: Borrowed<'_>,
    made: Result<sqlx::postgres::PgRow, sqlx::Error>,
    new: &NewThread,
    source: Option<ThreadId>,
) -> Result<ThreadInfo, Error> {
    match made {
        // unique_violation, foreign_key_violation
        Err(error) if code(&error) == Some("23505") => Err(Error::ThreadExists(new.id)),
        Err(error) if code(&error) == Some("23503") => {
            Err(Error::UnknownThread(new.root.or(source).unwrap_or(new.id)))
        }
        made => Ok(decode::thread(&connection.settle(made)?)?.info),
    }
}

pub(super) async fn info(connections: &Connections, thread: ThreadId) -> Result<ThreadRow, Error> {
    let row =
        idempotent!(connections, |c| sqlx::query(INFO).bind(thread.0).fetch_optional(&mut *c))?;
    decode::thread(&row.ok_or(Error::UnknownThread(thread))?)
}

pub(super) async fn list(
    connections: &Connections,
    filter: &ThreadFilter,
) -> Result<Vec<ThreadInfo>, Error> {
    let rows = idempotent!(connections, |c| each row of sqlx::query(LIST)
        .bind(filter.status.map(|status| status.as_str()))
        .bind(filter.with_children || filter.root.is_some())
        .bind(filter.updated_before)
        .bind(filter.limit.map(i64::from))
        .bind(filter.root.map(|root| root.0)))?;
    rows.iter().map(|row| Ok(decode::thread(row)?.info)).collect()
}

/// Returns the server's time.
pub(super) async fn now(connections: &Connections) -> Result<DateTime<Utc>, Error> {
    Ok(idempotent!(connections, |c| sqlx::query_scalar("SELECT now()").fetch_one(&mut *c))?)
}

pub(super) async fn count(connections: &Connections) -> Result<Vec<(ThreadStatus, u64)>, Error> {
    let rows = idempotent!(connections, |c| sqlx::query(
        "SELECT status, count(*) AS threads FROM thread WHERE root_id IS NULL GROUP BY status"
    )
    .fetch_all(&mut *c))?;
    rows.iter().map(decode::counted).collect()
}
