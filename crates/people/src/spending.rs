//! The usage of a tenant's runs, day by day.

use chrono::{DateTime, Days, NaiveDate, Utc};
use perihelion_database::{Query, Row, query};
use uuid::Uuid;

use crate::{People, Result};

/// Days for which the usage of runs is stored.
pub const SPENDING_DAYS: u32 = 40;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Taken {
    /// Input and output together.
    pub tokens: u64,
    /// Billionths of a US dollar.
    pub nano_usd: u64,
    pub tool_calls: u64,
    pub steps: u64,
    pub millis: u64,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TenantUsage {
    pub tenant: String,
    pub runs: u64,
    pub taken: Taken,
}

#[derive(Clone, Debug)]
pub struct EndedRun {
    pub tenant: String,
    pub thread: Uuid,
    /// Number of the part of the thread's work that it belongs to; what the runs of a part took is counted together.
    pub part: u64,
    pub run: Uuid,
    pub at: DateTime<Utc>,
}

impl People {
    /// Stores the usage of a part of a thread's work by the end of one of its runs, minus the usage of its earlier runs.
    ///
    /// A run that is written down already stays as it is, and no run gives back what others took. The time is that of the
    /// run alone.
    pub async fn note_taken(&self, run: &EndedRun, of_part: Taken) -> Result<()> {
        self.of(&run.tenant).execute(&Self::noting(run, of_part)).await?;
        Ok(())
    }

    /// Returns the statement of [`People::note_taken`], which acts for the tenant of the run.
    pub fn noting(run: &EndedRun, of_part: Taken) -> Query {
        let insert = query(
            "INSERT INTO spending (tenant, day, thread_id, turn, run_id, tokens, nano_usd, tool_calls, steps, millis) \
             SELECT $1, $2, $3, $4, $5, CASE WHEN tokens > 0 THEN tokens ELSE 0 END, \
             CASE WHEN nano_usd > 0 THEN nano_usd ELSE 0 END, CASE WHEN tool_calls > 0 THEN tool_calls ELSE 0 END, \
             CASE WHEN steps > 0 THEN steps ELSE 0 END, $10 \
             FROM (SELECT $6 - COALESCE(SUM(tokens), 0) AS tokens, $7 - COALESCE(SUM(nano_usd), 0) AS nano_usd, \
             $8 - COALESCE(SUM(tool_calls), 0) AS tool_calls, $9 - COALESCE(SUM(steps), 0) AS steps \
             FROM spending WHERE thread_id = $3 AND turn = $4 AND run_id <> $5) AS rest WHERE true \
             ON CONFLICT (thread_id, turn, run_id) DO NOTHING",
        )
        .binds((&run.tenant, day(run.at.date_naive()), run.thread, run.part, run.run))
        .binds((of_part.tokens, of_part.nano_usd, of_part.tool_calls, of_part.steps, of_part.millis));
        insert.repeatable()
    }

    /// Forgets what runs took 40 days ago and earlier, except by threads that are not idle, whose later runs are counted with it.
    pub async fn forget_taken(&self, now: DateTime<Utc>) -> Result<()> {
        let kept = Days::new(SPENDING_DAYS.into());
        let oldest = now.date_naive().checked_sub_days(kept).unwrap_or_default();
        let forget = query(
            "DELETE FROM spending WHERE day < $1 AND NOT EXISTS \
             (SELECT 1 FROM thread WHERE thread.id = spending.thread_id AND thread.status <> 'idle')",
        );
        let forget = forget.bind(day(oldest));
        self.of_all().execute(&forget).await?;
        Ok(())
    }

    /// Adds up the usage of a tenant's runs that ended on a day of UTC.
    pub async fn taken_on(&self, tenant: &str, date: NaiveDate) -> Result<Taken> {
        let sum = query(
            "SELECT CAST(COALESCE(SUM(tokens), 0) AS bigint), CAST(COALESCE(SUM(nano_usd), 0) AS bigint), \
             CAST(COALESCE(SUM(tool_calls), 0) AS bigint), CAST(COALESCE(SUM(steps), 0) AS bigint), \
             CAST(COALESCE(SUM(millis), 0) AS bigint) FROM spending WHERE tenant = $1 AND day = $2",
        )
        .binds((tenant, day(date)));
        let row = self.of(tenant).fetch_optional(&sum).await?;
        Ok(row.as_ref().map(|row| taken(row, 0)).transpose()?.unwrap_or_default())
    }

    /// Adds up the usage of each tenant's runs that ended on a day of UTC or later, by the most tokens first.
    pub async fn taken_by_tenant(&self, since: NaiveDate, limit: u32) -> Result<Vec<TenantUsage>> {
        let sums = query(
            "SELECT tenant, CAST(COUNT(DISTINCT run_id) AS bigint), CAST(SUM(tokens) AS bigint), CAST(SUM(nano_usd) AS bigint), \
             CAST(SUM(tool_calls) AS bigint), CAST(SUM(steps) AS bigint), CAST(SUM(millis) AS bigint) \
             FROM spending WHERE day >= $1 GROUP BY tenant ORDER BY SUM(tokens) DESC, tenant LIMIT $2",
        )
        .binds((day(since), limit));
        let rows = self.of_all().fetch_all(&sums).await?;
        let read = |row: &Row| {
            Ok(TenantUsage { tenant: row.get(0)?, runs: row.get(1)?, taken: taken(row, 2)? })
        };
        rows.iter().map(read).collect()
    }
}

/// Reads five sums from a column on.
fn taken(row: &Row, first: usize) -> Result<Taken, perihelion_database::Error> {
    let get = |column| row.get::<u64>(first + column);
    Ok(Taken {
        tokens: get(0)?,
        nano_usd: get(1)?,
        tool_calls: get(2)?,
        steps: get(3)?,
        millis: get(4)?,
    })
}

fn day(date: NaiveDate) -> String {
    date.format("%Y-%m-%d").to_string()
}
