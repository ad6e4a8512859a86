//! One database file: a single writing connection, and a few for reading beside it.

use std::{
    ops::{Deref, DerefMut},
    path::{Path, PathBuf},
    sync::{Mutex, PoisonError},
    time::Duration,
};

use sqlx::{
    ConnectOptions, Connection, SqliteConnection,
    sqlite::{SqliteConnectOptions, SqliteJournalMode, SqliteSynchronous},
};
use tokio::sync::{MutexGuard, Semaphore, SemaphorePermit};

use super::super::Error;
use crate::clock;

/// Readers at once in one process; each is a thread.
const READERS: usize = 4;

/// How long a write waits for another process's write.
const PATIENCE: Duration = Duration::from_secs(15);

pub(super) struct File {
    shown: String,
    options: SqliteConnectOptions,
    /// Empty while it is replaced, and once the file is closed.
    writer: tokio::sync::Mutex<Option<SqliteConnection>>,
    readers: Mutex<Vec<SqliteConnection>>,
    permits: Semaphore,
}

/// The writing connection, held alone within this process.
pub(super) struct Writer<'a>(MutexGuard<'a, Option<SqliteConnection>>);

/// A borrowed reading connection; [`Reader::settle`] gives it back.
pub(super) struct Reader<'a> {
    connection: SqliteConnection,
    home: &'a File,
    _permit: SemaphorePermit<'a>,
}

impl File {
    /// Opens the file, making it and its directories when missing, for its owner alone.
    pub(super) async fn open(path: &Path) -> Result<Self, Error> {
        let shown = format!("sqlite:{}", path.display());
        let unreachable = |reason: String| Error::Unreachable { url: shown.clone(), reason };
        make_private(path).map_err(|e| unreachable(e.to_string()))?;
        let options = SqliteConnectOptions::new()
            .filename(path)
            .foreign_keys(true)
            .busy_timeout(PATIENCE)
            .synchronous(SqliteSynchronous::Full)
            // Steps of 1 to 2 KiB leave less of a page unused than in the default 4 KiB.
            .page_size(8192)
            .disable_statement_logging();
        let writer = connect_to_write(&options).await.map_err(|e| unreachable(e.to_string()))?;
        Ok(Self {
            options,
            writer: tokio::sync::Mutex::new(Some(writer)),
            readers: Mutex::default(),
            permits: Semaphore::new(READERS),
            shown,
        })
    }

