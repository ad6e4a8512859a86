//! Runs as those who drive them see them: of every tenant.

use chrono::{DateTime, TimeDelta, Utc};
use perihelion_database::query;
use uuid::Uuid;

use crate::runs::SELECT;
use crate::{Begin, Cancel, Error, Kept, Run};

impl Kept {
    /// Returns a run by its id, no matter whose it is: for those who drive runs, never for those who ask.
    pub async fn run_of_any_tenant(&self, id: Uuid) -> Result<Option<Run>, Error> {
        let mut find = self.statement(SELECT);
        find.text(" FROM service_run WHERE id = ").value(id);
        let found = self.of_all_tenants().fetch_optional(&find.build()).await?;
        found.as_ref().map(|row| self.read_run(row)).transpose()
    }

    /// Leaves a run that a process drives to the others.
    pub async fn leave_run(&self, id: Uuid, owner: &str) -> Result<(), Error> {
        let leave = query(
            "UPDATE service_run SET owner = NULL WHERE id = $1 AND owner = $2 AND tenant = $3 AND status = 'running'",
        );
        let leave = leave.bind(id).bind(owner).bind(self.tenant.as_str());
        self.of_tenant().execute(&leave).await?;
        Ok(())
    }

    /// Leaves the runs of all tenants that a process drives to the others.
    pub async fn leave_runs(&self, owner: &str) -> Result<(), Error> {
        let leave =
            query("UPDATE service_run SET owner = NULL WHERE owner = $1 AND status = 'running'");
        self.of_all_tenants().execute(&leave.bind(owner)).await?;
        Ok(())
    }

    /// Says that a process lives and drives its runs, and returns those of them that are to be stopped.
    pub async fn beat(&self, owner: &str, now: DateTime<Utc>) -> Result<(), Error> {
        let beat =
            query("UPDATE service_run SET seen_at = $1 WHERE owner = $2 AND status = 'running'");
        self.of_all_tenants().execute(&beat.bind(now).bind(owner)).await?;
        Ok(())
    }

    /// Returns the runs of a process that are to be stopped, and how.
    pub async fn to_cancel(&self, owner: &str) -> Result<Vec<(Uuid, Cancel)>, Error> {
        let find = query(
            "SELECT id, cancel FROM service_run WHERE status = 'running' AND owner = $1 AND cancel IS NOT NULL",
        );
        let rows = self.of_all_tenants().fetch_all(&find.bind(owner)).await?;
        rows.iter()
            .map(|row| Ok((row.get(0)?, Cancel::from_word(&row.get::<String>(1)?)?)))
            .collect()
    }

    /// Returns threads with a run that may begin now, and their tenants.
    pub async fn waiting_threads(
        &self,
        now: DateTime<Utc>,
        limit: u32,
    ) -> Result<Vec<(Uuid, String)>, Error> {
        let mut find = self.statement("SELECT DISTINCT thread_id, tenant FROM service_run w WHERE status = 'pending' AND due_at <= ");
        find.value(now).text(
            " AND NOT EXISTS (SELECT 1 FROM service_run r WHERE r.thread_id = w.thread_id AND r.status = 'running')",
        );
        find.text(" LIMIT ").value(limit);
        let rows = self.of_all_tenants().fetch_all(&find.build()).await?;
        rows.iter().map(|row| Ok((row.get(0)?, row.get(1)?))).collect()
    }

    /// Returns the other processes that drive runs.
    pub async fn other_owners(&self, owner: &str) -> Result<Vec<String>, Error> {
        let find = query(
            "SELECT DISTINCT owner FROM service_run WHERE status = 'running' AND owner <> $1",
        );
        let rows = self.of_all_tenants().fetch_all(&find.bind(owner)).await?;
        rows.iter().map(|row| Ok(row.get(0)?)).collect()
    }

    /// Returns runs under way that nobody drives: of no process, of one of `gone`, or of one that is silent since `before`.
    pub async fn abandoned_runs(
        &self,
        owner: &str,
        gone: &[String],
        before: DateTime<Utc>,
        limit: u32,
    ) -> Result<Vec<Uuid>, Error> {
        let mut find = self.statement(
            "SELECT id FROM service_run WHERE status = 'running' AND (owner IS NULL OR owner <> ",
        );
        find.value(owner);
        find.text(" AND (seen_at <= ").value(before);
        for owner in gone {
            find.text(" OR owner = ").value(owner.as_str());
        }
        find.text(")) ORDER BY created_at LIMIT ").value(limit);
        let rows = self.of_all_tenants().fetch_all(&find.build()).await?;
        rows.iter().map(|row| Ok(row.get(0)?)).collect()
    }

    /// Returns threads that were made for one run each, which ended before `before`, and their tenants; not those of runs
    /// whose end is still to be sent to somebody.
    pub async fn threads_of_one_run(
        &self,
        before: DateTime<Utc>,
        limit: u32,
    ) -> Result<Vec<(Uuid, String)>, Error> {
        let find = query(
            "SELECT thread_id, tenant FROM service_run WHERE temporary AND updated_at <= $1 \
                AND status NOT IN ('pending', 'running') AND NOT EXISTS (SELECT 1 FROM service_delivery d \
                    WHERE d.run_id = service_run.id AND d.payload IS NULL AND d.ended_at IS NULL) \
                ORDER BY updated_at LIMIT $2",
        );
        let rows = self.of_all_tenants().fetch_all(&find.bind(before).bind(limit)).await?;
        rows.iter().map(|row| Ok((row.get(0)?, row.get(1)?))).collect()
    }

    /// Takes a run over from a process that is gone, unless somebody else did; `silent_for` of zero takes it at once.
    pub async fn take_over(
        &self,
        run: &Run,
        silent_for: TimeDelta,
        begin: Begin<'_>,
    ) -> Result<bool, Error> {
        let mut take = self.statement("UPDATE service_run SET owner = ");
        take.value(begin.owner)
            .text(", attempt = attempt + 1, seen_at = ")
            .value(begin.now)
            .text(" WHERE status = 'running' AND id = ")
            .value(run.id)
            .text(" AND tenant = ")
            .value(run.tenant.as_str());
        match &run.owner {
            Some(owner) => take
                .text(" AND owner = ")
                .value(owner.as_str())
                .text(" AND seen_at <= ")
                .value(begin.now - silent_for),
            None => take.text(" AND owner IS NULL"),
        };
        Ok(self.database.of_tenant(&run.tenant).execute(&take.build()).await? == 1)
    }
}
