//! Runs as clients ask for them.

use chrono::{DateTime, Utc};
use perihelion_database::{Row, query};
use serde_json::Value as Json;
use uuid::Uuid;

use crate::{Cancel, Error, Kept, Multitask, RunStatus};

/// The columns that a run is read from.
pub(crate) const SELECT: &str = "SELECT id, thread_id, assistant, status, multitask, kwargs, metadata, error, cancel, temporary, \
    owner, base_step, last_step, first_event, last_event, attempt, due_at, created_at, updated_at, tenant";

/// A run.
#[derive(Clone, Debug)]
pub struct Run {
    pub id: Uuid,
    pub thread: Uuid,
    pub assistant: Uuid,
    pub status: RunStatus,
    pub multitask: Multitask,
    /// What was asked for.
    pub kwargs: Json,
    pub metadata: Json,
    pub error: Option<Json>,
    pub cancel: Option<Cancel>,
    /// Whether its thread goes with it.
    pub temporary: bool,
    /// The process that drives it.
    pub owner: Option<String>,
    /// The thread's newest step when it began.
    pub base_step: Option<u64>,
    /// The thread's newest step when it ended.
    pub last_step: Option<u64>,
    /// The thread's newest event when it began; its own are later.
    pub first_event: Option<u64>,
    /// The thread's newest event when it ended.
    pub last_event: Option<u64>,
    /// How many processes have driven it.
    pub attempt: u32,
    pub due_at: DateTime<Utc>,
    pub created_at: DateTime<Utc>,
    pub updated_at: DateTime<Utc>,
    /// Whose thread it is of.
    pub tenant: String,
}

/// A run that is asked for.
#[derive(Clone, Debug)]
pub struct NewRun {
    pub id: Uuid,
    pub thread: Uuid,
    pub assistant: Uuid,
    pub multitask: Multitask,
    pub kwargs: Json,
    pub metadata: Json,
    pub temporary: bool,
    pub due_at: DateTime<Utc>,
}

/// Who begins runs, and when.
#[derive(Clone, Copy, Debug)]
pub struct Begin<'a> {
    pub owner: &'a str,
    pub now: DateTime<Utc>,
}

/// Which runs of a thread are listed.
#[derive(Clone, Debug)]
pub struct RunFilter {
    pub status: Option<RunStatus>,
    pub limit: u32,
    pub offset: u32,
}

impl Run {
    pub(crate) fn read(row: &Row) -> Result<Self, Error> {
        let number = |column| -> Result<Option<u64>, Error> {
            Ok(row.get::<Option<i64>>(column)?.map(i64::unsigned_abs))
        };
        Ok(Self {
            id: row.get(0)?,
            thread: row.get(1)?,
            assistant: row.get(2)?,
            status: RunStatus::from_word(&row.get::<String>(3)?)?,
            multitask: Multitask::from_word(&row.get::<String>(4)?)?,
            kwargs: row.get(5)?,
            metadata: row.get(6)?,
            error: row.get(7)?,
            cancel: match row.get::<Option<String>>(8)? {
                Some(word) => Some(Cancel::from_word(&word)?),
                None => None,
            },
            temporary: row.get(9)?,
            owner: row.get(10)?,
            base_step: number(11)?,
            last_step: number(12)?,
            first_event: number(13)?,
            last_event: number(14)?,
            attempt: row.get::<i64>(15)?.try_into().unwrap_or(u32::MAX),
            due_at: row.get(16)?,
            created_at: row.get(17)?,
            updated_at: row.get(18)?,
            tenant: row.get(19)?,
        })
    }
}

impl Kept {
    /// Keeps a run that is asked for, and begins it in the same statement when its thread is free.
    ///
    /// `None` where it is to be the only one ([`Multitask::Reject`]) and the thread has another run or another holder.
    ///
    /// # Errors
    /// [`Error::UnknownThread`].
    pub async fn add_run(&self, new: &NewRun, begin: Begin<'_>) -> Result<Option<Run>, Error> {
        let sql = "INSERT INTO service_run (id, thread_id, assistant, tenant, status, multitask, kwargs, metadata, \
                temporary, owner, seen_at, base_step, first_event, attempt, due_at, created_at, updated_at) \
            SELECT $1, $2, $3, $4, CASE WHEN t.free THEN 'running' ELSE 'pending' END, $5, $6, $7, $8, \
                CASE WHEN t.free THEN $9 END, CASE WHEN t.free THEN $10 END, CASE WHEN t.free THEN t.head END, \
                CASE WHEN t.free THEN t.events END, CASE WHEN t.free THEN 1 ELSE 0 END, $11, $10, $10 \
            FROM (SELECT head, events, $11 <= $10 AND owner IS NULL AND NOT EXISTS (SELECT 1 FROM service_run r \
                WHERE r.thread_id = thread.id AND r.status IN ('pending', 'running')) AS free, \
                NOT EXISTS (SELECT 1 FROM service_run r WHERE r.thread_id = thread.id \
                    AND r.status IN ('pending', 'running')) AND (owner IS NULL OR lease_until <= $10) AS unused \
                FROM thread WHERE id = $2 AND tenant = $4) t \
            WHERE $5 <> 'reject' OR t.unused";
        let statement = query(sql)
            .bind(new.id)
            .bind(new.thread)
            .bind(new.assistant)
            .bind(self.tenant.as_str())
            .bind(new.multitask.as_str())
            .bind(self.shut("run", new.id, &new.kwargs)?)
            .bind(self.shut("run metadata", new.id, &new.metadata)?)
            .bind(new.temporary)
            .bind(begin.owner)
            .bind(begin.now)
            .bind(new.due_at);
        let added = match self.of_tenant().execute(&statement).await.map_err(Error::from) {
            // Another process began one at this moment; now it is seen.
            Err(error) if error.is_duplicate() => self.of_tenant().execute(&statement).await?,
            other => other?,
        };
        match self.run(new.thread, new.id).await?.filter(|_| added == 1) {
            Some(run) => Ok(Some(run)),
            None if new.multitask == Multitask::Reject && self.has_thread(new.thread).await? => {
                Ok(None)
            }
            None => Err(Error::UnknownThread(new.thread)),
        }
    }

