//! How runs end, are requested to end, or are put back.

use chrono::{DateTime, TimeDelta, Utc};
use perihelion_database::{Value, query};
use serde_json::Value as Json;
use uuid::Uuid;

use crate::{Cancel, Kept, Result, RunStatus};

#[derive(Clone, Debug)]
pub struct Ended<'a> {
    pub status: RunStatus,
    pub error: Option<Json>,
    /// The part of the request that stays stored; `None` means all of it.
    pub kwargs: Option<&'a Json>,
    /// The only process that can end it; `None` means any.
    pub by: Option<&'a str>,
    /// Whether it ends only without a request to cancel it and without a pending approval in its thread.
    pub if_undisturbed: bool,
}

impl Ended<'_> {
    pub fn new(status: RunStatus) -> Self {
        Self { status, error: None, kwargs: None, by: None, if_undisturbed: false }
    }
}

#[derive(Clone, Copy, Debug)]
pub struct RunEnding {
    pub last_step: Option<u64>,
    pub last_event: Option<u64>,
    pub has_next: bool,
}

impl Kept {
    /// Ends a run with the positions in its thread's steps and log, and its usage; a run that has ended, or belongs to
    /// another process, stays unchanged: `None`.
    pub async fn end_run(
        &self,
        thread: Uuid,
        id: Uuid,
        ended: Ended<'_>,
        now: DateTime<Utc>,
    ) -> Result<Option<RunEnding>> {
        let end = query(
            "UPDATE service_run SET status = $1, error = $2, updated_at = $3, owner = NULL, \
                kwargs = COALESCE($6, kwargs), \
                last_step = (SELECT head FROM thread WHERE id = $9), \
                last_event = (SELECT events FROM thread WHERE id = $9), \
                (tokens, nano_usd) = (SELECT CAST(SUM(s.tokens) AS bigint), CAST(SUM(s.nano_usd) AS bigint) \
                    FROM spending s WHERE s.thread_id = $9 AND s.run_id IN (SELECT step.run FROM step \
                    WHERE step.thread_id = $9 AND step.seq > service_run.base_step)) \
             WHERE thread_id = $9 AND id = $4 AND tenant = $5 AND status IN ('pending', 'running') \
                AND owner IS NOT DISTINCT FROM COALESCE($7, owner) AND (NOT $8 OR cancel IS NULL \
                AND NOT EXISTS (SELECT 1 FROM approval_request a WHERE a.thread_id = $9 \
                    AND a.tenant = $5 AND a.status = 'pending')) \
             RETURNING last_step, last_event, \
                EXISTS (SELECT 1 FROM service_run r WHERE r.thread_id = $9 AND r.status = 'pending')",
        );
        let kwargs = match ended.kwargs {
            Some(kwargs) => self.shut_as_written("run", id, kwargs)?,
            None => Value::Written(None),
        };
        let error = ended.error.map(|why| self.shut("run error", id, &why)).transpose()?;
        let end = end.binds((ended.status, error, now, id, &self.tenant, kwargs, ended.by));
        let end = end.binds((ended.if_undisturbed, thread));
        let Some(row) = self.of_tenant().execute_returning(&end).await? else { return Ok(None) };
        let [last_step, last_event] = [row.get(0)?, row.get(1)?];
        Ok(Some(RunEnding { last_step, last_event, has_next: row.get(2)? }))
    }

