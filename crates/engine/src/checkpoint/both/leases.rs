//! The right to write: claims, leases and the runs under them, and the reasons why a fenced statement changed no row.

use std::time::Duration;

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use perihelion_database::{Database, Dialect, Query, Row, query};

use super::super::limits::{big, micros, text};
use super::super::{
    Begun, Claim, Error, Fence, Leases, Result, RunEnd, RunRow, ThreadInfo, Waiting, WorkFilter,
};
use super::decode::{self, run_columns, thread_columns};
use super::{Backend, info, now, with_rows, worded};
use crate::failpoint::{Point, Side, reach};
use crate::ids::{RunId, ThreadId};

#[async_trait]
impl<B: Backend> Leases for B {
    async fn claim(&self, claim: Claim<'_>) -> Result<ThreadInfo> {
        let database = self.database();
        let claim_once = || async {
            let statement = claiming(database.dialect(), CLAIM, claim, now());
            let row = claimed(database, claim, statement).await?;
            Ok(decode::thread(&row)?.info)
        };
        with_rows(self, claim_once).await
    }

    async fn waiting(&self, wanted: &WorkFilter) -> Result<Vec<Waiting>> {
        let database = self.database();
        let marks = [
            ("{now}", "$7", "now()"),
            ("{since}", "$3", "$3 * interval '1 microsecond'"),
            ("{position}", "instr", "strpos"),
        ];
        let waiting = worded(database.dialect(), WAITING, &marks)
            .binds((&wanted.graph, wanted.except_tenant.as_deref(), micros(wanted.queued_for)))
            .binds((&wanted.machine, wanted.limit, wanted.skip, now()));
        let rows = database.fetch_all(&waiting).await?;
        rows.iter().map(decode::waiting).collect()
    }

    async fn renew(&self, fence: Fence, ttl: Duration) -> Result<()> {
        let database = self.database();
        let renew = worded(database.dialect(), RENEW, &[UNTIL])
            .binds((fence.thread.0, big(fence.token), micros(ttl), now()))
            .repeatable();
        if database.execute(&renew).await? == 0 {
            explain(database, fence).await?;
        }
        Ok(())
    }

    async fn begin_run(&self, fence: Fence, run: RunId, exports: bool) -> Result<RunRow> {
        let database = self.database();
        let begin = query(database.dialect().pick(BEGIN_RUN_ON_SQLITE, BEGIN_RUN_ON_POSTGRES))
            .several()
            .binds((fence.thread.0, big(fence.token), run.0, exports, now()))
            .repeatable();
        match database.execute_returning(&begin).await? {
            Some(run) => decode::run(&run),
            // The token was stale and is not now: it can only have been made by a later claim.
            None => Err(explain(database, fence).await?.fenced(fence)),
        }
    }

    async fn end_run(&self, fence: Fence, run: RunId, end: RunEnd<'_>) -> Result<()> {
        Backend::end_run(self, fence, run, end).await
    }

    async fn runs(&self, thread: ThreadId) -> Result<Vec<RunRow>> {
        let rows = self.database().fetch_all(&runs(thread)).await?;
        if rows.is_empty() {
            info(self.database(), thread).await?;
        }
        rows.iter().map(decode::run).collect()
    }
}

/// Looks at a lease that vanished between the attempt and the look are given this many times.
const ATTEMPTS: usize = 3;

/// Claims a thread and starts a run in one write; see [`Store`](super::super::Store).
pub(in super::super) async fn claim_and_begin<B: Backend>(
    store: &B,
    claim: Claim<'_>,
    exports: bool,
) -> Result<Begun> {
    let database = store.database();
    let dialect = database.dialect();
    let begin_once = || async {
        let begin = dialect.pick(BEGIN_ON_SQLITE, BEGIN_ON_POSTGRES);
        let at = now();
        let begin = claiming(dialect, begin, claim, at).binds((RunId::begun_at(at).0, exports));
        let begin = begin.several();
        decode::begun(&claimed(database, claim, begin).await?)
    };
    with_rows(store, begin_once).await
}

fn claiming(dialect: Dialect, statement: &str, claim: Claim<'_>, at: DateTime<Utc>) -> Query {
    let Claim { thread, seen, owner, ttl, force } = claim;
    let values = (thread.0, text(owner), micros(ttl), at, force, seen.map(big));
    worded(dialect, statement, &[NOW, UNTIL]).binds(values)
}

/// Sends the statement of a claim and returns its row, or an error that names the holder.
///
/// Not repeated after a broken connection: the first attempt may have won, and its lease runs out.
async fn claimed(database: &Database, claim: Claim<'_>, statement: Query) -> Result<Row> {
    for attempt in 1.. {
        if let Some(row) = database.execute_returning(&statement).await? {
            return Ok(row);
        }
        let info = info(database, claim.thread).await?.info.present()?;
        if info.lease_until.is_some() || claim.seen.is_some() || attempt == ATTEMPTS {
            return Err(info.busy());
        }
    }
    Err(Error::UnknownThread(claim.thread))
}

/// The present of a claim, and the end of a lease.
const NOW: (&str, &str, &str) = ("{now}", "$4", "now()");
const UNTIL: (&str, &str, &str) = ("{until}", "$4 + $3", "now() + $3 * interval '1 microsecond'");

/// The statement of a claim, which also sets and returns more.
macro_rules! claim {
    ($set:literal, $returned:literal) => {
        concat!(
            "UPDATE thread SET fence = fence + 1, owner = $2, status = 'busy', error = NULL,
                woken = false, lease_until = {until}, updated_at = {now}",
            $set,
            " WHERE id = $1 AND archived IS NULL AND ($5 OR lease_until IS NULL OR lease_until <= {now})
                AND ($6 IS NULL OR fence = $6 AND status IN ('queued', 'busy')) RETURNING ",
            thread_columns!(),
            $returned
        )
    };
}

