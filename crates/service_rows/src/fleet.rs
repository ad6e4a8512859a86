//! A summary of a tenant's runs: how many have each status, their processes, and failures.

use chrono::{DateTime, Utc};
use uuid::Uuid;

use crate::{Kept, Result, Run, RunStatus};

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Driver {
    pub owner: String,
    pub runs: u64,
    pub seen_at: Option<DateTime<Utc>>,
}

impl Kept {
    pub async fn runs_by_status(&self) -> Result<Vec<(RunStatus, u64)>> {
        let mut count = self.statement(
            "SELECT status, CAST(SUM(number) AS bigint) FROM status_count WHERE subject = 'run' AND tenant = ",
        );
        count.value(&self.tenant).text(" GROUP BY status HAVING SUM(number) > 0 ORDER BY status");
        Ok(self.of_tenant().rows(&count.build()).await?)
    }

    /// Returns since when the run that waits longest could begin, if any waits.
    pub async fn longest_waiting(&self) -> Result<Option<DateTime<Utc>>> {
        let mut find =
            self.statement("SELECT due_at FROM service_run WHERE status = 'pending' AND tenant = ");
        find.value(&self.tenant).text(" ORDER BY due_at LIMIT 1");
        Ok(self.of_tenant().row(&find.build()).await?)
    }

    /// Lists the processes that drive runs of the tenant.
    pub async fn drivers(&self) -> Result<Vec<Driver>> {
        let mut find = self.statement(
            "SELECT owner, COUNT(*), MAX(seen_at) FROM service_run \
             WHERE status = 'running' AND owner IS NOT NULL AND tenant = ",
        );
        find.value(&self.tenant).text(" GROUP BY owner ORDER BY owner");
        let rows = self.of_tenant().rows(&find.build()).await?;
        let driver = |(owner, runs, seen_at)| Driver { owner, runs, seen_at };
        Ok(rows.into_iter().map(driver).collect())
    }

    /// Lists the tenant's runs that failed after a time, newest first.
    pub async fn failed_runs(&self, after: DateTime<Utc>, limit: u32) -> Result<Vec<Run>> {
        let mut find = self.select_runs();
        find.text(" AND status IN ('error', 'timeout')");
        find.text(" AND updated_at > ").value(after);
        find.text(" ORDER BY updated_at DESC, id DESC LIMIT ").value(limit);
        self.list_runs(find).await
    }

    /// Lists the runs of the tenant, or of one of its threads, that changed last, newest change first.
    pub async fn newest_runs(&self, thread: Option<Uuid>, most: u32) -> Result<Vec<Run>> {
        let mut find = self.select_runs();
        if let Some(thread) = thread {
            find.text(" AND thread_id = ").value(thread);
        }
        find.text(" ORDER BY updated_at DESC, id DESC").page(most, 0);
        self.list_runs(find).await
    }

    /// Counts the tenant's runs that are under way or wait, no further than `most`.
    pub async fn count_open_runs(&self, most: u32) -> Result<u32> {
        let mut find = self.statement("SELECT COUNT(*) FROM (SELECT 1 FROM service_run WHERE status IN ('pending', 'running') AND tenant = ");
        find.value(&self.tenant).text(" LIMIT ").value(most).text(") AS open");
        Ok(self.of_tenant().row(&find.build()).await?.unwrap_or_default())
    }
}
