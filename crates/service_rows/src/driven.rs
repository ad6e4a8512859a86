//! Runs as the driving processes see them: of every tenant.

use chrono::{DateTime, TimeDelta, Utc};
use perihelion_database::{Query, query, select};
use uuid::Uuid;

use crate::{Begin, Cancel, Kept, Result, Run, RunStatus};

impl Kept {
    /// Returns a run of any tenant by its ID: for driving processes, never for callers.
    pub async fn run_of_any_tenant(&self, id: Uuid) -> Result<Option<Run>> {
        self.run_of_all_tenants(select::<Run>("FROM service_run WHERE id = $1").bind(id)).await
    }

    /// Returns the active run of a thread of any tenant, or the one that began and was put back: for driving processes,
    /// never for callers.
    pub async fn active_run(&self, thread: Uuid) -> Result<Option<Run>> {
        let find = select::<Run>(
            "FROM service_run WHERE thread_id = $1 AND status IN ('pending', 'running') \
             AND (status = 'running' OR base_step IS NOT NULL) ORDER BY status DESC, created_at LIMIT 1",
        );
        self.run_of_all_tenants(find.bind(thread)).await
    }

    async fn run_of_all_tenants(&self, find: Query) -> Result<Option<Run>> {
        let found = self.of_all_tenants().row(&find).await?;
        found.map(|run| self.opened_run(run)).transpose()
    }

    pub async fn leave_run(&self, thread: Uuid, id: Uuid, owner: &str) -> Result<()> {
        let leave = query(
            "UPDATE service_run SET owner = NULL \
             WHERE thread_id = $1 AND id = $2 AND owner = $3 AND tenant = $4 AND status = 'running'",
        );
        self.change(leave.binds((thread, id, owner, &self.tenant))).await.map(drop)
    }

    /// Leaves a process's runs of all tenants to other processes.
    pub async fn leave_runs(&self, owner: &str) -> Result<()> {
        let leave =
            query("UPDATE service_run SET owner = NULL WHERE owner = $1 AND status = 'running'");
        self.change_of_all(leave.bind(owner)).await.map(drop)
    }

    pub async fn beat(&self, owner: &str, now: DateTime<Utc>) -> Result<()> {
        let beat =
            query("UPDATE service_run SET seen_at = $1 WHERE owner = $2 AND status = 'running'");
        self.change_of_all(beat.binds((now, owner))).await.map(drop)
    }

    /// Returns the runs of a process, and how those end that must stop.
    pub async fn runs_of(&self, owner: &str) -> Result<Vec<(Uuid, Option<Cancel>)>> {
        let find =
            query("SELECT id, cancel FROM service_run WHERE owner = $1 AND status = 'running'");
        Ok(self.of_all_tenants().rows(&find.bind(owner)).await?)
    }

    /// Returns threads with a run that may begin now, and their tenants.
    pub async fn waiting_threads(
        &self,
        now: DateTime<Utc>,
        limit: u32,
        offset: u32,
    ) -> Result<Vec<(Uuid, String)>> {
        let find = query(
            "SELECT DISTINCT thread_id, tenant FROM service_run w WHERE status = 'pending' AND due_at <= $1 \
             AND NOT EXISTS (SELECT 1 FROM service_run r WHERE r.thread_id = w.thread_id AND r.status = 'running') \
             ORDER BY thread_id LIMIT $2 OFFSET $3",
        );
        Ok(self.of_all_tenants().rows(&find.binds((now, limit, offset))).await?)
    }

    pub async fn other_owners(&self, owner: &str) -> Result<Vec<String>> {
        let find = query(
            "SELECT DISTINCT owner FROM service_run WHERE status = 'running' AND owner <> $1",
        );
        Ok(self.of_all_tenants().rows(&find.bind(owner)).await?)
    }

    /// Returns active runs without a process: unassigned, of one in `gone`, or of one without a heartbeat since
    /// `before`.
    pub async fn abandoned_runs(
        &self,
        owner: &str,
        gone: &[String],
        before: DateTime<Utc>,
        limit: u32,
        offset: u32,
    ) -> Result<Vec<Uuid>> {
        let mut find = self.statement("SELECT id FROM service_run WHERE status = 'running'");
        find.add(" AND (owner IS NULL OR owner <> ? AND (seen_at <= ?", (owner, before));
        for owner in gone {
            find.text(" OR owner = ").value(owner);
        }
        find.text(")) ORDER BY created_at, id").page(limit, offset);
        Ok(self.of_all_tenants().rows(&find.build()).await?)
    }

    /// Returns threads that were made for one run and whose runs all ended before `before`, and their tenants; without
    /// those with unsent messages.
    pub async fn threads_of_one_run(
        &self,
        before: DateTime<Utc>,
        limit: u32,
        offset: u32,
    ) -> Result<Vec<(Uuid, String)>> {
        let find = query(
            "SELECT thread_id, tenant FROM service_run WHERE temporary AND updated_at <= $1 \
                AND NOT EXISTS (SELECT 1 FROM service_run r WHERE r.thread_id = service_run.thread_id \
                    AND (r.status IN ('pending', 'running') OR r.updated_at > $1 OR EXISTS (SELECT 1 \
                        FROM service_delivery d WHERE d.run_id = r.id AND d.payload IS NULL AND d.ended_at IS NULL))) \
                ORDER BY updated_at LIMIT $2 OFFSET $3",
        );
        Ok(self.of_all_tenants().rows(&find.binds((before, limit, offset))).await?)
    }

    /// Takes over a run of a dead process, unless another process did; with `silent_for` zero, at once.
    pub async fn take_over(
        &self,
        run: &Run,
        silent_for: TimeDelta,
        begin: Begin<'_>,
    ) -> Result<bool> {
        let mut take = self.statement("");
        take.add(
            "UPDATE service_run SET owner = ?, attempt = attempt + 1, seen_at = ? \
             WHERE status = 'running' AND thread_id = ? AND id = ? AND tenant = ?",
            (begin.owner, begin.now, run.thread, run.id, &run.tenant),
        );
        match run.owner.as_deref() {
            Some(owner) => {
                take.add(" AND owner = ? AND seen_at <= ?", (owner, begin.now - silent_for))
            }
            None => take.text(" AND owner IS NULL"),
        };
        Ok(self.database.of_tenant(&run.tenant).execute(&take.build()).await? == 1)
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Driver {
    pub owner: String,
    pub runs: u64,
    pub seen_at: Option<DateTime<Utc>>,
}

impl Kept {
    pub async fn runs_by_status(&self) -> Result<Vec<(RunStatus, u64)>> {
        self.counts_of("run").await
    }

    /// Returns since when the run that waits longest could begin, if any waits.
    pub async fn longest_waiting(&self) -> Result<Option<DateTime<Utc>>> {
        let mut find =
            self.statement("SELECT due_at FROM service_run WHERE status = 'pending' AND tenant = ");
        find.value(&self.tenant).text(" ORDER BY due_at LIMIT 1");
        Ok(self.of_tenant().row(&find.build()).await?)
    }

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
        find.given(" AND thread_id = ", thread);
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
