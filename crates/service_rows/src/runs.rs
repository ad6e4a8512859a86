//! Runs as clients ask for them.

use chrono::{DateTime, SubsecRound as _, Utc};
use perihelion_database::{Query, Row, query, stored_row};
use serde_json::Value as Json;
use uuid::Uuid;

use crate::sql::Statement;
use crate::{Cancel, Error, Kept, Multitask, Result, RunStatus};

stored_row! {
    #[derive(Clone, Debug)]
    pub struct Run {
        pub id: Uuid,
        pub thread: Uuid = "thread_id",
        pub assistant: Uuid,
        pub status: RunStatus,
        pub multitask: Multitask,
        pub kwargs: Json,
        pub metadata: Json,
        pub error: Option<Json>,
        pub cancel: Option<Cancel>,
        /// Whether its thread goes with it.
        pub temporary: bool,
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
        /// The owner of its thread.
        pub tenant: String,
    }
}

impl Run {
    /// Returns whether it was begun by the statement that added it, and never since.
    pub fn began_at_once(&self) -> bool {
        self.attempt == 1 && self.updated_at == self.created_at
    }
}

/// What is known of a thread when a run is accepted for it, read at once.
#[derive(Clone, Debug)]
pub struct RunTarget {
    pub graph: String,
    /// Its newest step.
    pub head: u64,
    /// Its status, in the engine's words.
    pub status: String,
    pub user: Option<String>,
    pub is_disabled: bool,
    /// The graph and the assistant in its metadata.
    noted: [Option<String>; 2],
}

impl RunTarget {
    pub fn is_noted(&self, graph: &str, assistant: Uuid) -> bool {
        let [noted_graph, noted] = &self.noted;
        let noted = noted.as_ref().and_then(|id| Uuid::parse_str(id).ok());
        noted_graph.as_deref() == Some(graph) && noted == Some(assistant)
    }
}

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
    /// The only position of its thread at which it is added; any by default.
    pub only_at: Option<Position>,
}

/// A thread's newest step, and its runs that have not ended, oldest first.
#[derive(Clone, Debug)]
pub struct Position {
    pub step: u64,
    pub open: Vec<Uuid>,
}

#[derive(Clone, Copy, Debug)]
pub struct Begin<'a> {
    pub owner: &'a str,
    pub now: DateTime<Utc>,
}

#[derive(Clone, Debug)]
pub struct RunFilter {
    pub status: Option<RunStatus>,
    pub limit: u32,
    pub offset: u32,
}

impl Kept {
    /// Returns a thread at the top as runs are accepted for it.
    pub async fn run_target(&self, thread: Uuid) -> Result<Option<RunTarget>> {
        let find = query(
            "SELECT t.graph, t.head, t.status, m.user_id, p.disabled_at IS NOT NULL, \
                m.metadata ->> 'graph_id', m.metadata ->> 'assistant_id' \
             FROM thread t LEFT JOIN service_thread m ON m.thread_id = t.id \
                LEFT JOIN person p ON p.tenant = t.tenant AND p.name = m.user_id \
             WHERE t.id = $1 AND t.tenant = $2 AND t.root_id IS NULL",
        );
        let row = self.of_tenant().fetch_optional(&find.binds((thread, &self.tenant))).await?;
        let read = |row: Row| {
            Ok(RunTarget {
                graph: row.get(0)?,
                head: row.get(1)?,
                status: row.get(2)?,
                user: row.get(3)?,
                is_disabled: row.get(4)?,
                noted: [row.get(5)?, row.get(6)?],
            })
        };
        row.map(read).transpose()
    }

