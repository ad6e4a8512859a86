//! How runs end, are asked to end, or are put back.

use chrono::{DateTime, TimeDelta, Utc};
use perihelion_database::query;
use serde_json::Value as Json;
use uuid::Uuid;

use crate::{Cancel, Error, Kept, RunStatus};

/// How a run ended.
#[derive(Clone, Debug)]
pub struct Ended<'a> {
    pub status: RunStatus,
    /// Why it failed.
    pub error: Option<Json>,
    /// What is kept from now on of what was asked for; none: all of it.
    pub kwargs: Option<&'a Json>,
    /// The process that alone may end it; none: any.
    pub by: Option<&'a str>,
}

impl Ended<'_> {
    /// Says that a run ended so, and no more.
    pub fn new(status: RunStatus) -> Self {
        Self { status, error: None, kwargs: None, by: None }
    }
}

impl Kept {
    /// Ends a run with the marks of its thread's steps and log; one that has ended, or is another process's, stays as it is.
    pub async fn end_run(
        &self,
        id: Uuid,
        ended: Ended<'_>,
        now: DateTime<Utc>,
    ) -> Result<bool, Error> {
        let end = query(
            "UPDATE service_run SET status = $1, error = $2, updated_at = $3, owner = NULL, \
                kwargs = COALESCE($6, kwargs), \
                last_step = (SELECT head FROM thread WHERE id = service_run.thread_id), \
                last_event = (SELECT events FROM thread WHERE id = service_run.thread_id) \
             WHERE id = $4 AND tenant = $5 AND status IN ('pending', 'running') \
                AND owner IS NOT DISTINCT FROM COALESCE($7, owner)",
        );
        let kwargs = ended.kwargs.map(|kwargs| self.shut("run", id, kwargs)).transpose()?;
        let error = ended.error.map(|why| self.shut("run error", id, &why)).transpose()?;
        let end = end.bind(ended.status.as_str()).bind(error).bind(now).bind(id);
        let end = end.bind(self.tenant.as_str()).bind(kwargs).bind(ended.by);
        Ok(self.of_tenant().execute(&end).await? == 1)
    }

    /// Ends a run that has not begun, or notes of one that has how it is to be stopped; a rollback goes before an interrupt.
    ///
    /// Returns how it stood: pending, running, or `None` where it had ended.
    pub async fn ask_to_cancel(
        &self,
        id: Uuid,
        how: Cancel,
        now: DateTime<Utc>,
    ) -> Result<Option<RunStatus>, Error> {
        let ask = query(
            "UPDATE service_run SET status = CASE WHEN status = 'pending' THEN 'interrupted' ELSE status END, \
                cancel = CASE WHEN cancel = 'rollback' THEN cancel ELSE $1 END, \
                updated_at = CASE WHEN status = 'pending' THEN $2 ELSE updated_at END, \
                last_step = CASE WHEN status = 'pending' \
                    THEN (SELECT head FROM thread WHERE id = service_run.thread_id) END, \
                first_event = CASE WHEN status = 'pending' \
                    THEN (SELECT events FROM thread WHERE id = service_run.thread_id) ELSE first_event END, \
                last_event = CASE WHEN status = 'pending' \
                    THEN (SELECT events FROM thread WHERE id = service_run.thread_id) END \
             WHERE id = $3 AND tenant = $4 AND status IN ('pending', 'running') RETURNING status",
        );
        let ask = ask.bind(how.as_str()).bind(now).bind(id).bind(self.tenant.as_str());
        Ok(match self.of_tenant().execute_returning(&ask).await? {
            None => None,
            Some(row) if row.get::<String>(0)? == RunStatus::Running.as_str() => {
                Some(RunStatus::Running)
            }
            Some(_) => Some(RunStatus::Pending),
        })
    }

    /// Puts a run that has done nothing back among those that wait; one that is to be stopped ends instead.
    ///
    /// Of one that was taken over it stays known where it began first: the process that had it may be alive after all, and
    /// its followers have heard events of it.
    pub async fn put_back(
        &self,
        id: Uuid,
        owner: &str,
        now: DateTime<Utc>,
        pause: TimeDelta,
    ) -> Result<(), Error> {
        let back = query(
            "UPDATE service_run SET status = CASE WHEN cancel IS NULL THEN 'pending' ELSE 'interrupted' END, \
                owner = NULL, due_at = $1, updated_at = $2, \
                attempt = CASE WHEN attempt > 1 THEN attempt ELSE 0 END, \
                base_step = CASE WHEN attempt > 1 THEN base_step END, \
                last_step = CASE WHEN cancel IS NULL THEN NULL ELSE base_step END, \
                last_event = CASE WHEN cancel IS NULL THEN NULL ELSE first_event END, \
                first_event = CASE WHEN cancel IS NULL AND attempt <= 1 THEN NULL ELSE first_event END \
             WHERE id = $3 AND owner = $4 AND tenant = $5 AND status = 'running'",
        );
        let back = back.bind(now + pause).bind(now).bind(id).bind(owner);
        self.of_tenant().execute(&back.bind(self.tenant.as_str())).await?;
        Ok(())
    }
}
