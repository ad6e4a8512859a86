//! All of a tenant's runs at a glance: how many stand how, who drives them, what failed.

use chrono::{DateTime, Utc};

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
    ///
    /// # Errors
    /// [`Error`].
    pub async fn runs_by_status(&self) -> Result<Vec<(RunStatus, u64)>, Error> {
        let mut count = Statement::new(
            self.database.dialect(),
            "SELECT status, COUNT(*) FROM service_run WHERE tenant = ",
        );
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
    ///
    /// # Errors
    /// [`Error`].
    pub async fn longest_waiting(&self) -> Result<Option<DateTime<Utc>>, Error> {
        let mut find = Statement::new(
            self.database.dialect(),
            "SELECT due_at FROM service_run WHERE status = 'pending' AND tenant = ",
        );
        find.value(self.tenant.as_str()).text(" ORDER BY due_at LIMIT 1");
        let row = self.of_tenant().fetch_optional(&find.build()).await?;
        Ok(row.map(|row| row.get(0)).transpose()?)
    }

    /// Lists the processes that drive runs of the tenant.
    ///
    /// # Errors
    /// [`Error`].
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
    ///
    /// # Errors
    /// [`Error`].
    pub async fn failed_runs(&self, after: DateTime<Utc>, limit: u32) -> Result<Vec<Run>, Error> {
        let mut find = self.select_runs();
        find.text(" AND status IN ('error', 'timeout')");
        find.text(" AND updated_at > ").value(after);
        find.text(" ORDER BY updated_at DESC, id DESC LIMIT ").value(limit);
        self.of_tenant().fetch_all(&find.build()).await?.iter().map(Run::read).collect()
    }
}