    /// Keeps a run that is asked for, and begins it in the same statement when its thread is free.
    ///
    /// `None` if its thread has another run or a holder ([`Multitask::Reject`]), or another position
    /// ([`NewRun::only_at`]).
    ///
    /// # Errors
    /// [`Error::UnknownThread`].
    pub async fn add_run(&self, new: &NewRun, begin: Begin<'_>) -> Result<Option<Run>> {
        let sql = "INSERT INTO service_run (id, thread_id, assistant, tenant, status, multitask, kwargs, metadata, \
                temporary, owner, seen_at, base_step, first_event, attempt, due_at, created_at, updated_at) \
            SELECT $1, $2, $3, $4, CASE WHEN t.free THEN 'running' ELSE 'pending' END, $5, $6, $7, $8, \
                CASE WHEN t.free THEN $9 END, CASE WHEN t.free THEN $10 END, CASE WHEN t.free THEN t.head END, \
                CASE WHEN t.free THEN t.events END, CASE WHEN t.free THEN 1 ELSE 0 END, $11, $10, $10 \
            FROM (SELECT head, events, quiet, quiet AND owner IS NULL AND $11 <= $10 AS free, \
                quiet AND (owner IS NULL OR lease_until <= $10) AS unused \
                FROM (SELECT head, events, owner, lease_until, NOT EXISTS (SELECT 1 FROM service_run r \
                    WHERE r.thread_id = thread.id AND r.status IN ('pending', 'running')) AS quiet \
                    FROM thread WHERE id = $2 AND tenant = $4) s) t \
            WHERE ($5 <> 'reject' OR t.unused) RETURNING status, owner, base_step, first_event, attempt";
        let statement = query(sql)
            .binds((new.id, new.thread, new.assistant, &self.tenant, new.multitask))
            .bind(self.shut_as_written("run", new.id, &new.kwargs)?)
            .bind(self.shut("run metadata", new.id, &new.metadata)?)
            .binds((new.temporary, begin.owner, begin.now, new.due_at));
        let added = match self.add_at(new, &statement).await {
            // Another process began one at this moment; now it is seen.
            Err(error) if error.is_duplicate() => self.add_at(new, &statement).await?,
            other => other?,
        };
        match added {
            Some(row) => Ok(Some(self.added(new, begin, &row)?)),
            None if self.has_thread(new.thread).await? => Ok(None),
            None => Err(Error::UnknownThread(new.thread)),
        }
    }

    /// Returns a run that was added, without reading back what was sent.
    fn added(&self, new: &NewRun, begin: Begin<'_>, row: &Row) -> Result<Run> {
        let now = begin.now.trunc_subsecs(6);
        Ok(Run {
            id: new.id,
            thread: new.thread,
            assistant: new.assistant,
            status: row.get(0)?,
            multitask: new.multitask,
            kwargs: new.kwargs.clone(),
            metadata: new.metadata.clone(),
            error: None,
            cancel: None,
            temporary: new.temporary,
            owner: row.get(1)?,
            base_step: row.get(2)?,
            last_step: None,
            first_event: row.get(3)?,
            last_event: None,
            attempt: row.get(4)?,
            due_at: new.due_at.trunc_subsecs(6),
            created_at: now,
            updated_at: now,
            tenant: self.tenant.clone(),
        })
    }

    /// Adds a run if its thread has the position at which alone it is meant to be added.
    async fn add_at(&self, new: &NewRun, add: &Query) -> Result<Option<Row>> {
        let database = self.of_tenant();
        let Some(position) = &new.only_at else {
            return Ok(database.execute_returning(add).await?);
        };
        let mut transaction = database.begin().await?;
        // Another client's run for this position is added before or after, and a step committed after.
        let lock = self.database.dialect().pick("", " FOR NO KEY UPDATE");
        let mut find = self.statement("SELECT head FROM thread WHERE id = ");
        find.value(new.thread).text(lock);
        let head = transaction.fetch_optional(&find.build()).await?;
        let head = head.map(|row| row.get::<i64>(0)).transpose()?.unwrap_or_default();
        let mut find = self.statement("SELECT id FROM service_run WHERE thread_id = ");
        find.value(new.thread);
        find.text(" AND status IN ('pending', 'running') ORDER BY created_at, id");
        let open = transaction.fetch_all(&find.build()).await?;
        let open: Vec<Uuid> = open.iter().map(|row| row.get(0)).collect::<Result<_, _>>()?;
        let is_there = head.unsigned_abs() == position.step && open == position.open;
        let added = if is_there { transaction.fetch_optional(add).await } else { Ok(None) };
        Ok(transaction.settle(added).await?)
    }

    /// Returns the run that has waited longest for a thread and may begin.
    pub async fn next_run(&self, thread: Uuid, now: DateTime<Utc>) -> Result<Option<Run>> {
        let mut find = self.select_runs();
        find.add(
            " AND status = 'pending' AND thread_id = ? AND due_at <= ? ORDER BY created_at, id LIMIT 1",
            (thread, now),
        );
        self.one_run(find).await
    }

