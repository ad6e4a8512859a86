//! What the runs of a tenant took, day by day.

use chrono::{DateTime, Days, NaiveDate, Utc};
use perihelion_database::{Row, query};
use uuid::Uuid;

use crate::{Error, People};

/// Days for which what runs took is kept.
pub const SPENDING_DAYS: u32 = 40;

/// What runs took.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Taken {
    /// Input and output together.
    pub tokens: u64,
    /// Billionths of a US dollar.
    pub nano_usd: u64,
    pub tool_calls: u64,
    /// Super-steps.
    pub steps: u64,
    /// Milliseconds of work.
    pub millis: u64,
}

/// What the runs of one tenant took.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TakenByTenant {
    pub tenant: String,
    pub runs: u64,
    pub taken: Taken,
}

/// A run that has ended.
#[derive(Clone, Debug)]
pub struct EndedRun {
    pub tenant: String,
    pub thread: Uuid,
    /// Number of the request in the thread.
    pub turn: u32,
    pub run: Uuid,
    pub at: DateTime<Utc>,
}

impl People {
    /// Writes down what a turn has taken by the end of one of its runs: what its earlier runs took is theirs.
    ///
    /// A run that is written down already stays as it is. The time is that of the run alone.
    ///
    /// # Errors
    /// [`Error::Database`].
    pub async fn note_taken(&self, run: &EndedRun, of_turn: Taken) -> Result<(), Error> {
        let int = |number: u64| i64::try_from(number).unwrap_or(i64::MAX);
        let insert = query(
            "INSERT INTO spending (tenant, day, thread_id, turn, run_id, tokens, nano_usd, tool_calls, steps, millis) \
             SELECT $1, $2, $3, $4, $5, $6 - COALESCE(SUM(tokens), 0), $7 - COALESCE(SUM(nano_usd), 0), \
             $8 - COALESCE(SUM(tool_calls), 0), $9 - COALESCE(SUM(steps), 0), $10 \
             FROM spending WHERE thread_id = $3 AND turn = $4 AND run_id <> $5 \
             ON CONFLICT (thread_id, turn, run_id) DO NOTHING",
        )
        .binds((&run.tenant, day(run.at.date_naive()), run.thread, run.turn, run.run))
        .binds((int(of_turn.tokens), int(of_turn.nano_usd), int(of_turn.tool_calls)))
        .binds((int(of_turn.steps), int(of_turn.millis)));
        self.of(&run.tenant).execute(&insert).await?;
        Ok(())
    }

    /// Forgets what runs took 40 days ago and earlier.
    ///
    /// # Errors
    /// [`Error::Database`].
    pub async fn forget_taken(&self, now: DateTime<Utc>) -> Result<(), Error> {
        let kept = Days::new(SPENDING_DAYS.into());
        let oldest = now.date_naive().checked_sub_days(kept).unwrap_or_default();
        let forget = query("DELETE FROM spending WHERE day < $1").bind(day(oldest));
        self.of_all().execute(&forget).await?;
        Ok(())
    }

    /// Adds up what a tenant's runs took that ended on a day of UTC.
    ///
    /// # Errors
    /// [`Error::Database`].
    pub async fn taken_on(&self, tenant: &str, date: NaiveDate) -> Result<Taken, Error> {
        let sum = query(
            "SELECT CAST(COALESCE(SUM(tokens), 0) AS bigint), CAST(COALESCE(SUM(nano_usd), 0) AS bigint), \
             CAST(COALESCE(SUM(tool_calls), 0) AS bigint), CAST(COALESCE(SUM(steps), 0) AS bigint), \
             CAST(COALESCE(SUM(millis), 0) AS bigint) FROM spending WHERE tenant = $1 AND day = $2",
        )
        .bind(tenant)
        .bind(day(date));
        let row = self.of(tenant).fetch_optional(&sum).await?;
        Ok(row.as_ref().map(|row| taken(row, 0)).transpose()?.unwrap_or_default())
    }

    /// Adds up what the runs of each tenant took that ended on a day of UTC or later, those that took most tokens
    /// first.
    ///
    /// # Errors
    /// [`Error::Database`].
    pub async fn taken_by_tenant(
        &self,
        since: NaiveDate,
        limit: u32,
    ) -> Result<Vec<TakenByTenant>, Error> {
        let sums = query(
            "SELECT tenant, CAST(COUNT(DISTINCT run_id) AS bigint), CAST(SUM(tokens) AS bigint), CAST(SUM(nano_usd) AS bigint), \
             CAST(SUM(tool_calls) AS bigint), CAST(SUM(steps) AS bigint), CAST(SUM(millis) AS bigint) \
             FROM spending WHERE day >= $1 GROUP BY tenant ORDER BY SUM(tokens) DESC, tenant LIMIT $2",
        )
        .bind(day(since))
        .bind(limit);
        let rows = self.of_all().fetch_all(&sums).await?;
        let read = |row: &Row| {
            let runs = u64::try_from(row.get::<i64>(1)?).unwrap_or(0);
            Ok(TakenByTenant { tenant: row.get(0)?, runs, taken: taken(row, 2)? })
        };
        rows.iter().map(read).collect()
    }
}

/// Reads five sums from a column on.
fn taken(row: &Row, first: usize) -> Result<Taken, perihelion_database::Error> {
    let get = |column| row.get::<i64>(first + column).map(|sum| u64::try_from(sum).unwrap_or(0));
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
