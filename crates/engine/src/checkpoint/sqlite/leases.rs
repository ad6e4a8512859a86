//! Who may write: claims, and the runs under them.

use perihelion_database::{Transaction, query};

use super::{
    super::{
        Claim, Error, Fence, RunEnd, RunRow, ThreadInfo,
        both::{
            OwnLeases,
            columns::{run_columns, thread_columns},
            decode, ended, info, now,
            refusal::check,
        },
        limits::{big, micros, text},
    },
    SqliteStore,
};
use crate::ids::RunId;

const CLAIM: &str = concat!(
    "UPDATE thread SET fence = fence + 1, owner = $2, status = 'busy', error = NULL, woken = 0,
        lease_until = $4 + $3, updated_at = $4
     WHERE id = $1 AND ($5 OR lease_until IS NULL OR lease_until <= $4)
        AND ($6 IS NULL OR fence = $6 AND status IN ('queued', 'busy'))
     RETURNING ",
    thread_columns!()
);

impl OwnLeases for SqliteStore {
    async fn claim(&self, claim: Claim<'_>) -> Result<ThreadInfo, Error> {
        let Claim { thread, seen, owner, ttl, force } = claim;
        let statement = query(CLAIM)
            .bind(thread.0)
            .bind(text(owner))
            .bind(micros(ttl))
            .bind(now())
            .bind(force)
            .bind(seen.map(big));
        if let Some(row) = self.database.execute_returning(&statement).await? {
            return Ok(decode::thread(&row)?.info);
        }
        Err(info(&self.database, thread).await?.info.busy())
    }

    async fn begin_run(&self, fence: Fence, run: RunId, exports: bool) -> Result<RunRow, Error> {
        let mut transaction = self.database.begin().await?;
        let begun = begin(&mut transaction, fence, run, exports).await;
        transaction.settle(begun).await
    }

    async fn end_run(&self, fence: Fence, run: RunId, end: RunEnd<'_>) -> Result<(), Error> {
        let mut transaction = self.database.begin().await?;
        let ended = release(&mut transaction, fence, run, end).await;
        transaction.settle(ended).await
    }
}

const COUNT_RUN: &str = "UPDATE thread SET status = 'busy', updated_at = $3, runs = runs +
        NOT EXISTS (SELECT 1 FROM run WHERE thread_id = $1 AND run.id = $2)
     WHERE id = $1";

const BEGIN_RUN: &str = concat!(
    "INSERT INTO run (thread_id, id, number, status, started_at)
     SELECT id, $2, runs, 'running', $3 FROM thread WHERE id = $1
     ON CONFLICT (thread_id, id) DO UPDATE SET status = 'running', ended_at = NULL, finish_reason = NULL
     RETURNING ",
    run_columns!()
);

const NOTE_EXPORT: &str = "INSERT INTO trace_debt (thread_id, from_run, to_run, since)
     SELECT id, runs, runs, $2 FROM thread WHERE id = $1
     ON CONFLICT (thread_id) DO UPDATE SET to_run = excluded.to_run";

async fn begin(
    transaction: &mut Transaction<'_>,
    fence: Fence,
    run: RunId,
    exports: bool,
) -> Result<RunRow, Error> {
    check(transaction, fence).await?;
    let thread = fence.thread;
    let now = now();
    transaction.execute(&query(COUNT_RUN).bind(thread.0).bind(run.0).bind(now)).await?;
    let begin = query(BEGIN_RUN).bind(thread.0).bind(run.0).bind(now);
    let begun = transaction.fetch_optional(&begin).await?;
    if exports {
        transaction.execute(&query(NOTE_EXPORT).bind(thread.0).bind(now)).await?;
    }
    decode::run(&begun.ok_or(Error::UnknownThread(thread))?)
}

const RELEASE: &str = "UPDATE thread SET
        status = CASE WHEN $2 = 'interrupted' AND woken THEN 'queued' ELSE $2 END, error = $3, owner = NULL, lease_until = NULL,
        updated_at = $4
     WHERE id = $1";

const END: &str = "UPDATE run SET status = $3, ended_at = $4, finish_reason = $5
     WHERE thread_id = $1 AND id = $2";

async fn release(
    transaction: &mut Transaction<'_>,
    fence: Fence,
    run: RunId,
    end: RunEnd<'_>,
) -> Result<(), Error> {
    check(transaction, fence).await?;
    // What came after its end stands.
    if transaction.fetch_optional(&ended(fence, run)).await?.is_some() {
        return Ok(());
    }
    let now = now();
    let release = query(RELEASE)
        .bind(fence.thread.0)
        .bind(end.thread.as_str())
        .bind(end.error.map(text))
        .bind(now);
    transaction.execute(&release).await?;
    let end = query(END)
        .bind(fence.thread.0)
        .bind(run.0)
        .bind(end.run.as_str())
        .bind(now)
        .bind(end.finish_reason.map(text));
    transaction.execute(&end).await?;
    Ok(())
}
