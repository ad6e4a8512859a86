//! The runs of a thread in the order in which they began, and runs that have not ended.

use std::ops::RangeInclusive;

use chrono::{DateTime, Utc};
use perihelion_database::{Transaction, query};
use uuid::Uuid;

use crate::{Cancel, Kept, Result, Run, RunStatus};

#[derive(Clone, Debug)]
pub struct RunSteps {
    pub id: Uuid,
    pub assistant: Uuid,
    pub steps: RangeInclusive<u64>,
}

impl Kept {
    /// Returns the run of a thread that began first after another one, by its first event, when it was asked for, and
    /// its id.
    pub async fn next_begun(
        &self,
        thread: Uuid,
        after: (u64, DateTime<Utc>, Uuid),
    ) -> Result<Option<Run>> {
        let mut find = self.select_runs();
        find.text(" AND thread_id = ").value(thread);
        find.add(" AND (first_event, created_at, id) > (?, ?, ?)", after);
        find.text(" ORDER BY first_event, created_at, id LIMIT 1");
        self.one_run(find).await
    }

    /// Returns the first event of the last run of a thread that began before all runs that had not ended before an event;
    /// 0 without one.
    pub async fn begun_before(&self, thread: Uuid, event: u64) -> Result<u64> {
        let find = query(
            "SELECT COALESCE(max(first_event), 0) FROM service_run WHERE thread_id = $1 AND tenant = $2 \
             AND first_event < COALESCE((SELECT min(first_event) FROM service_run WHERE thread_id = $1 \
                AND tenant = $2 AND (last_event IS NULL OR last_event >= $3)), $4)",
        );
        let find = find.binds((thread, &self.tenant, event, i64::MAX));
        Ok(self.of_tenant().row(&find).await?.unwrap_or_default())
    }

    /// Returns the run of a thread that began first with this first event or a later one, except those in `seen`.
    ///
    /// Runs without events share their first event with the next one, which may have been asked for earlier.
    pub async fn next_unseen(
        &self,
        thread: Uuid,
        first_event: u64,
        seen: &[Uuid],
    ) -> Result<Option<Run>> {
        let mut find = self.select_runs();
        find.text(" AND thread_id = ")
            .value(thread)
            .text(" AND first_event >= ")
            .value(first_event);
        if !seen.is_empty() {
            find.text(" AND NOT ").one_of("id", seen.iter().copied());
        }
        find.text(" ORDER BY first_event, created_at, id LIMIT 1");
        self.one_run(find).await
    }

    /// Returns the runs that made steps of a thread between two, in the order in which they began.
    pub async fn runs_of_steps(
        &self,
        thread: Uuid,
        first: u64,
        last: u64,
    ) -> Result<Vec<RunSteps>> {
        let find = query(
            "SELECT id, assistant, base_step, last_step FROM service_run WHERE thread_id = $1 AND tenant = $2 \
             AND base_step < $3 AND (last_step IS NULL OR last_step >= $4) ORDER BY base_step, created_at, id",
        );
        let find = find.binds((thread, &self.tenant, last, first));
        let rows: Vec<(Uuid, Uuid, u64, Option<u64>)> = self.of_tenant().rows(&find).await?;
        let read = |(id, assistant, base, last): (_, _, u64, Option<u64>)| RunSteps {
            id,
            assistant,
            steps: base + 1..=last.unwrap_or(u64::MAX),
        };
        Ok(rows.into_iter().map(read).collect())
    }

    /// Returns runs of the tenant that were asked for by `until` and have not ended, in the order of their ids.
    pub async fn open_runs_of_tenant(
        &self,
        until: DateTime<Utc>,
        after: Option<Uuid>,
        limit: u32,
    ) -> Result<Vec<Run>> {
        let mut find = self.select_runs();
        find.text(" AND status IN ('pending', 'running') AND created_at <= ").value(until);
        if let Some(after) = after {
            find.text(" AND id > ").value(after);
        }
        find.text(" ORDER BY id LIMIT ").value(limit);
        self.list_runs(find).await
    }

    /// Returns the IDs of a thread's runs that have not ended, with their statuses, oldest first.
    pub async fn open_ids(&self, thread: Uuid) -> Result<Vec<(Uuid, RunStatus)>> {
        let find = query(
            "SELECT id, status FROM service_run WHERE thread_id = $1 AND tenant = $2 \
             AND status IN ('pending', 'running') ORDER BY created_at, id",
        );
        Ok(self.of_tenant().rows(&find.binds((thread, &self.tenant))).await?)
    }

    /// Ends the runs of a user's threads, as part of a transaction: pending ones at once, and active ones by a request
    /// to their services.
    ///
    /// Owners in any letter case are the same person.
    pub async fn end_runs_of_user(
        transaction: &mut Transaction<'_>,
        tenant: &str,
        user: &str,
        now: DateTime<Utc>,
    ) -> Result<()> {
        let end = query(
            "UPDATE service_run SET status = 'interrupted', updated_at = $3, \
                last_step = (SELECT head FROM thread WHERE id = service_run.thread_id), \
                first_event = (SELECT events FROM thread WHERE id = service_run.thread_id), \
                last_event = (SELECT events FROM thread WHERE id = service_run.thread_id) \
             WHERE tenant = $1 AND status = 'pending' \
               AND thread_id IN (SELECT thread_id FROM service_thread WHERE tenant = $1 AND lower(user_id) = lower($2))",
        );
        transaction.execute(&end.binds((tenant, user, now))).await?;
        // One that began in the meantime is among them.
        let ask = query(
            "UPDATE service_run SET cancel = CASE WHEN cancel = 'rollback' THEN cancel ELSE $3 END \
             WHERE tenant = $1 AND status IN ('pending', 'running') \
               AND thread_id IN (SELECT thread_id FROM service_thread WHERE tenant = $1 AND lower(user_id) = lower($2))",
        );
        transaction.execute(&ask.binds((tenant, user, Cancel::Interrupt))).await?;
        Ok(())
    }
}
