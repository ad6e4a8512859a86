//! The one connection of a process that writes to a file, however often the file was opened, and how writers share its transactions.
//!
//! SQLite has one writer at a time. Two writing connections of a process would collide and retry after a sleep, so all
//! openers of a file share one, and wait for it in the order of their arrival. A single statement that has others
//! waiting behind it opens a transaction that they join, so that one flush serves them all; a lone one is a separate
//! transaction. Statements that belong together join as one, or open a transaction for themselves.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use futures::FutureExt as _;
use parking_lot::Mutex;
use sqlx::query::Query;
use sqlx::sqlite::{SqliteArguments, SqliteConnectOptions, SqliteTransactionManager};
use sqlx::{AssertSqlSafe, ConnectOptions, Connection, Execute, Sqlite, SqliteConnection};
use sqlx_core::{sql_str::SqlSafeStr as _, transaction::TransactionManager};
use tokio::sync::{OwnedMutexGuard, watch};

use super::file::{File, Key, Writer, code};
use super::written::{Written, written};
use crate::{Error, clock, round_trips};

/// How long a write waits for another process's write.
pub(super) const PATIENCE: Duration = Duration::from_secs(15);

/// The open files of this process, by their identity.
static OPEN: Mutex<Vec<(Key, Weak<Writing>)>> = Mutex::new(Vec::new());

/// How long it waits for readers of the earlier state, in total and per attempt.
const SCRUBBING: Duration = Duration::from_secs(5);
const BETWEEN_ATTEMPTS: Duration = Duration::from_millis(20);

pub(super) struct Writing {
    shown: String,
    options: SqliteConnectOptions,
    place: Arc<tokio::sync::Mutex<WriterState>>,
    /// Single statements that wait for the connection.
    waiting: AtomicUsize,
    /// The openers of the file; the last one closes the connection.
    users: AtomicUsize,
    /// The one connection is the database: it is private, never replaced, and never flushed.
    is_in_memory: bool,
}

pub(super) struct WriterState {
    /// Empty until the first write, while it is replaced, and after the last opener.
    connection: Option<SqliteConnection>,
    /// The transaction that single statements share, while one is open.
    group: Option<Group>,
    /// Whether a writer of several statements may have left after a part of them.
    is_torn: bool,
    /// Whether deletions of this connection overwrite; once asked for, it stays so.
    overwrites: bool,
}

/// The result of a shared transaction: unknown yet, or whether it was committed.
struct Group(watch::Sender<Option<bool>>);

impl Writing {
    /// Returns the writing side of a file, the same for all who have it open.
    pub(super) fn of(key: Option<Key>, shown: &str, options: &SqliteConnectOptions) -> Arc<Self> {
        let mut open = OPEN.lock();
        open.retain(|(_, writing)| writing.strong_count() > 0);
        let found = key.as_ref().and_then(|key| open.iter().find(|(other, _)| other == key));
        if let Some(writing) = found.and_then(|(_, writing)| writing.upgrade()) {
            writing.users.fetch_add(1, Ordering::SeqCst);
            return writing;
        }
        let writing = Arc::new(Self::new(shown, options, None, false));
        open.extend(key.map(|key| (key, Arc::downgrade(&writing))));
        writing
    }

    pub(super) fn in_memory(
        shown: &str,
        options: &SqliteConnectOptions,
        connection: SqliteConnection,
    ) -> Arc<Self> {
        Arc::new(Self::new(shown, options, Some(connection), true))
    }

    fn new(
        shown: &str,
        options: &SqliteConnectOptions,
        connection: Option<SqliteConnection>,
        is_in_memory: bool,
    ) -> Self {
        let place = WriterState { connection, group: None, is_torn: false, overwrites: false };
        Self {
            shown: shown.to_owned(),
            options: options.clone(),
            place: Arc::new(tokio::sync::Mutex::new(place)),
            waiting: AtomicUsize::new(0),
            users: AtomicUsize::new(1),
            is_in_memory,
        }
    }

    /// Takes the connection while the guard lives; a shared transaction is committed first.
    pub(super) async fn alone(
        &self,
        overwrites: bool,
    ) -> Result<OwnedMutexGuard<WriterState>, sqlx::Error> {
        let mut place = self.settled().await?;
        self.prepare(&mut place, overwrites).await?;
        Ok(place)
    }

