//! One database file: the writing connection of the process, and a few reading ones.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use futures::FutureExt as _;
use parking_lot::Mutex;
use sqlx::query::Query;
use sqlx::sqlite::{SqliteArguments, SqliteConnectOptions, SqliteJournalMode, SqliteSynchronous};
use sqlx::{ConnectOptions, Connection, Sqlite, SqliteConnection};
use tokio::sync::{OwnedMutexGuard, Semaphore, SemaphorePermit};

use super::writing::{PATIENCE, WriterState, Writing};
use super::written::Written;
use crate::{Cause, Error, round_trips};

/// Readers at once in one process; each is a thread.
const READERS: usize = 4;

/// The handling of a deleted row's bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Deleted {
    /// They stay in the file until they are overwritten, as in SQLite by default.
    Left,
    /// They are overwritten at once (`secure_delete`), at the price of writing the page.
    Overwritten,
}

pub struct File {
    shown: String,
    options: SqliteConnectOptions,
    writing: Arc<Writing>,
    overwrites: bool,
    is_closed: AtomicBool,
    readers: Mutex<Vec<SqliteConnection>>,
    permits: Semaphore,
    /// The path of the file and its identity when it was opened; `None` if it is never written by name.
    place: Option<(PathBuf, Key)>,
    /// Whether the one connection is the database: it is private, and never replaced.
    pub(super) is_in_memory: bool,
}

/// The writing connection, held alone within this process.
pub struct Writer(OwnedMutexGuard<WriterState>);

/// A borrowed reading connection; [`Reader::settle`] gives it back.
pub struct Reader<'a> {
    connection: Lent,
    home: &'a File,
    _permit: SemaphorePermit<'a>,
}

enum Lent {
    Own(SqliteConnection),
    /// Of a database in memory, which has one connection only.
    Writing(OwnedMutexGuard<WriterState>),
}

/// The identity of a file, independent of its name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Key(#[cfg(unix)] (u64, u64), #[cfg(not(unix))] PathBuf);

impl Key {
    fn of(path: &Path) -> Option<Self> {
        #[cfg(unix)]
        {
            use std::os::unix::fs::MetadataExt as _;
            let is = std::fs::metadata(path).ok()?;
            Some(Self((is.dev(), is.ino())))
        }
        #[cfg(not(unix))]
        Some(Self(std::fs::canonicalize(path).ok()?))
    }
}

/// Pages that the writing connection keeps, in KiB: an index of many words touches a thousand of them with each document.
const WRITERS_CACHE: &str = "-32768";

impl File {
    /// Opens the file, making it and its directories when missing, for its owner alone.
    ///
    /// # Errors
    /// [`Error::Unreachable`] when it cannot be opened.
    pub async fn open(path: &Path, deleted: Deleted) -> Result<Self, Error> {
        let shown = format!("sqlite:{}", path.display());
        let unreachable = |reason: Cause| Error::Unreachable { url: shown.clone(), reason };
        let is_read_only = match make_private(path) {
            Ok(()) => false,
            // A copy on a read-only file system can be looked at.
            Err(error) if error.kind() == ErrorKind::ReadOnlyFilesystem && path.is_file() => true,
            Err(error) => return Err(unreachable(error.into())),
        };
        let options = SqliteConnectOptions::new()
            .filename(path)
            .foreign_keys(true)
            .with_regexp()
            .busy_timeout(PATIENCE)
            .synchronous(SqliteSynchronous::Full)
            // Steps of 1 to 2 KiB leave less of a page unused than in the default 4 KiB.
            .page_size(8192)
            .pragma("secure_delete", "OFF")
            .disable_statement_logging();
        let options = if is_read_only { to_read(options, path) } else { options };
        let writing = if is_read_only {
            options.clone()
        } else {
            options.clone().journal_mode(SqliteJournalMode::Wal).pragma("cache_size", WRITERS_CACHE)
        };
        // One that can only be read is no file of those who write.
        let key = if is_read_only { None } else { Key::of(path) };
        let place = key.clone().map(|key| (path.to_owned(), key));
        let writing = Writing::of(key, &shown, &writing);
        let mut file = Self::new(shown, options, writing);
        file.place = place;
        file.overwrites = deleted == Deleted::Overwritten && !is_read_only;
        match file.writing.alone(file.overwrites).await {
            Ok(_) => Ok(file),
            Err(error) => Err(Error::Unreachable { url: file.shown.clone(), reason: error.into() }),
        }
    }