    /// Ends a pending run, or stores how an active one must be stopped; a rollback precedes an interrupt.
    ///
    /// A pending run that was taken over may have made steps: a rollback leaves it, and is done when it begins.
    ///
    /// Returns pending if it has ended by that, running if its process ends it, or `None` if it had ended.
    pub async fn ask_to_cancel(
        &self,
        thread: Uuid,
        id: Uuid,
        how: Cancel,
        now: DateTime<Utc>,
    ) -> Result<Option<RunStatus>> {
        let leave = query(
            "UPDATE service_run SET cancel = 'rollback' WHERE id = $1 AND tenant = $2 AND status = 'pending' \
             AND attempt > 1 AND ($3 = 'rollback' OR cancel = 'rollback') AND thread_id = $4",
        );
        if self.change(leave.binds((id, &self.tenant, how, thread))).await? == 1 {
            return Ok(Some(RunStatus::Running));
        }
        let ask = query(
            "UPDATE service_run SET status = CASE WHEN status = 'pending' THEN 'interrupted' ELSE status END, \
                cancel = CASE WHEN cancel = 'rollback' THEN cancel ELSE $1 END, \
                updated_at = CASE WHEN status = 'pending' THEN $2 ELSE updated_at END, \
                last_step = CASE WHEN status = 'pending' \
                    THEN (SELECT head FROM thread WHERE id = $5) END, \
                first_event = CASE WHEN status = 'pending' \
                    THEN (SELECT events FROM thread WHERE id = $5) ELSE first_event END, \
                last_event = CASE WHEN status = 'pending' \
                    THEN (SELECT events FROM thread WHERE id = $5) END \
             WHERE thread_id = $5 AND id = $3 AND tenant = $4 AND status IN ('pending', 'running') RETURNING status",
        );
        let ask = ask.binds((how, now, id, &self.tenant, thread));
        let Some(row) = self.of_tenant().execute_returning(&ask).await? else { return Ok(None) };
        let has_ended = row.get::<RunStatus>(0)? == RunStatus::Interrupted;
        Ok(Some(if has_ended { RunStatus::Pending } else { RunStatus::Running }))
    }

    /// Returns a run without progress to the pending ones; false if it must stop, or another process has it.
    ///
    /// A run that was taken over keeps its first start position: its earlier process may be alive, and its followers
    /// have received events of it.
    pub async fn put_back(
        &self,
        thread: Uuid,
        id: Uuid,
        owner: &str,
        now: DateTime<Utc>,
        pause: TimeDelta,
    ) -> Result<bool> {
        let back = query(
            "UPDATE service_run SET status = 'pending', owner = NULL, due_at = $1, updated_at = $2, \
                attempt = CASE WHEN attempt > 1 THEN attempt ELSE 0 END, \
                base_step = CASE WHEN attempt > 1 THEN base_step END, \
                first_event = CASE WHEN attempt > 1 THEN first_event END \
             WHERE thread_id = $6 AND id = $3 AND owner = $4 AND tenant = $5 AND status = 'running' AND cancel IS NULL",
        );
        let back = back.binds((now + pause, now, id, owner, &self.tenant, thread));
        Ok(self.change(back).await? == 1)
    }

    /// Requests the end of a thread's run from its holder; returns whether the thread has one.
    pub async fn ask_holder(&self, thread: Uuid, now: DateTime<Utc>) -> Result<bool> {
        let ask = query(
            "INSERT INTO thread_stop (thread_id, tenant, fence, asked_at) \
             SELECT id, tenant, fence, $3 FROM thread WHERE id = $1 AND tenant = $2 AND status = 'busy' \
             ON CONFLICT (thread_id) DO UPDATE SET fence = excluded.fence, asked_at = excluded.asked_at",
        );
        Ok(self.change(ask.binds((thread, &self.tenant, now))).await? == 1)
    }

    /// Returns the threads of all tenants whose present holder is asked to end its run.
    pub async fn asked_of_holders(&self) -> Result<Vec<Uuid>> {
        let find = query(
            "SELECT s.thread_id FROM thread_stop s JOIN thread t ON t.id = s.thread_id \
             WHERE t.fence = s.fence AND t.status = 'busy'",
        );
        Ok(self.of_all_tenants().rows(&find).await?)
    }

    pub async fn forget_asked(&self, thread: Uuid) -> Result<()> {
        let forget = query("DELETE FROM thread_stop WHERE thread_id = $1 AND tenant = $2");
        self.change(forget.binds((thread, &self.tenant))).await.map(drop)
    }
}
