//! Who may write: claims, and the runs under them.

use perihelion_database::idempotent;

use super::{
    super::{
        Claim, Error, Fence, RunEnd, RunRow, ThreadInfo,
        both::{
            OwnLeases,
            columns::{run_columns, thread_columns},
            decode, ended, info,
            refusal::explain,
        },
        limits::{big, micros, text},
    },
    PostgresStore,
};
use crate::ids::RunId;

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

impl OwnLeases for PostgresStore {
    /// Not repeated after a broken connection: the first attempt may have won, and its lease runs out.
    async fn claim(&self, claim: Claim<'_>) -> Result<ThreadInfo, Error> {
        let Claim { thread, seen, owner, ttl, force } = claim;
        for attempt in 1.. {
            let mut connection = self.connections.take_tested().await?;
            let claim = sqlx::query(CLAIM)
                .bind(thread.0)
                .bind(text(owner))
                .bind(micros(ttl) as f64)
                .bind(force)
                .bind(seen.map(big))
                .fetch_optional(&mut *connection);
            let row = self.connections.brief(claim).await;
            if let Some(row) = connection.settle(row)? {
                return Ok(decode::thread(&row.into())?.info);
            }
            let info = info(&self.database, thread).await?.info;
            if info.lease_until.is_some() || seen.is_some() || attempt == ATTEMPTS {
                return Err(info.busy());
            }
        }
        Err(Error::UnknownThread(thread))
    }

    async fn begin_run(&self, fence: Fence, run: RunId, exports: bool) -> Result<RunRow, Error> {
        let begun = idempotent!(self.connections, |c| sqlx::query(BEGIN_RUN)
            .bind(fence.thread.0)
            .bind(big(fence.token))
            .bind(run.0)
            .bind(exports)
            .fetch_optional(&mut *c))?;
        match begun {
            Some(run) => decode::run(&run.into()),
            // The token was stale and is not now: it can only have been made by a later claim.
            None => Err(explain(&self.database, fence).await?.fenced(fence)),
        }
    }

    async fn end_run(&self, fence: Fence, run: RunId, end: RunEnd<'_>) -> Result<(), Error> {
        let token: i64 = idempotent!(self.connections, |c| sqlx::query_scalar(END_RUN)
            .bind(fence.thread.0)
            .bind(big(fence.token))
            .bind(run.0)
            .bind(end.thread.as_str())
            .bind(end.error.map(text))
            .bind(end.run.as_str())
            .bind(end.finish_reason.map(text))
            .fetch_one(&mut *c))?;
        if token > 0 {
            return Ok(());
        }
        let explained = explain(&self.database, fence).await?;
        // The reply to the first sending was lost, or it was given back before: what came after it stands.
        if self.database.fetch_optional(&ended(fence, run)).await?.is_some() {
            return Ok(());
        }
        Err(explained.fenced(fence))
    }
}

const BEGIN_RUN: &str = concat!(
    "WITH leased AS (
        UPDATE thread SET status = 'busy', updated_at = now(), runs = runs +
            (NOT EXISTS (SELECT FROM run WHERE thread_id = $1 AND run.id = $3))::integer
        WHERE id = $1 AND fence = $2
        RETURNING id, runs
     ), pending_export AS (
        INSERT INTO trace_debt (thread_id, from_run, to_run)
        SELECT id, runs, runs FROM leased WHERE $4
        ON CONFLICT (thread_id) DO UPDATE SET to_run = excluded.to_run
     )
     INSERT INTO run (thread_id, id, number, status)
     SELECT id, $3, runs, 'running' FROM leased
     ON CONFLICT (thread_id, id) DO UPDATE SET status = 'running', ended_at = NULL, finish_reason = NULL
     RETURNING ",
    run_columns!()
);

const END_RUN: &str = "WITH leased AS (
        UPDATE thread SET owner = NULL, lease_until = NULL, updated_at = now(), error = $5,
            status = CASE WHEN $4 = 'interrupted' AND woken THEN 'queued' ELSE $4 END
        WHERE id = $1 AND fence = $2 AND NOT EXISTS (SELECT 1 FROM run
            WHERE run.thread_id = $1 AND run.id = $3 AND run.status <> 'running')
        RETURNING id, status = 'queued' AND root_id IS NULL AS queued
     ), ended AS (
        UPDATE run SET status = $6, finish_reason = $7, ended_at = now() FROM leased
        WHERE run.thread_id = leased.id AND run.id = $3
     )
     SELECT count(*), count(wake_thread(id)) FILTER (WHERE queued) FROM leased";
