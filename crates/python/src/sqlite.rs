//! SQLite: one connection under a lock; a batch is one transaction.
//!
//! No connection is open during a fork: the child would inherit what SQLite notes of its locks without the locks, and
//! another process would then delete the log that the child writes to.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use pyo3::prelude::*;
use rusqlite::{Connection, OpenFlags, TransactionBehavior};

use crate::error::Error;
use crate::files::OpenFile;
use crate::value::{Rows, Statement, Value};

/// How long another process may lock the file, in milliseconds.
const BUSY_MILLISECONDS: u64 = 30_000;

/// The log is written back into the file after this number of pages, 0.5 MB: about 25 steps.
const LOG_PAGES: i64 = 128;

/// The databases in files, each with the process that opened it.
static ALL: Mutex<Vec<(u32, Weak<Sqlite>)>> = Mutex::new(Vec::new());

/// Whether this process is being forked.
static FORKS: AtomicBool = AtomicBool::new(false);

/// A SQLite database, in a file or in memory.
#[derive(Debug)]
pub struct Sqlite {
    path: String,
    read_only: bool,
    state: Mutex<State>,
}

#[derive(Debug)]
enum State {
    Open(Open),
    /// Closed for a fork; the next use opens it.
    Resting,
    Closed,
}

#[derive(Debug)]
struct Open {
    connection: Connection,
    /// After the connection, which is closed first.
    _file: Option<OpenFile>,
}

impl Sqlite {
    /// Opens `:memory:` or a file, which is created if needed.
    pub fn open(path: &str, read_only: bool) -> Result<Arc<Self>, Error> {
        let state = Mutex::new(State::Open(Open::new(path, read_only)?));
        let opened = Arc::new(Self { path: path.to_owned(), read_only, state });
        if path != ":memory:" {
            let mut all = ALL.lock().unwrap_or_else(PoisonError::into_inner);
            all.retain(|(_, one)| one.strong_count() > 0);
            all.push((std::process::id(), Arc::downgrade(&opened)));
        }
        Ok(opened)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs statements as one transaction and returns the rows of each.
    pub fn run(&self, batch: &[Statement], writes: bool) -> Result<Vec<Rows>, Error> {
        let mut state = self.state();
        while matches!(*state, State::Resting) && FORKS.load(Ordering::SeqCst) {
            // Not locked meanwhile: nobody would ever unlock it in the child.
            drop(state);
            while FORKS.load(Ordering::SeqCst) {
                std::thread::sleep(Duration::from_millis(1));
            }
            state = self.state();
        }
        if matches!(*state, State::Resting) {
            *state = State::Open(Open::new(&self.path, self.read_only)?);
        }
        let State::Open(Open { connection, .. }) = &mut *state else { return Err(Error::Closed) };
        let behavior =
            if writes { TransactionBehavior::Immediate } else { TransactionBehavior::Deferred };
        let transaction = connection.transaction_with_behavior(behavior)?;
        let all = batch
            .iter()
            .map(|statement| query(&transaction, statement))
            .collect::<Result<_, _>>()?;
        transaction.commit()?;
        Ok(all)
    }

    /// Closes the connection; later calls fail.
    pub fn close(&self) {
        *self.state() = State::Closed;
    }
}

impl Open {
    fn new(path: &str, read_only: bool) -> Result<Self, Error> {
        if path == ":memory:" {
            return Ok(Self { connection: Connection::open_in_memory()?, _file: None });
        }
        let file = OpenFile::register(Path::new(path), read_only)?;
        let access = if read_only {
            OpenFlags::SQLITE_OPEN_READ_ONLY
        } else {
            OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE
        };
        let connection =
            Connection::open_with_flags(path, access | OpenFlags::SQLITE_OPEN_NO_MUTEX)?;
        connection.busy_timeout(Duration::from_millis(BUSY_MILLISECONDS))?;
        if !read_only {
            connection.pragma_update(None, "journal_mode", "wal")?;
            connection.pragma_update(None, "synchronous", "full")?;
            connection.pragma_update(None, "wal_autocheckpoint", LOG_PAGES)?;
        }
        connection.set_prepared_statement_cache_capacity(64);
        Ok(Self { connection, _file: Some(file) })
    }
}

/// Closes the connections to files until the process is forked.
#[pyfunction]
pub fn before_fork(py: Python<'_>) {
    py.detach(|| {
        FORKS.store(true, Ordering::SeqCst);
        let all = ALL.lock().unwrap_or_else(PoisonError::into_inner);
        let mine = all.iter().filter(|(process, _)| *process == std::process::id());
        for one in mine.filter_map(|(_, one)| one.upgrade()) {
            let mut state = one.state();
            if matches!(*state, State::Open(_)) {
                *state = State::Resting;
            }
        }
    });
}

/// Lets the connections to files open again, in both processes.
#[pyfunction]
pub fn after_fork() {
    FORKS.store(false, Ordering::SeqCst);
}

fn query(connection: &Connection, statement: &Statement) -> Result<Rows, Error> {
    let mut prepared = connection.prepare_cached(&statement.sql)?;
    let columns = prepared.column_count();
    let mut found = prepared.query(rusqlite::params_from_iter(&statement.values))?;
    let mut rows = Vec::new();
    while let Some(row) = found.next()? {
        let values = (0..columns).map(|index| row.get_ref(index).map(Value::from_sqlite));
        rows.push(values.collect::<Result<_, _>>()?);
    }
    Ok(rows)
}