    /// Runs a statement, or `several` of one text, in a transaction that waiting ones can share; when this returns, the
    /// change is on disk.
    pub(super) async fn write(
        &self,
        mut query: Query<'_, Sqlite, SqliteArguments>,
        several: bool,
        overwrites: bool,
    ) -> Result<Written, sqlx::Error> {
        let arguments = query.take_arguments().map_err(sqlx::Error::Encode)?.unwrap_or_default();
        let sql = query.sql();
        let statement = || sqlx::query_with::<Sqlite, _>(sql.clone(), arguments.clone());
        let mut place = {
            let _waits = Waits::new(&self.waiting);
            Arc::clone(&self.place).lock_owned().await
        };
        self.prepare(&mut place, overwrites).await?;
        if place.group.is_none() {
            let is_alone = self.is_in_memory || self.waiting.load(Ordering::SeqCst) == 0;
            if is_alone && !several {
                return written(statement(), place.connection()?).await;
            }
            if is_alone {
                let whole = AssertSqlSafe(format!("BEGIN IMMEDIATE; {}; COMMIT", sql.as_str()));
                let whole = sqlx::query_with::<Sqlite, _>(whole, arguments.clone());
                place.is_torn = true;
                let done = written(whole, place.connection()?).await;
                match &done {
                    Ok(_) => place.is_torn = false,
                    Err(_) => place.give_up().await,
                }
                return done;
            }
            self.begin(&mut place).await?;
        }
        place.is_torn = several;
        let done = written(statement(), place.connection()?).await;
        place.is_torn = false;
        let done = match done {
            // The statement undid itself and nothing else. What refused it may be a part of the same transaction, and is
            // visible to callers that ask for the reason once that is committed.
            Err(error) if !is_constraint(&error) || several => {
                place.give_up().await;
                return Err(error);
            }
            done => done,
        };
        let Some(mut outcome) = place.group.as_ref().map(|group| group.0.subscribe()) else {
            return done;
        };
        drop(place);
        let is_committed =
            outcome.wait_for(Option::is_some).await.is_ok_and(|it| *it == Some(true));
        if is_committed {
            return done;
        }
        // The statement that failed the transaction fails again alone.
        let mut place = self.alone(overwrites).await?;
        let mut transaction = place.connection()?.begin().await?;
        let done = written(statement(), &mut transaction).await?;
        transaction.commit().await?;
        Ok(done)
    }

    /// Begins a transaction for all who wait, and has it committed behind them.
    async fn begin(&self, place: &mut WriterState) -> Result<(), sqlx::Error> {
        let begin = "BEGIN IMMEDIATE".into_sql_str();
        SqliteTransactionManager::begin(place.connection()?, Some(begin)).await?;
        place.group = Some(Group(watch::Sender::new(None)));
        let place = Arc::clone(&self.place);
        tokio::spawn(async move {
            let place = place.lock_owned().await;
            if place.group.is_some() {
                commit(place).await;
            }
        });
        Ok(())
    }

    /// Ensures that there is a connection that can be used.
    async fn prepare(&self, place: &mut WriterState, overwrites: bool) -> Result<(), sqlx::Error> {
        if place.is_torn {
            place.give_up().await;
        }
        if self.is_in_memory {
            return Ok(());
        }
        if place.group.is_none()
            && let Some(stuck) = take_stuck(&mut place.connection).await
        {
            tracing::warn!(database = %self.shown, "replacing a connection that could not roll back");
            // Until it is closed it may have the write lock; its answer is not needed.
            let _ = stuck.close().await;
        }
        if place.connection.is_none() {
            place.connection = Some(connect_to_write(&self.options).boxed().await?);
            place.overwrites = false;
        }
        if overwrites && !place.overwrites {
            sqlx::raw_sql("PRAGMA secure_delete = ON").execute(place.connection()?).await?;
            place.overwrites = true;
        }
        Ok(())
    }

    /// Counts one user less; the last one closes the connection.
    pub(super) async fn leave(&self) {
        if self.users.fetch_sub(1, Ordering::SeqCst) > 1 {
            return;
        }
        let Ok(mut place) = self.settled().await else { return };
        // A failed close changes nothing: acknowledged writes are on disk.
        if let Some(connection) = place.connection.take() {
            let _ = connection.close().await;
        }
    }

    /// Waits for the connection, and commits the shared transaction there, in a separate task: an interrupted commit
    /// would be neither done nor undone.
    async fn settled(&self) -> Result<OwnedMutexGuard<WriterState>, sqlx::Error> {
        let place = Arc::clone(&self.place).lock_owned().await;
        if place.group.is_some() {
            tokio::spawn(commit(place)).await.map_err(|_| sqlx::Error::WorkerCrashed)
        } else {
            Ok(place)
        }
    }

    /// Counts one user less that did not wait for the end.
    pub(super) fn forget(&self) {
        self.users.fetch_sub(1, Ordering::SeqCst);
    }
}

impl WriterState {
    pub(super) fn connection(&mut self) -> Result<&mut SqliteConnection, sqlx::Error> {
        round_trips::note();
        self.connection.as_mut().ok_or(sqlx::Error::PoolClosed)
    }