const CLAIM: &str = claim!("", "");

/// The beginning of the run's ID is the time, as in each UUIDv7.
const BEGIN_ON_POSTGRES: &str = concat!(
    "WITH claimed AS (",
    claim!(", runs = runs + 1", ", runs, events, events_step"),
    "), begun AS (
        INSERT INTO run (thread_id, id, number, status)
        SELECT id, (lpad(to_hex(floor(extract(epoch FROM now()) * 1000)::bigint), 12, '0')
            || substr(replace($7::text, '-', ''), 13))::uuid, runs, 'running' FROM claimed
        RETURNING thread_id, id AS run
     ), pending_export AS (
        INSERT INTO trace_debt (thread_id, from_run, to_run)
        SELECT id, runs, runs FROM claimed WHERE $8
        ON CONFLICT (thread_id) DO UPDATE SET to_run = excluded.to_run
     )
     SELECT claimed.*, begun.run FROM claimed JOIN begun ON begun.thread_id = claimed.id"
);

const BEGIN_ON_SQLITE: &str = concat!(
    claim!(", runs = runs + 1", ", events, events_step, $7 AS run"),
    "; INSERT INTO run (thread_id, id, number, status, started_at)
     SELECT id, $7, runs, 'running', $4 FROM thread WHERE id = $1 AND changes() > 0;
     INSERT INTO trace_debt (thread_id, from_run, to_run, since)
     SELECT thread_id, number, number, $4 FROM run WHERE thread_id = $1 AND id = $7 AND $8
     ON CONFLICT (thread_id) DO UPDATE SET to_run = excluded.to_run"
);

/// A run that is there continues.
macro_rules! begun_again {
    () => {
        concat!(
            "ON CONFLICT (thread_id, id)
                DO UPDATE SET status = 'running', ended_at = NULL, finish_reason = NULL
             RETURNING ",
            run_columns!()
        )
    };
}

const BEGIN_RUN_ON_POSTGRES: &str = concat!(
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
     SELECT id, $3, runs, 'running' FROM leased ",
    begun_again!()
);

const BEGIN_RUN_ON_SQLITE: &str = concat!(
    "UPDATE thread SET status = 'busy', updated_at = $5, runs = runs +
        NOT EXISTS (SELECT 1 FROM run WHERE thread_id = $1 AND run.id = $3)
     WHERE id = $1 AND fence = $2;
     INSERT INTO trace_debt (thread_id, from_run, to_run, since)
     SELECT id, runs, runs, $5 FROM thread WHERE id = $1 AND fence = $2 AND $4
     ON CONFLICT (thread_id) DO UPDATE SET to_run = excluded.to_run;
     INSERT INTO run (thread_id, id, number, status, started_at)
     SELECT id, $3, runs, 'running', $5 FROM thread WHERE id = $1 AND fence = $2 ",
    begun_again!()
);

/// The queue, by a clock; `{since}` is how long ago a thread must have been queued.
const WAITING: &str =
    "SELECT id, CASE WHEN lease_until > {now} THEN owner END AS holder FROM thread
     WHERE status IN ('queued', 'busy') AND root_id IS NULL
        AND graph = $1 AND tenant IS DISTINCT FROM $2
        AND CASE WHEN status = 'queued' THEN updated_at <= {now} - {since}
            ELSE lease_until IS NULL OR lease_until <= {now} OR {position}(owner, $4) > 0 END
     ORDER BY updated_at LIMIT $5 OFFSET $6";

/// One that comes behind the end of its run would lock a thread at rest.
const RENEW: &str = "UPDATE thread SET lease_until = {until}
     WHERE id = $1 AND fence = $2 AND lease_until IS NOT NULL";

const RUNS: &str =
    concat!("SELECT ", run_columns!(), " FROM run WHERE thread_id = $1 ORDER BY number");

pub(in super::super) fn ended(fence: Fence, run: RunId) -> Query {
    query("SELECT 1 AS one FROM run WHERE thread_id = $1 AND id = $2 AND status <> 'running'")
        .bind(fence.thread.0)
        .bind(run.0)
}

pub(super) fn runs(thread: ThreadId) -> Query {
    query(RUNS).bind(thread.0)
}

pub(in super::super) const HEAD_AND_FENCE: &str = "SELECT head, fence FROM thread WHERE id = $1";

/// The position of a thread: its newest step and its newest fencing token.
#[derive(Clone, Copy)]
pub(in super::super) struct HeadAndFence {
    pub(in super::super) head: u64,
    token: u64,
}

impl HeadAndFence {
    /// Reads the position if the token is the thread's newest.
    pub(in super::super) fn of(found: Option<Row>, fence: Fence) -> Result<Self> {
        let row = found.ok_or(Error::UnknownThread(fence.thread))?;
        let place = Self { head: row.get("head")?, token: row.get("fence")? };
        if place.token == fence.token { Ok(place) } else { Err(place.fenced(fence)) }
    }

    /// Rejects a token that was stale when the statement ran.
    pub(in super::super) fn fenced(self, fence: Fence) -> Error {
        reach(Point::Fenced, Side::After);
        fence.stale(self.token)
    }
}

/// Returns the position of the thread; an error if it is unknown or the token is not its newest.
pub(in super::super) async fn explain(database: &Database, fence: Fence) -> Result<HeadAndFence> {
    let place = query(HEAD_AND_FENCE).bind(fence.thread.0);
    HeadAndFence::of(database.fetch_short(&place).await?, fence)
}