    /// Begins a run that waits, unless one of its thread is driven.
    pub async fn begin_run(&self, run: &Run, begin: Begin<'_>) -> Result<Option<Run>, Error> {
        let claim = query(
            "UPDATE service_run SET status = 'running', owner = $1, seen_at = $2, updated_at = $2, \
                attempt = attempt + 1, base_step = COALESCE(base_step, (SELECT head FROM thread WHERE id = $3)), \
                first_event = COALESCE(first_event, (SELECT events FROM thread WHERE id = $3)) \
             WHERE thread_id = $3 AND id = $4 AND tenant = $5 AND status = 'pending' AND NOT EXISTS \
                (SELECT 1 FROM service_run r WHERE r.thread_id = $3 AND r.status = 'running')",
        );
        let claim = claim.binds((begin.owner, begin.now, run.thread, run.id, &self.tenant));
        match self.of_tenant().execute(&claim).await.map_err(Error::from) {
            Ok(1) => self.run(run.thread, run.id).await,
            Ok(_) => Ok(None),
            // Another process was quicker.
            Err(error) if error.is_duplicate() => Ok(None),
            Err(error) => Err(error),
        }
    }

    pub async fn run(&self, thread: Uuid, id: Uuid) -> Result<Option<Run>> {
        let mut find = self.select_runs();
        find.add(" AND thread_id = ? AND id = ?", (thread, id));
        self.one_run(find).await
    }

    /// Finds a run whose thread the caller does not know.
    pub async fn find_run(&self, id: Uuid) -> Result<Option<Run>> {
        let mut find = self.select_runs();
        find.text(" AND id = ").value(id);
        self.one_run(find).await
    }

    /// Returns the status of a run of a thread, without reading its request.
    pub async fn run_status(&self, thread: Uuid, id: Uuid) -> Result<Option<RunStatus>> {
        let find = query(
            "SELECT status FROM service_run WHERE id = $1 AND thread_id = $2 AND tenant = $3",
        );
        Ok(self.of_tenant().row(&find.binds((id, thread, &self.tenant))).await?)
    }

    /// Lists runs of a thread, newest first.
    pub async fn runs(&self, thread: Uuid, filter: &RunFilter) -> Result<Vec<Run>> {
        let mut find = self.select_runs();
        find.text(" AND thread_id = ").value(thread);
        if let Some(status) = filter.status {
            find.text(" AND status = ").value(status);
        }
        find.text(" ORDER BY created_at DESC, id DESC").page(filter.limit, filter.offset);
        self.list_runs(find).await
    }

    /// Lists a run and the later ones of its thread, oldest first, at most `limit`.
    pub async fn runs_since(&self, run: &Run, limit: u32) -> Result<Vec<Run>> {
        let mut find = self.select_runs();
        find.add(
            " AND thread_id = ? AND created_at >= ? ORDER BY created_at, id",
            (run.thread, run.created_at),
        );
        find.page(limit, 0);
        self.list_runs(find).await
    }

    /// Returns the runs of a thread that have not ended, oldest first.
    pub async fn open_runs(&self, thread: Uuid) -> Result<Vec<Run>> {
        let mut find = self.select_runs();
        find.text(" AND thread_id = ").value(thread);
        find.text(" AND status IN ('pending', 'running') ORDER BY created_at, id");
        self.list_runs(find).await
    }

    /// Begins a question for runs of the tenant, for conditions and an order to follow.
    pub(crate) fn select_runs(&self) -> Statement {
        self.select::<Run>("service_run")
    }

    pub(crate) async fn list_runs(&self, find: Statement) -> Result<Vec<Run>> {
        let found = self.of_tenant().rows(&find.build()).await?;
        found.into_iter().map(|run| self.opened_run(run)).collect()
    }

    pub(crate) async fn one_run(&self, find: Statement) -> Result<Option<Run>> {
        let found = self.of_tenant().row(&find.build()).await?;
        found.map(|run| self.opened_run(run)).transpose()
    }

    pub(crate) fn opened_run(&self, run: Run) -> Result<Run> {
        let kwargs = self.opened("run", run.id, run.kwargs)?;
        let metadata = self.opened("run metadata", run.id, run.metadata)?;
        let error = run.error.map(|why| self.opened("run error", run.id, why)).transpose()?;
        Ok(Run { kwargs, metadata, error, ..run })
    }

    async fn has_thread(&self, thread: Uuid) -> Result<bool> {
        let find = query("SELECT 1 FROM thread WHERE id = $1 AND tenant = $2");
        Ok(self.of_tenant().fetch_optional(&find.binds((thread, &self.tenant))).await?.is_some())
    }

    pub async fn delete_run(&self, thread: Uuid, id: Uuid) -> Result<bool> {
        let delete =
            query("DELETE FROM service_run WHERE id = $1 AND thread_id = $2 AND tenant = $3");
        Ok(self.change(delete.binds((id, thread, &self.tenant))).await? == 1)
    }
}