    /// Begins the oldest run that waits for a thread, unless one is driven.
    pub async fn begin_next(&self, thread: Uuid, begin: Begin<'_>) -> Result<Option<Run>, Error> {
        let mut find = self.select_runs();
        find.text(" AND status = 'pending' AND thread_id = ").value(thread);
        find.text(" AND due_at <= ").value(begin.now).text(" ORDER BY created_at, id LIMIT 1");
        let Some(run) = self.one_run(find).await? else {
            return Ok(None);
        };
        let claim = query(
            "UPDATE service_run SET status = 'running', owner = $1, seen_at = $2, updated_at = $2, \
                attempt = attempt + 1, base_step = COALESCE(base_step, (SELECT head FROM thread WHERE id = $3)), \
                first_event = COALESCE(first_event, (SELECT events FROM thread WHERE id = $3)) \
             WHERE id = $4 AND tenant = $5 AND status = 'pending' AND NOT EXISTS \
                (SELECT 1 FROM service_run r WHERE r.thread_id = $3 AND r.status = 'running')",
        );
        let claim = claim.bind(begin.owner).bind(begin.now).bind(thread).bind(run.id);
        let claim = claim.bind(self.tenant.as_str());
        match self.of_tenant().execute(&claim).await.map_err(Error::from) {
            Ok(1) => self.find_run(run.id).await,
            Ok(_) => Ok(None),
            // Another process was quicker.
            Err(error) if error.is_duplicate() => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Returns a run of a thread.
    pub async fn run(&self, thread: Uuid, id: Uuid) -> Result<Option<Run>, Error> {
        Ok(self.find_run(id).await?.filter(|run| run.thread == thread))
    }

    /// Returns a run by its id alone.
    pub async fn find_run(&self, id: Uuid) -> Result<Option<Run>, Error> {
        let mut find = self.select_runs();
        find.text(" AND id = ").value(id);
        self.one_run(find).await
    }

    /// Returns how a run of a thread stands, without reading what it was asked to do.
    pub async fn run_status(&self, thread: Uuid, id: Uuid) -> Result<Option<RunStatus>, Error> {
        let find = query(
            "SELECT status FROM service_run WHERE id = $1 AND thread_id = $2 AND tenant = $3",
        );
        let find = find.bind(id).bind(thread).bind(self.tenant.as_str());
        let found = self.of_tenant().fetch_optional(&find).await?;
        found.map(|row| RunStatus::from_word(&row.get::<String>(0)?)).transpose()
    }

    /// Lists runs of a thread, newest first.
    pub async fn runs(&self, thread: Uuid, filter: &RunFilter) -> Result<Vec<Run>, Error> {
        let mut find = self.select_runs();
        find.text(" AND thread_id = ").value(thread);
        if let Some(status) = filter.status {
            find.text(" AND status = ").value(status.as_str());
        }
        find.text(" ORDER BY created_at DESC, id DESC").page(filter.limit, filter.offset);
        self.list_runs(find).await
    }

    /// Returns the runs of a thread that have not ended, oldest first.
    pub async fn open_runs(&self, thread: Uuid) -> Result<Vec<Run>, Error> {
        let mut find = self.select_runs();
        find.text(" AND thread_id = ").value(thread);
        find.text(" AND status IN ('pending', 'running') ORDER BY created_at, id");
        self.list_runs(find).await
    }

    async fn has_thread(&self, thread: Uuid) -> Result<bool, Error> {
        let find = query("SELECT 1 FROM thread WHERE id = $1 AND tenant = $2");
        let find = find.bind(thread).bind(self.tenant.as_str());
        Ok(self.of_tenant().fetch_optional(&find).await?.is_some())
    }

    /// Deletes a run.
    pub async fn delete_run(&self, thread: Uuid, id: Uuid) -> Result<bool, Error> {
        let delete =
            query("DELETE FROM service_run WHERE id = $1 AND thread_id = $2 AND tenant = $3");
        let delete = delete.bind(id).bind(thread).bind(self.tenant.as_str());
        Ok(self.of_tenant().execute(&delete).await? == 1)
    }
}
