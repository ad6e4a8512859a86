//! Runs as the driving processes see them: of every tenant.

use chrono::{DateTime, TimeDelta, Utc};
use perihelion_database::{query, select};
use uuid::Uuid;

use crate::{Begin, Cancel, Kept, Result, Run};

impl Kept {
    /// Returns a run of any tenant by its ID: for driving processes, never for callers.
    pub async fn run_of_any_tenant(&self, id: Uuid) -> Result<Option<Run>> {
        let find = select::<Run>("FROM service_run WHERE id = $1").bind(id);
        let found = self.of_all_tenants().row(&find).await?;
        found.map(|run| self.opened_run(run)).transpose()
    }

    pub async fn leave_run(&self, id: Uuid, owner: &str) -> Result<()> {
        let leave = query(
            "UPDATE service_run SET owner = NULL WHERE id = $1 AND owner = $2 AND tenant = $3 AND status = 'running'",
        );
        self.change(leave.binds((id, owner, &self.tenant))).await.map(drop)
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

    /// Returns the other processes that drive runs.
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
             WHERE status = 'running' AND id = ? AND tenant = ?",
            (begin.owner, begin.now, run.id, &run.tenant),
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