    /// Gives the transaction up; each writer of a shared one tries alone.
    async fn give_up(&mut self) {
        drop(self.group.take());
        let is_torn = std::mem::take(&mut self.is_torn);
        let Ok(connection) = self.connection() else { return };
        // One that cannot roll back is replaced by the next who needs it.
        let _ = SqliteTransactionManager::rollback(connection).await;
        if is_torn {
            // The manager knows nothing of one that a text began; without a transaction this changes nothing.
            let _ = sqlx::raw_sql("ROLLBACK").execute(connection).await;
        }
    }
}

/// Commits the shared transaction, and notifies its members.
async fn commit(mut place: OwnedMutexGuard<WriterState>) -> OwnedMutexGuard<WriterState> {
    let is_torn = place.is_torn;
    let done = match place.connection() {
        Ok(_) if is_torn => Err(sqlx::Error::WorkerCrashed),
        Ok(connection) => SqliteTransactionManager::commit(connection).await,
        Err(error) => Err(error),
    };
    match done {
        Ok(()) => {
            if let Some(Group(outcome)) = place.group.take() {
                outcome.send_replace(Some(true));
            }
        }
        Err(error) => {
            tracing::debug!(%error, "a shared transaction failed, each of its writers tries alone");
            place.give_up().await;
        }
    }
    place
}

/// Counts a writer while it waits.
struct Waits<'a>(&'a AtomicUsize);

impl<'a> Waits<'a> {
    fn new(count: &'a AtomicUsize) -> Self {
        count.fetch_add(1, Ordering::SeqCst);
        Self(count)
    }
}

impl Drop for Waits<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

/// Connects to write; the change to write-ahead logging does not wait for other processes.
async fn connect_to_write(options: &SqliteConnectOptions) -> Result<SqliteConnection, sqlx::Error> {
    let deadline = clock::monotonic() + PATIENCE;
    loop {
        match options.connect().await {
            Err(error) if is(&error, 5) && clock::monotonic() < deadline => {
                clock::sleep(Duration::from_millis(10)).await;
            }
            result => return result,
        }
    }
}

/// Takes a connection out that is still within a transaction after every call on it has ended.
///
/// SQLite rolls back automatically when the disk is full or fails; the driver's own attempt then fails, and it counts
/// the transaction as open forever.
async fn take_stuck(place: &mut Option<SqliteConnection>) -> Option<SqliteConnection> {
    let connection = place.as_mut().filter(|connection| connection.is_in_transaction())?;
    // A call that was given up may only now be rolling back; the answer comes after that.
    let is_alive = connection.ping().await.is_ok();
    if is_alive && !connection.is_in_transaction() { None } else { place.take() }
}

/// Returns whether it is `SQLITE_CONSTRAINT`, after which a transaction continues without the statement.
fn is_constraint(error: &sqlx::Error) -> bool {
    is(error, 19)
}

/// Compares with a plain result code, the low byte of an extended one; 5 is `SQLITE_BUSY`.
fn is(error: &sqlx::Error, plain: i32) -> bool {
    let number = code(error).and_then(|code| code.parse::<i32>().ok());
    number.is_some_and(|number| number & 0xff == plain)
}

impl File {
    /// Moves the write-ahead log into the file and empties it, so that no byte of deleted data stays there.
    ///
    /// Waits some seconds for readers of the earlier state, without blocking writers.
    ///
    /// # Errors
    /// [`Error::Unscrubbed`] when they do not end; [`Error::Failed`], [`Error::Full`].
    pub async fn scrub(&self) -> Result<(), Error> {
        if self.is_in_memory {
            return Ok(());
        }
        let deadline = clock::monotonic() + SCRUBBING;
        while !self.empty_log().await? {
            if clock::monotonic() >= deadline {
                return Err(Error::Unscrubbed { url: self.shown().to_owned() });
            }
            clock::sleep(BETWEEN_ATTEMPTS).await;
        }
        Ok(())
    }

    /// Tries to empty the log, and returns whether it succeeded.
    async fn empty_log(&self) -> Result<bool, Error> {
        let writer = self.writer().await?;
        // In a separate task: a caller that gives up leaves no connection with less patience behind.
        let emptied = tokio::spawn(empty_log(writer)).await;
        emptied.unwrap_or(Err(sqlx::Error::WorkerCrashed)).map_err(|error| self.refine(error))
    }
}

async fn empty_log(mut writer: Writer) -> Result<bool, sqlx::Error> {
    let connection = writer.connection()?;
    let wait =
        |time: Duration| AssertSqlSafe(format!("PRAGMA busy_timeout = {}", time.as_millis()));
    // No other statement of this process writes while this waits.
    sqlx::raw_sql(wait(BETWEEN_ATTEMPTS)).execute(&mut *connection).await?;
    let done: Result<(i64, i64, i64), _> =
        sqlx::query_as("PRAGMA wal_checkpoint(TRUNCATE)").fetch_one(&mut *connection).await;
    sqlx::raw_sql(wait(PATIENCE)).execute(connection).await?;
    let (was_busy, ..) = done?;
    Ok(was_busy == 0)
}
