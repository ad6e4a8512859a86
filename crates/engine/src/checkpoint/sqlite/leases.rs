//! Who may write: claims, leases and the runs under them.

use std::time::Duration;

use perihelion_database::sqlite::File;
use sqlx::Connection;

use super::{
    super::{
        Error, RunEnd, RunRow, ThreadInfo, Waiting, Wanted,
        decode::{self, run_columns, thread_columns},
        limits::{big, micros, moment, text},
    },
    refusal::check,
    threads,
};
use crate::{
    clock,
    ids::{RunId, ThreadId},
};

const CLAIM: &str = concat!(
    "UPDATE thread SET fence = fence + 1, owner = ?2, status = 'busy', error = NULL, woken = 0,
        lease_until = ?4 + ?3, updated_at = ?4
     WHERE id = ?1 AND (?5 OR lease_until IS NULL OR lease_until <= ?4)
        AND (?6 IS NULL OR fence = ?6 AND status IN ('queued', 'busy'))
     RETURNING ",
    thread_columns!()
);

/// Returns the time as stored; all processes of one file share one machine, and so its clock.
pub(super) fn now() -> i64 {
    moment(clock::now()).timestamp_micros()
}

/// Takes the lease; where `fence` is given, only while it is the newest and the thread may go on.
pub(super) async fn claim(
    file: &File,
    thread: ThreadId,
    fence: Option<u64>,
    owner: &str,
    ttl: Duration,
    force: bool,
) -> Result<ThreadInfo, Error> {
    let mut writer = file.writer().await?;
    let connection = writer.connection()?;
    // Every statement with RETURNING is read to its end: only then has it committed.
    let rows = sqlx::query(CLAIM)
        .bind(thread.0)
        .bind(text(owner))
        .bind(micros(ttl))
        .bind(now())
        .bind(force)
        .bind(fence.map(big))
        .fetch_all(&mut *connection)
        .await
        .map_err(|e| file.refine(e))?;
    if let Some(row) = rows.first() {
        return Ok(decode::thread(row)?.info);
    }
    let info = threads::read(connection, thread).await?.info;
    Err(Error::Busy {
        thread,
        owner: info.owner.unwrap_or_default(),
        until: info.lease_until.unwrap_or(info.updated_at),
    })
}

const RENEW: &str = "UPDATE thread SET lease_until = ?3 + ?4 WHERE id = ?1 AND fence = ?2";

pub(super) async fn renew(
    file: &File,
    thread: ThreadId,
    fence: u64,
    ttl: Duration,
) -> Result<(), Error> {
    let statement =
        sqlx::query(RENEW).bind(thread.0).bind(big(fence)).bind(now()).bind(micros(ttl));
    if file.write(statement).await.map_err(|e| file.refine(e))? == 0 {
        check(file.writer().await?.connection()?, thread, fence).await?;
    }
    Ok(())
}

const COUNT_RUN: &str = "UPDATE thread SET status = 'busy', updated_at = ?3, runs = runs +
        NOT EXISTS (SELECT 1 FROM run WHERE thread_id = ?1 AND run.id = ?2)
     WHERE id = ?1";

const BEGIN_RUN: &str = "INSERT INTO run (thread_id, id, number, status, started_at)
     SELECT id, ?2, runs, 'running', ?3 FROM thread WHERE id = ?1
     ON CONFLICT (thread_id, id) DO UPDATE SET status = 'running', ended_at = NULL, finish_reason = NULL
     RETURNING id, number, status, finish_reason, started_at, ended_at";

const OWE: &str = "INSERT INTO trace_debt (thread_id, from_run, to_run, since)
     SELECT id, runs, runs, ?2 FROM thread WHERE id = ?1
     ON CONFLICT (thread_id) DO UPDATE SET to_run = excluded.to_run";