    /// Makes a database in memory, which is gone with this value.
    ///
    /// # Errors
    /// [`Error::Unreachable`] when there is no memory for it.
    pub async fn in_memory() -> Result<Self, Error> {
        let shown = "memory:".to_owned();
        let options = SqliteConnectOptions::new()
            .in_memory(true)
            .foreign_keys(true)
            .with_regexp()
            .disable_statement_logging();
        let unreachable =
            |e: sqlx::Error| Error::Unreachable { url: "memory:".to_owned(), reason: e.into() };
        let connection = options.connect().await.map_err(unreachable)?;
        let writing = Writing::in_memory(&shown, &options, connection);
        let mut file = Self::new(shown, options, writing);
        file.is_in_memory = true;
        Ok(file)
    }

    fn new(shown: String, options: SqliteConnectOptions, writing: Arc<Writing>) -> Self {
        Self {
            shown,
            options,
            writing,
            overwrites: false,
            is_closed: AtomicBool::new(false),
            readers: Mutex::default(),
            permits: Semaphore::new(READERS),
            place: None,
            is_in_memory: false,
        }
    }

    /// Borrows the writing connection; one that was left within a transaction is replaced first.
    ///
    /// # Errors
    /// [`Error::Failed`] when the file is closed or no connection can be made, [`Error::Unreachable`] when it was moved.
    pub async fn writer(&self) -> Result<Writer, Error> {
        self.is_open()?;
        self.check_place()?;
        Ok(Writer(self.writing.alone(self.overwrites).await.map_err(|e| self.refine(e))?))
    }

    /// Runs one statement that writes, or `several` of one text that happen together or not at all; when this returns,
    /// the change is on disk.
    ///
    /// Statements that wait for each other share a transaction, and so a flush. A statement that a constraint rejects
    /// is undone alone.
    ///
    /// # Errors
    /// [`Error::Unreachable`] when the file was moved, and the database's error.
    pub async fn write(
        &self,
        statement: Query<'_, Sqlite, SqliteArguments>,
        several: bool,
    ) -> Result<Written, Error> {
        self.check_place()?;
        self.is_open()?;
        let written = self.writing.write(statement, several, self.overwrites).await;
        written.map_err(|error| self.refine(error))
    }

    /// Refuses to continue with a file that was moved or replaced: other processes would use another one there.
    ///
    /// # Errors
    /// [`Error::Unreachable`].
    pub fn check_place(&self) -> Result<(), Error> {
        match &self.place {
            Some((path, key)) if Key::of(path).as_ref() != Some(key) => Err(Error::Unreachable {
                url: self.shown.clone(),
                reason: "its file was moved, removed or replaced while this process used it, and nothing was \
                         written; put it back, or stop this process and name the file's new place"
                    .into(),
            }),
            _ => Ok(()),
        }
    }

    fn is_open(&self) -> Result<(), sqlx::Error> {
        if self.is_closed.load(Ordering::SeqCst) { Err(sqlx::Error::PoolClosed) } else { Ok(()) }
    }