    /// Borrows the writing connection; one that was left amid a transaction is replaced first.
    pub(super) async fn writer(&self) -> Result<Writer<'_>, Error> {
        let mut guard = self.writer.lock().await;
        if let Some(stuck) = take_stuck(&mut guard).await {
            tracing::warn!(database = %self.shown, "replacing a connection that could not roll back");
            // Until it is closed it may hold the write lock; more is not asked of it.
            let _ = stuck.close().await;
        }
        if guard.is_none() {
            if self.permits.is_closed() {
                return Err(sqlx::Error::PoolClosed.into());
            }
            *guard = Some(connect_to_write(&self.options).await.map_err(|e| self.refine(e))?);
        }
        Ok(Writer(guard))
    }

    pub(super) async fn reader(&self) -> Result<Reader<'_>, Error> {
        let permit = self.permits.acquire().await.map_err(|_| sqlx::Error::PoolClosed)?;
        let resting = self.lock().pop();
        let connection = match resting {
            Some(connection) => connection,
            None => self.options.connect().await.map_err(|e| self.refine(e))?,
        };
        Ok(Reader { connection, home: self, _permit: permit })
    }

    /// Names a database failure by what the reader of the message can do about it.
    pub(super) fn refine(&self, error: sqlx::Error) -> Error {
        match code(&error).as_deref() {
            // SQLITE_FULL
            Some("13") => Error::Full { url: self.shown.clone(), reason: error.to_string() },
            _ => Error::Database(error),
        }
    }

    pub(super) fn shown(&self) -> &str {
        &self.shown
    }

    pub(super) async fn close(&self) {
        // A failed farewell changes nothing: what was acknowledged is on disk.
        let _all = self.permits.acquire_many(READERS as u32).await;
        self.permits.close();
        let readers = std::mem::take(&mut *self.lock());
        for reader in readers {
            let _ = reader.close().await;
        }
        if let Some(writer) = self.writer.lock().await.take() {
            let _ = writer.close().await;
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Vec<SqliteConnection>> {
        self.readers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Makes the file, and directories that are missing, readable by their owner alone: threads hold
/// whatever people said. SQLite gives the files beside it the same mode.
fn make_private(path: &Path) -> std::io::Result<()> {
    let mut directories = std::fs::DirBuilder::new();
    let mut file = std::fs::OpenOptions::new();
    #[cfg(unix)]
    {
        std::os::unix::fs::DirBuilderExt::mode(&mut directories, 0o700);
        std::os::unix::fs::OpenOptionsExt::mode(&mut file, 0o600);
    }
    let parent = path.parent().map(PathBuf::from).unwrap_or_default();
    if !parent.as_os_str().is_empty() {
        directories.recursive(true).create(parent)?;
    }
    file.create(true).append(true).open(path).map(|_| ())
}

/// Connects to write; the change to write-ahead logging does not wait for other processes by itself.
async fn connect_to_write(options: &SqliteConnectOptions) -> Result<SqliteConnection, sqlx::Error> {
    let options = options.clone().journal_mode(SqliteJournalMode::Wal);
    let deadline = clock::monotonic() + PATIENCE;
    loop {
        match options.connect().await {
            Err(error) if is_busy(&error) && clock::monotonic() < deadline => {
                clock::sleep(Duration::from_millis(10)).await;
            }
            result => return result,
        }
    }
}

/// Takes a connection out that is still amid a transaction after every call on it has ended.
///
/// SQLite rolls back by itself when the disk is full or fails; the driver's own attempt then fails, and it
/// counts the transaction as open for ever.
async fn take_stuck(place: &mut Option<SqliteConnection>) -> Option<SqliteConnection> {
    let connection = place.as_mut().filter(|connection| connection.is_in_transaction())?;
    // A call that was given up may only now be rolling back; the answer comes after that.
    let is_alive = connection.ping().await.is_ok();
    match is_alive && !connection.is_in_transaction() {
        true => None,
        false => place.take(),
    }
}

/// Returns SQLite's extended error code, as text.
pub(super) fn code(error: &sqlx::Error) -> Option<String> {
    Some(error.as_database_error()?.code()?.into_owned())
}

fn is_busy(error: &sqlx::Error) -> bool {
    let number = code(error).and_then(|code| code.parse::<i32>().ok());
    // The low byte of an extended code is the plain one; 5 is SQLITE_BUSY.
    number.is_some_and(|number| number & 0xff == 5)
}

impl Reader<'_> {
    /// Gives the connection back, unless it could not end its transaction, and names the failure.
    pub(super) fn settle<T>(self, result: Result<T, sqlx::Error>) -> Result<T, Error> {
        let result = result.map_err(|error| self.home.refine(error));
        if !self.connection.is_in_transaction() {
            self.home.lock().push(self.connection);
        }
        result
    }
}

impl Deref for Reader<'_> {
    type Target = SqliteConnection;
    fn deref(&self) -> &SqliteConnection {
        &self.connection
    }
}

impl DerefMut for Reader<'_> {
    fn deref_mut(&mut self) -> &mut SqliteConnection {
        &mut self.connection
    }
}

impl Writer<'_> {
    pub(super) fn connection(&mut self) -> Result<&mut SqliteConnection, sqlx::Error> {
        self.0.as_mut().ok_or(sqlx::Error::PoolClosed)
    }
}
