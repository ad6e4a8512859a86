//! All of a tenant's runs at a glance: how many stand how, who drives them, what failed.

use chrono::{DateTime, Utc};
use uuid::Uuid;

use crate::sql::Statement;
use crate::{Error, Kept, Run, RunStatus};

/// A process that drives runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Driver {
    pub owner: String,
    /// Runs that it drives.
    pub runs: u64,
    /// When it was last heard of.
    pub seen_at: Option<DateTime<Utc>>,
}

impl Kept {
    /// Counts the tenant's runs by how they stand.
    pub async fn runs_by_status(&self) -> Result<Vec<(RunStatus, u64)>, Error> {
        let mut count = self.statement("SELECT status, COUNT(*) FROM service_run WHERE tenant = ");
        count.value(self.tenant.as_str()).text(" GROUP BY status ORDER BY status");
        let rows = self.of_tenant().fetch_all(&count.build()).await?;
        rows.iter()
            .map(|row| {
                let status = RunStatus::from_word(&row.get::<String>(0)?)?;
                Ok((status, row.get::<i64>(1)?.unsigned_abs()))
            })
            .collect()
    }

    /// Returns since when the run that waits longest could begin, if any waits.
    pub async fn longest_waiting(&self) -> Result<Option<DateTime<Utc>>, Error> {
        let mut find =
            self.statement("SELECT due_at FROM service_run WHERE status = 'pending' AND tenant = ");
        find.value(self.tenant.as_str()).text(" ORDER BY due_at LIMIT 1");
        let row = self.of_tenant().fetch_optional(&find.build()).await?;
        Ok(row.map(|row| row.get(0)).transpose()?)
    }

    /// Lists the processes that drive runs of the tenant.
    pub async fn drivers(&self) -> Result<Vec<Driver>, Error> {
        let mut find = Statement::new(
            self.database.dialect(),
            "SELECT owner, COUNT(*), MAX(seen_at) FROM service_run \
             WHERE status = 'running' AND owner IS NOT NULL AND tenant = ",
        );
        find.value(self.tenant.as_str()).text(" GROUP BY owner ORDER BY owner");
        let rows = self.of_tenant().fetch_all(&find.build()).await?;
        rows.iter()
            .map(|row| {
                let runs = row.get::<i64>(1)?.unsigned_abs();
                Ok(Driver { owner: row.get(0)?, runs, seen_at: row.get(2)? })
            })
            .collect()
    }

    /// Lists the tenant's runs that failed after a time, newest first.
    pub async fn failed_runs(&self, after: DateTime<Utc>, limit: u32) -> Result<Vec<Run>, Error> {
        let mut find = self.select_runs();
        find.text(" AND status IN ('error', 'timeout')");
        find.text(" AND updated_at > ").value(after);
        find.text(" ORDER BY updated_at DESC, id DESC LIMIT ").value(limit);
        self.list_runs(find).await
    }

    /// Lists the runs of the tenant, or of one of its threads, that changed last, newest change first.
    pub async fn newest_runs(&self, thread: Option<Uuid>, most: u32) -> Result<Vec<Run>, Error> {
        let mut find = self.select_runs();
        if let Some(thread) = thread {
            find.text(" AND thread_id = ").value(thread);
        }
        find.text(" ORDER BY updated_at DESC, id DESC").page(most, 0);
        self.list_runs(find).await
    }

    /// Counts the tenant's runs that are under way or wait, no further than `most`.
    pub async fn count_open_runs(&self, most: u32) -> Result<u32, Error> {
        let mut find = self.statement("SELECT COUNT(*) FROM (SELECT 1 FROM service_run WHERE status IN ('pending', 'running') AND tenant = ");
        find.value(self.tenant.as_str()).text(" LIMIT ").value(most).text(") AS open");
        let row = self.of_tenant().fetch_optional(&find.build()).await?;
        let count = row.map(|row| row.get::<i64>(0)).transpose()?.unwrap_or_default();
        Ok(u32::try_from(count).unwrap_or(u32::MAX))
    }
}