    /// Borrows a reading connection; waits while all are in use.
    ///
    /// # Errors
    /// [`Error::Failed`] when the file is closed or no connection can be made.
    pub async fn reader(&self) -> Result<Reader<'_>, Error> {
        let permit = self.permits.acquire().await.map_err(|_| sqlx::Error::PoolClosed)?;
        self.check_place()?;
        if self.is_in_memory {
            let place = self.writing.alone(false).await.map_err(|e| self.refine(e))?;
            let connection = Lent::Writing(place);
            return Ok(Reader { connection, home: self, _permit: permit });
        }
        let resting = self.readers.lock().pop();
        let connection = match resting {
            Some(connection) => connection,
            // On the heap: otherwise each statement has room for it.
            None => self.options.connect().boxed().await.map_err(|e| self.refine(e))?,
        };
        let connection = Lent::Own(connection);
        Ok(Reader { connection, home: self, _permit: permit })
    }

    pub fn refine(&self, error: sqlx::Error) -> Error {
        match code(&error).as_deref() {
            // SQLITE_FULL
            Some("13") => Error::Full { url: self.shown.clone(), reason: error.to_string() },
            // SQLITE_BUSY, SQLITE_BUSY_RECOVERY
            Some("5" | "261") => Error::Locked { url: self.shown.clone() },
            // SQLITE_READONLY
            Some("8") => Error::ReadOnly { url: self.shown.clone() },
            _ => Error::Failed(error),
        }
    }

    pub fn shown(&self) -> &str {
        &self.shown
    }

    pub async fn close(&self) {
        // A failed close changes nothing: acknowledged writes are on disk.
        let _all = self.permits.acquire_many(READERS as u32).await;
        self.permits.close();
        let readers = std::mem::take(&mut *self.readers.lock());
        for reader in readers {
            let _ = reader.close().await;
        }
        if !self.is_closed.swap(true, Ordering::SeqCst) {
            self.writing.leave().await;
        }
    }
}

/// Makes the file, and directories that are missing, readable by their owner alone: threads hold whatever people said.
/// SQLite gives the files next to it the same mode.
///
/// An existing file is not opened here: this process's locks on it, which protect the active write-ahead log, would end
/// when it is closed, for all connections.
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
    match file.create_new(true).write(true).open(path) {
        Err(error) if error.kind() == ErrorKind::AlreadyExists => may_write(path),
        made => made.map(|_| ()),
    }
}

#[cfg(unix)]
fn may_write(path: &Path) -> std::io::Result<()> {
    Ok(rustix::fs::access(path, rustix::fs::Access::WRITE_OK)?)
}

#[cfg(not(unix))]
fn may_write(path: &Path) -> std::io::Result<()> {
    std::fs::OpenOptions::new().append(true).open(path).map(|_| ())
}

/// Reads a file that cannot be changed, in a directory that cannot be changed.
fn to_read(options: SqliteConnectOptions, path: &Path) -> SqliteConnectOptions {
    let mut log = path.as_os_str().to_owned();
    log.push("-wal");
    let is_settled = std::fs::metadata(log).map_or(true, |log| log.len() == 0);
    // What stands in a log beside the file is read with its index, if that is there as well.
    options.read_only(true).immutable(is_settled)
}

/// Returns SQLite's extended error code, as text.
pub fn code(error: &sqlx::Error) -> Option<String> {
    Some(error.as_database_error()?.code()?.into_owned())
}

impl Drop for File {
    fn drop(&mut self) {
        if !*self.is_closed.get_mut() {
            self.writing.forget();
        }
    }
}

impl Reader<'_> {
    /// Returns the connection.
    ///
    /// # Errors
    /// [`sqlx::Error::PoolClosed`] once the file is closed.
    pub fn connection(&mut self) -> Result<&mut SqliteConnection, sqlx::Error> {
        match &mut self.connection {
            Lent::Own(connection) => {
                round_trips::note();
                Ok(connection)
            }
            Lent::Writing(place) => place.connection(),
        }
    }

    /// Gives the connection back, unless it could not end its transaction, and names the failure.
    pub fn settle<T>(self, result: Result<T, sqlx::Error>) -> Result<T, Error> {
        let result = result.map_err(|error| self.home.refine(error));
        self.give_back();
        result
    }

    /// Gives the connection back, unless it could not end its transaction.
    pub(crate) fn give_back(self) {
        if let Lent::Own(connection) = self.connection
            && !connection.is_in_transaction()
        {
            self.home.readers.lock().push(connection);
        }
    }
}

impl Writer {
    /// Returns the connection.
    ///
    /// # Errors
    /// [`sqlx::Error::PoolClosed`] once the file is closed.
    pub fn connection(&mut self) -> Result<&mut SqliteConnection, sqlx::Error> {
        self.0.connection()
    }
}
