//! Who may write: claims, leases and the runs under them.

use std::time::Duration;

use async_trait::async_trait;
use perihelion_database::{Query, query};

use super::{
    super::{
        Claim, Error, Fence, Leases, RunEnd, RunRow, ThreadInfo, Waiting, Wanted,
        limits::{big, micros},
    },
    Backend, OwnLeases,
    columns::run_columns,
    decode, info, now,
    refusal::explain,
};
use crate::ids::{RunId, ThreadId};

#[async_trait]
impl<B: Backend> Leases for B {
    async fn claim(&self, claim: Claim<'_>) -> Result<ThreadInfo, Error> {
        OwnLeases::claim(self, claim).await
    }

    async fn waiting(&self, wanted: &Wanted) -> Result<Vec<Waiting>, Error> {
        let database = self.database();
        let of_sqlite = waiting!("$7", "$3", "instr");
        let of_postgres = waiting!("now()", "$3 * interval '1 microsecond'", "strpos");
        let waiting = query(database.dialect().pick(of_sqlite, of_postgres))
            .bind(&wanted.graph)
            .bind(wanted.except_tenant.as_deref())
            .bind(micros(wanted.queued_for))
            .bind(&wanted.machine)
            .bind(wanted.limit)
            .bind(wanted.skip)
            .bind(now());
        let rows = database.fetch_all(&waiting).await?;
        rows.iter().map(decode::waiting).collect()
    }

    async fn renew(&self, fence: Fence, ttl: Duration) -> Result<(), Error> {
        let database = self.database();
        let of_sqlite = renew!("$4 + $3");
        let of_postgres = renew!("now() + $3 * interval '1 microsecond'");
        let renew = query(database.dialect().pick(of_sqlite, of_postgres))
            .bind(fence.thread.0)
            .bind(big(fence.token))
            .bind(micros(ttl))
            .bind(now())
            .repeatable();
        if database.execute(&renew).await? == 0 {
            explain(database, fence).await?;
        }
        Ok(())
    }

    async fn begin_run(&self, fence: Fence, run: RunId, exports: bool) -> Result<RunRow, Error> {
        OwnLeases::begin_run(self, fence, run, exports).await
    }

    async fn end_run(&self, fence: Fence, run: RunId, end: RunEnd<'_>) -> Result<(), Error> {
        OwnLeases::end_run(self, fence, run, end).await
    }

    async fn runs(&self, thread: ThreadId) -> Result<Vec<RunRow>, Error> {
        let rows = self.database().fetch_all(&runs(thread)).await?;
        if rows.is_empty() {
            info(self.database(), thread).await?;
        }
        rows.iter().map(decode::run).collect()
    }
}

/// The queue, by a clock; `$since` is how long ago a thread must have been queued.
macro_rules! waiting {
    ($now:literal, $since:literal, $position:literal) => {
        concat!(
            "SELECT id, CASE WHEN lease_until > ",
            $now,
            " THEN owner END AS holder FROM thread
             WHERE status IN ('queued', 'busy') AND root_id IS NULL
                AND graph = $1 AND tenant IS DISTINCT FROM $2
                AND CASE WHEN status = 'queued' THEN updated_at <= ",
            $now,
            " - ",
            $since,
            " ELSE lease_until IS NULL OR lease_until <= ",
            $now,
            " OR ",
            $position,
            "(owner, $4) > 0 END
             ORDER BY updated_at LIMIT $5 OFFSET $6"
        )
    };
}
use waiting;

macro_rules! renew {
    ($until:literal) => {
        // One that comes behind the end of its run would lock a thread at rest.
        concat!(
            "UPDATE thread SET lease_until = ",
            $until,
            " WHERE id = $1 AND fence = $2 AND lease_until IS NOT NULL"
        )
    };
}
use renew;

const RUNS: &str =
    concat!("SELECT ", run_columns!(), " FROM run WHERE thread_id = $1 ORDER BY number");

/// Finds a run that has ended.
pub(in super::super) fn ended(fence: Fence, run: RunId) -> Query {
    query("SELECT 1 AS one FROM run WHERE thread_id = $1 AND id = $2 AND status <> 'running'")
        .bind(fence.thread.0)
        .bind(run.0)
}

/// Reads the runs of a thread, oldest first.
pub(super) fn runs(thread: ThreadId) -> Query {
    query(RUNS).bind(thread.0)
}
