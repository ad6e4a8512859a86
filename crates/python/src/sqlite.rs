//! SQLite: one connection under a lock; a batch is one transaction.

use std::path::Path;
use std::sync::{Mutex, PoisonError};

use rusqlite::{Connection, OpenFlags, TransactionBehavior};

use crate::error::Error;
use crate::files::OpenFile;
use crate::value::{Rows, Statement, Value};

/// How long another process may lock the file, in milliseconds.
const BUSY_MILLISECONDS: u64 = 30_000;

/// The log is written back into the file after this number of pages, 0.5 MB: about 25 steps.
const LOG_PAGES: i64 = 128;

/// A SQLite database, in a file or in memory.
#[derive(Debug)]
pub struct Sqlite {
    open: Mutex<Option<Open>>,
}

#[derive(Debug)]
struct Open {
    connection: Connection,
    /// After the connection, which is closed first.
    _file: Option<OpenFile>,
}

impl Sqlite {
    /// Opens `:memory:` or a file, which is created if needed.
    pub fn open(path: &str, read_only: bool) -> Result<Self, Error> {
        if path == ":memory:" {
            let open = Open { connection: Connection::open_in_memory()?, _file: None };
            return Ok(Self { open: Mutex::new(Some(open)) });
        }
        let file = OpenFile::register(Path::new(path), read_only)?;
        let access = if read_only {
            OpenFlags::SQLITE_OPEN_READ_ONLY
        } else {
            OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE
        };
        let connection =
            Connection::open_with_flags(path, access | OpenFlags::SQLITE_OPEN_NO_MUTEX)?;
        connection.busy_timeout(std::time::Duration::from_millis(BUSY_MILLISECONDS))?;
        if !read_only {
            connection.pragma_update(None, "journal_mode", "wal")?;
            connection.pragma_update(None, "synchronous", "full")?;
            connection.pragma_update(None, "wal_autocheckpoint", LOG_PAGES)?;
        }
        connection.set_prepared_statement_cache_capacity(64);
        Ok(Self { open: Mutex::new(Some(Open { connection, _file: Some(file) })) })
    }

    /// Runs statements as one transaction and returns the rows of each.
    pub fn run(&self, batch: &[Statement], writes: bool) -> Result<Vec<Rows>, Error> {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        let connection = &mut open.as_mut().ok_or(Error::Closed)?.connection;
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
        self.open.lock().unwrap_or_else(PoisonError::into_inner).take();
    }
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
