//! Dispatch on Postgres: `graphile_worker` keeps the wake-up calls and tells of new ones at once.
//!
//! A call is taken out of the queue in one transaction, before its thread is claimed, and not kept for as
//! long as the thread runs. So no call is ever locked by a dead worker, and a worker that has no room
//! holds none back from the others; what is lost between call and claim is found by the next look.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use futures::StreamExt as _;
use graphile_worker::sql::complete_job::complete_job;
use graphile_worker::sql::get_job::get_job;
use graphile_worker::sql::task_identifiers::{TaskDetails, get_tasks_details};
use graphile_worker::{Database, Job, NotificationStream, Schema, WorkerUtils};
use perihelion_database::postgres::{SILENCE, Server, within};
use sqlx::PgPool;
use tokio::sync::Mutex;

use super::look::{Look, Wake};
use super::{Dispatcher, Error, Scope};
use perihelion_engine::checkpoint::{self, Store};
use perihelion_engine::clock;
use perihelion_engine::failpoint::{Point, wrap};
use perihelion_engine::ids::ThreadId;

/// The kind of job that `wake_thread` in the database enqueues.
const TASK: &str = "wake_thread";

/// The channel on which the queue tells of new jobs.
const CHANNEL: &str = "jobs:insert";

/// One connection listens, one takes calls.
const CONNECTIONS: u32 = 2;

/// How often workers look for threads whose lease has run out, whose holder is dead, or whose call was lost.
///
/// A thread is taken over within its lease and this long.
const LOOK_EVERY: Duration = Duration::from_millis(500);

/// A call that was not heard within this time counts as lost.
const LOST_AFTER: Duration = Duration::from_secs(1);

/// The advisory lock of the one who sets the queue up; `wake_thread` in the database has the same number.
const SETUP: i64 = -5_682_727_480_907_227_257;

/// Dispatch for a database that any number of machines share.
pub struct Graphile {
    look: Look,
    pool: PgPool,
    database: Database,
    task: TaskDetails,
    name: String,
    /// None when the connection that listened is gone.
    calls: Mutex<Option<NotificationStream>>,
}

impl Graphile {
    /// Connects, and sets the queue up where no worker ever ran.
    ///
    /// # Errors
    /// [`checkpoint::Error::Unreachable`] for the database, [`Error::Queue`] for the queue in it.
    pub async fn open(url: &str, store: Arc<dyn Store>, scope: Scope) -> Result<Self, Error> {
        let server = Server::read(url, "perihelion dispatch").map_err(checkpoint::Error::from)?;
        let pool = server.pool(CONNECTIONS).await.map_err(checkpoint::Error::from)?;
        let database = Database::from(pool.clone());
        let schema = Schema::default();
        set_up(&pool, &database, &schema).await?;
        let tasks = get_tasks_details(&database, &schema, vec![TASK.to_owned()]).await;
        let task = tasks.map_err(Error::queue)?;
        let name = format!("perihelion_{}", uuid::Uuid::new_v4().simple());
        let queued_for = if scope.thorough { Duration::ZERO } else { LOST_AFTER };
        let look = Look::new(store, scope, LOOK_EVERY, queued_for);
        Ok(Self { look, pool, database, task, name, calls: Mutex::default() })
    }

    /// Takes one call out of the queue.
    async fn take_in_time(&self) -> Result<Option<Job>, Error> {
        match within(SILENCE, async { Ok(self.take().await) }).await {
            Ok(taken) => taken,
            Err(silent) => {
                // The connection that listens was likely swallowed by the same event.
                self.calls.lock().await.take();
                Err(checkpoint::Error::Database(silent).into())
            }
        }
    }

    async fn take(&self) -> Result<Option<Job>, Error> {
        let schema = Schema::default();
        let transaction = self.database.begin().await.map_err(Error::queue)?;
        let job = get_job(&transaction, &self.task, schema.clone(), &self.name, &[], None).await;
        let job = job.map_err(Error::queue)?;
        if let Some(job) = &job {
            let done = complete_job(&transaction, job, &self.name, schema).await;
            done.map_err(Error::queue)?;
        }
        transaction.commit().await.map_err(Error::queue)?;
        Ok(job)
    }
}

/// Sets the queue up, or brings it up to date; until then nobody is called through it.
///
/// Its migrations are transactions of their own, and who called a function between two of them might find
/// it without its tables.
async fn set_up(pool: &PgPool, database: &Database, schema: &Schema) -> Result<(), Error> {
    let failed = |error: sqlx::Error| Error::queue(error);
    let mut guard = pool.acquire().await.map_err(failed)?;
    sqlx::query("SELECT pg_advisory_lock($1)")
        .bind(SETUP)
        .execute(&mut *guard)
        .await
        .map_err(failed)?;
    let done = WorkerUtils::new(database.clone(), schema.clone()).migrate().await;
    // The lock ends with the connection, which nobody else is to have with it.
    guard.close().await.map_err(failed)?;
    done.map_err(Error::queue)
}

#[async_trait]
impl Dispatcher for Graphile {
    async fn next(&self) -> Result<Option<Wake>, Error> {
        // Looking first: on a busy queue a thread without a caller is not to wait for the last call.
        if let Some(wake) = self.look.next().await? {
            return Ok(Some(wake));
        }
        while let Some(job) = wrap(Point::QueueTake, self.take_in_time()).await? {
            let thread = job.payload().get("thread").and_then(|thread| thread.as_str());
            let thread = thread.and_then(|thread| uuid::Uuid::parse_str(thread).ok());
            if let Some(wake) = thread.and_then(|thread| self.look.wake(ThreadId(thread))) {
                return Ok(Some(wake));
            }
        }
        Ok(None)
    }

    async fn called(&self) {
        let mut calls = self.calls.lock().await;
        if calls.is_none() {
            // What was called before this connection listened is not told: the caller asks first.
            *calls = self.database.listen(CHANNEL).await.unwrap_or_else(|error| {
                tracing::warn!(%error, "wake-up calls cannot be listened to; looking for threads");
                None
            });
            if calls.is_some() {
                return;
            }
        }
        let heard = async {
            match calls.as_mut() {
                Some(stream) => matches!(stream.next().await, Some(Ok(_))),
                None => std::future::pending().await,
            }
        };
        let is_open = tokio::select! {
            is_open = heard => is_open,
            () = clock::sleep(self.look.until_due()) => true,
        };
        if !is_open {
            *calls = None;
        }
    }

    fn set_aside(&self, wake: &Wake, pause: Duration) {
        self.look.set_aside(wake, pause);
    }

    async fn close(&self) {
        self.calls.lock().await.take();
        self.pool.close().await;
    }
}