pub(super) async fn begin_run(
    file: &File,
    thread: ThreadId,
    fence: u64,
    run: RunId,
    owes_trace: bool,
) -> Result<RunRow, Error> {
    let mut writer = file.writer().await?;
    let refine = |e| Error::from(file.refine(e));
    let mut transaction =
        writer.connection()?.begin_with("BEGIN IMMEDIATE").await.map_err(refine)?;
    check(&mut transaction, thread, fence).await?;
    let now = now();
    sqlx::query(COUNT_RUN)
        .bind(thread.0)
        .bind(run.0)
        .bind(now)
        .execute(&mut *transaction)
        .await
        .map_err(refine)?;
    let begun = sqlx::query(BEGIN_RUN)
        .bind(thread.0)
        .bind(run.0)
        .bind(now)
        .fetch_all(&mut *transaction)
        .await
        .map_err(refine)?;
    if owes_trace {
        let owe = sqlx::query(OWE).bind(thread.0).bind(now);
        owe.execute(&mut *transaction).await.map_err(refine)?;
    }
    transaction.commit().await.map_err(refine)?;
    begun.first().map(decode::run).ok_or(Error::UnknownThread(thread))?
}

const RELEASE: &str = "UPDATE thread SET
        status = CASE WHEN ?2 = 'interrupted' AND woken THEN 'queued' ELSE ?2 END, error = ?3, owner = NULL, lease_until = NULL,
        updated_at = ?4
     WHERE id = ?1";

const END: &str = "UPDATE run SET status = ?3, ended_at = ?4, finish_reason = ?5
     WHERE thread_id = ?1 AND id = ?2";

pub(super) async fn end_run(
    file: &File,
    thread: ThreadId,
    fence: u64,
    run: RunId,
    end: RunEnd<'_>,
) -> Result<(), Error> {
    let mut writer = file.writer().await?;
    let refine = |e| Error::from(file.refine(e));
    let mut transaction =
        writer.connection()?.begin_with("BEGIN IMMEDIATE").await.map_err(refine)?;
    check(&mut transaction, thread, fence).await?;
    let now = now();
    sqlx::query(RELEASE)
        .bind(thread.0)
        .bind(end.thread.as_str())
        .bind(end.error.map(text))
        .bind(now)
        .execute(&mut *transaction)
        .await
        .map_err(refine)?;
    sqlx::query(END)
        .bind(thread.0)
        .bind(run.0)
        .bind(end.run.as_str())
        .bind(now)
        .bind(end.finish_reason.map(text))
        .execute(&mut *transaction)
        .await
        .map_err(refine)?;
    transaction.commit().await.map_err(refine)
}

const WAITING: &str = "SELECT id, CASE WHEN lease_until > ?5 THEN owner END AS holder FROM thread
     WHERE status IN ('queued', 'busy') AND root_id IS NULL
        AND graph = ?1 AND tenant IS NOT ?2
        AND CASE WHEN status = 'queued' THEN updated_at <= ?3
            ELSE lease_until IS NULL OR lease_until <= ?5 OR instr(owner, ?4) > 0 END
     ORDER BY updated_at LIMIT ?6 OFFSET ?7";

pub(super) async fn waiting(file: &File, wanted: &Wanted) -> Result<Vec<Waiting>, Error> {
    let mut reader = file.reader().await?;
    let now = now();
    let rows = sqlx::query_as(WAITING)
        .bind(&wanted.graph)
        .bind(wanted.except_tenant.as_deref())
        .bind(now - micros(wanted.queued_for))
        .bind(&wanted.machine)
        .bind(now)
        .bind(i64::from(wanted.limit))
        .bind(i64::from(wanted.skip))
        .fetch_all(reader.connection()?)
        .await;
    let rows: Vec<(uuid::Uuid, Option<String>)> = reader.settle(rows)?;
    Ok(rows.into_iter().map(|(id, holder)| Waiting { thread: ThreadId(id), holder }).collect())
}

pub(super) async fn runs(file: &File, thread: ThreadId) -> Result<Vec<RunRow>, Error> {
    let mut reader = file.reader().await?;
    let rows = sqlx::query(concat!(
        "SELECT ",
        run_columns!(),
        " FROM run WHERE thread_id = ?1 ORDER BY number"
    ))
    .bind(thread.0)
    .fetch_all(reader.connection()?)
    .await;
    let rows = reader.settle(rows)?;
    if rows.is_empty() {
        threads::info(file, thread).await?;
    }
    rows.iter().map(decode::run).collect()
}
