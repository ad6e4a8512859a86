//! Who may write: claims, leases and the runs under them.

use std::time::Duration;

use super::{
    super::{
        Error, RunEnd, RunRow, ThreadInfo, Waiting, Wanted,
        decode::{self, run_columns, thread_columns},
        limits::{big, micros, text},
    },
    refusal::explain,
    threads,
};
use crate::ids::{RunId, ThreadId};
use perihelion_database::{idempotent, postgres::Connections};

const CLAIM: &str = concat!(
    "UPDATE thread SET fence = fence + 1, owner = $2, status = 'busy', error = NULL, woken = false,
        lease_until = now() + $3 * interval '1 microsecond', updated_at = now()
     WHERE id = $1 AND ($4 OR lease_until IS NULL OR lease_until <= now())
        AND ($5::bigint IS NULL OR fence = $5 AND status IN ('queued', 'busy'))
     RETURNING ",
    thread_columns!()
);

/// Looks at a lease that vanished between the attempt and the look are given this many times.
const ATTEMPTS: usize = 3;

/// Takes the lease; where `fence` is given, only while it is the newest and the thread may go on.
///
/// Not repeated after a broken connection: the first attempt may have won, and its lease runs out.
pub(super) async fn claim(
    connections: &Connections,
    thread: ThreadId,
    fence: Option<u64>,
    owner: &str,
    ttl: Duration,
    force: bool,
) -> Result<ThreadInfo, Error> {
    for attempt in 1.. {
        let mut connection = connections.take_tested().await?;
        let claim = sqlx::query(CLAIM)
            .bind(thread.0)
            .bind(text(owner))
            .bind(micros(ttl) as f64)
            .bind(force)
            .bind(fence.map(big))
            .fetch_optional(&mut *connection);
        let row = connections.brief(claim).await;
        if let Some(row) = connection.settle(row)? {
            return Ok(decode::thread(&row)?.info);
        }
        let info = threads::info(connections, thread).await?.info;
        if info.lease_until.is_some() || fence.is_some() || attempt == ATTEMPTS {
            return Err(Error::Busy {
                thread,
                owner: info.owner.unwrap_or_default(),
                until: info.lease_until.unwrap_or(info.updated_at),
            });
        }
    }
    Err(Error::UnknownThread(thread))
}

pub(super) async fn renew(
    connections: &Connections,
    thread: ThreadId,
    fence: u64,
    ttl: Duration,
) -> Result<(), Error> {
    let done = idempotent!(connections, |c| sqlx::query(
        "UPDATE thread SET lease_until = now() + $3 * interval '1 microsecond'
         WHERE id = $1 AND fence = $2"
    )
    .bind(thread.0)
    .bind(big(fence))
    .bind(micros(ttl) as f64)
    .execute(&mut *c))?;
    match done.rows_affected() {
        0 => explain(connections, thread, fence, |_| Ok(())).await,
        _ => Ok(()),
    }
}

const BEGIN_RUN: &str = "WITH held AS (
        UPDATE thread SET status = 'busy', updated_at = now(), runs = runs +
            (NOT EXISTS (SELECT FROM run WHERE thread_id = $1 AND run.id = $3))::integer
        WHERE id = $1 AND fence = $2
        RETURNING id, runs
     ), owing AS (
        INSERT INTO trace_debt (thread_id, from_run, to_run)
        SELECT id, runs, runs FROM held WHERE $4
        ON CONFLICT (thread_id) DO UPDATE SET to_run = excluded.to_run
     )
     INSERT INTO run (thread_id, id, number, status)
     SELECT id, $3, runs, 'running' FROM held
     ON CONFLICT (thread_id, id) DO UPDATE SET status = 'running', ended_at = NULL, finish_reason = NULL
     RETURNING id, number, status, finish_reason, started_at, ended_at";

pub(super) async fn begin_run(
    connections: &Connections,
    thread: ThreadId,
    fence: u64,
    run: RunId,
    owes_trace: bool,
) -> Result<RunRow, Error> {
    let begun = idempotent!(connections, |c| sqlx::query(BEGIN_RUN)
        .bind(thread.0)
        .bind(big(fence))
        .bind(run.0)
        .bind(owes_trace)
        .fetch_optional(&mut *c))?;
    match begun {
        Some(run) => decode::run(&run),
        // The token was stale and is not now: it can only have been made by a later claim.
        None => explain(connections, thread, fence, |place| Err(place.fenced(thread, fence))).await,
    }
}

const END_RUN: &str = "WITH held AS (
        UPDATE thread SET owner = NULL, lease_until = NULL, updated_at = now(), error = $5,
            status = CASE WHEN $4 = 'interrupted' AND woken THEN 'queued' ELSE $4 END
        WHERE id = $1 AND fence = $2
        RETURNING id, status = 'queued' AND root_id IS NULL AS queued
     ), ended AS (
        UPDATE run SET status = $6, finish_reason = $7, ended_at = now() FROM held
        WHERE run.thread_id = held.id AND run.id = $3
     )
     SELECT count(*), count(wake_thread(id)) FILTER (WHERE queued) FROM held";

pub(super) async fn end_run(
    connections: &Connections,
    thread: ThreadId,
    fence: u64,
    run: RunId,
    end: RunEnd<'_>,
) -> Result<(), Error> {
    let held: i64 = idempotent!(connections, |c| sqlx::query_scalar(END_RUN)
        .bind(thread.0)
        .bind(big(fence))
        .bind(run.0)
        .bind(end.thread.as_str())
        .bind(end.error.map(text))
        .bind(end.run.as_str())
        .bind(end.finish_reason.map(text))
        .fetch_one(&mut *c))?;
    match held {
        0 => explain(connections, thread, fence, |place| Err(place.fenced(thread, fence))).await,
        _ => Ok(()),
    }
}

const WAITING: &str =
    "SELECT id, CASE WHEN lease_until > now() THEN owner END AS holder FROM thread
     WHERE status IN ('queued', 'busy') AND root_id IS NULL
        AND graph = $1 AND tenant IS DISTINCT FROM $2
        AND CASE WHEN status = 'queued' THEN updated_at <= now() - $3 * interval '1 microsecond'
            ELSE lease_until IS NULL OR lease_until <= now() OR strpos(owner, $4) > 0 END
     ORDER BY updated_at LIMIT $5 OFFSET $6";

pub(super) async fn waiting(
    connections: &Connections,
    wanted: &Wanted,
) -> Result<Vec<Waiting>, Error> {
    let rows: Vec<(uuid::Uuid, Option<String>)> =
        idempotent!(connections, |c| sqlx::query_as(WAITING)
            .bind(&wanted.graph)
            .bind(wanted.except_tenant.as_deref())
            .bind(micros(wanted.queued_for) as f64)
            .bind(&wanted.machine)
            .bind(i64::from(wanted.limit))
            .bind(i64::from(wanted.skip))
            .fetch_all(&mut *c))?;
    Ok(rows.into_iter().map(|(id, holder)| Waiting { thread: ThreadId(id), holder }).collect())
}

pub(super) async fn runs(
    connections: &Connections,
    thread: ThreadId,
) -> Result<Vec<RunRow>, Error> {
    let rows = idempotent!(connections, |c| each row of sqlx::query(
        concat!("SELECT ", run_columns!(), " FROM run WHERE thread_id = $1 ORDER BY number")
    )
    .bind(thread.0))?;
    if rows.is_empty() {
        threads::info(connections, thread).await?;
    }
    rows.iter().map(decode::run).collect()
}
