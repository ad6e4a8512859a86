//! Connections to one server, kept between calls.
//!
//! A pool of our own because sqlx's sends a ping whenever a connection comes back, which is a second
//! round trip per commit. A connection goes back only after a complete answer; one whose call was
//! cancelled or broke is closed instead.

use std::{
    ops::{Deref, DerefMut},
    sync::{Mutex, PoisonError},
    time::{Duration, Instant},
};

use sqlx::{
    ConnectOptions, Connection, PgConnection,
    postgres::{PgConnectOptions, PgDatabaseError},
};
use tokio::sync::{Semaphore, SemaphorePermit};

use super::super::{Error, redact_url};
use crate::clock;

/// Connections held at most by one process; a server accepts 100 by default, and several processes share it.
const MOST: usize = 16;

/// A connection that rested longer is asked for a sign of life before it is used.
const TRUSTED_FOR: Duration = Duration::from_secs(2);

/// A server that does not greet within this time counts as unreachable.
const GREETING: Duration = Duration::from_secs(10);

/// Waits between attempts to reach a server that is restarting.
const PATIENCE: [Duration; 5] = [
    Duration::from_millis(50),
    Duration::from_millis(200),
    Duration::from_millis(750),
    Duration::from_secs(2),
    Duration::from_secs(4),
];

pub(super) struct Connections {
    options: PgConnectOptions,
    /// The address without its password.
    shown: String,
    resting: Mutex<Vec<Resting>>,
    permits: Semaphore,
}

struct Resting {
    connection: PgConnection,
    since: Instant,
}

/// A borrowed connection; [`Borrowed::settle`] gives it back.
pub(super) struct Borrowed<'a> {
    connection: PgConnection,
    home: &'a Connections,
    _permit: SemaphorePermit<'a>,
}

impl Connections {
    pub(super) fn new(url: &str) -> Result<Self, Error> {
        let shown = redact_url(url);
        let options = url
            .parse::<PgConnectOptions>()
            .map_err(|e| Error::Unreachable { url: shown.clone(), reason: e.to_string() })?
            .application_name("perihelion")
            .disable_statement_logging();
        Ok(Self { options, shown, resting: Mutex::default(), permits: Semaphore::new(MOST) })
    }

    /// Borrows a connection, opening one when none rests; waits while all are in use.
    pub(super) async fn take(&self) -> Result<Borrowed<'_>, Error> {
        self.take_trusting(TRUSTED_FOR).await
    }

    /// Borrows a connection that has just answered: for statements that cannot be repeated when it breaks.
    pub(super) async fn take_tested(&self) -> Result<Borrowed<'_>, Error> {
        self.take_trusting(Duration::ZERO).await
    }

    async fn take_trusting(&self, trusted_for: Duration) -> Result<Borrowed<'_>, Error> {
        let permit = self.permits.acquire().await.map_err(|_| sqlx::Error::PoolClosed)?;
        while let Some(Resting { mut connection, since }) = self.pop() {
            if clock::monotonic().duration_since(since) < trusted_for
                || connection.ping().await.is_ok()
            {
                return Ok(Borrowed { connection, home: self, _permit: permit });
            }
        }
        let connection = self.connect().await.map_err(|e| self.unreachable(&e))?;
        Ok(Borrowed { connection, home: self, _permit: permit })
    }

    /// Opens a new connection after another one broke, waiting a few seconds for a server that restarts.
    pub(super) async fn fresh(&self) -> Result<Borrowed<'_>, Error> {
        // The others that rest here were likely cut by the same event.
        self.lock().clear();
        let permit = self.permits.acquire().await.map_err(|_| sqlx::Error::PoolClosed)?;
        let mut waits = PATIENCE.iter();
        loop {
            match (self.connect().await, waits.next()) {
                (Ok(connection), _) => {
                    return Ok(Borrowed { connection, home: self, _permit: permit });
                }
                (Err(error), Some(wait)) if is_broken(&error) => clock::sleep(*wait).await,
                (Err(error), _) => return Err(self.unreachable(&error)),
            }
        }
    }

    async fn connect(&self) -> Result<PgConnection, sqlx::Error> {
        match tokio::time::timeout(GREETING, PgConnection::connect_with(&self.options)).await {
            Ok(result) => result,
            Err(_) => Err(sqlx::Error::Io(std::io::ErrorKind::TimedOut.into())),
        }
    }

    /// Names a database failure by what the reader can do about it.
    pub(super) fn refine(&self, error: sqlx::Error) -> Error {
        match code(&error) {
            // disk_full, and the server's own words for a write that the disk refused.
            Some("53100") => Error::Full { url: self.shown.clone(), reason: error.to_string() },
            _ => Error::Database(error),
        }
    }

    fn unreachable(&self, error: &sqlx::Error) -> Error {
        Error::Unreachable { url: self.shown.clone(), reason: error.to_string() }
    }

    pub(super) fn shown(&self) -> &str {
        &self.shown
    }

    pub(super) async fn close(&self) {
        // Whoever still works holds a permit; each is awaited before its connection is closed.
        let _all = self.permits.acquire_many(MOST as u32).await;
        self.permits.close();
        let resting = std::mem::take(&mut *self.lock());
        for Resting { connection, .. } in resting {
            // The socket is gone either way; a failed farewell changes nothing.
            let _ = connection.close().await;
        }
    }

    fn pop(&self) -> Option<Resting> {
        self.lock().pop()
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Vec<Resting>> {
        self.resting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Borrowed<'_> {
    /// Gives the connection back unless the call broke it, and names the failure.
    pub(super) fn settle<T>(self, result: Result<T, sqlx::Error>) -> Result<T, Error> {
        match result {
            Ok(value) => {
                self.give_back();
                Ok(value)
            }
            Err(error) => {
                let refined = self.home.refine(error);
                if !matches!(&refined, Error::Database(e) if is_broken(e)) {
                    self.give_back();
                }
                Err(refined)
            }
        }
    }

    /// Gives the connection back; every call on it must have ended with an answer.
    pub(super) fn give_back(self) {
        let resting = Resting { connection: self.connection, since: clock::monotonic() };
        self.home.lock().push(resting);
    }
}

impl Deref for Borrowed<'_> {
    type Target = PgConnection;
    fn deref(&self) -> &PgConnection {
        &self.connection
    }
}

impl DerefMut for Borrowed<'_> {
    fn deref_mut(&mut self) -> &mut PgConnection {
        &mut self.connection
    }
}

/// Returns the server's error code.
pub(super) fn code(error: &sqlx::Error) -> Option<&str> {
    let database = error.as_database_error()?.try_downcast_ref::<PgDatabaseError>()?;
    Some(database.code())
}

/// Returns whether the connection is gone, so that it is unknown what became of the statement.
pub(in super::super) fn is_broken(error: &sqlx::Error) -> bool {
    match code(error) {
        // Connection exceptions; shutdown, crash, start-up of the server.
        Some(code) => code.starts_with("08") || code.starts_with("57P0"),
        None => matches!(
            error,
            sqlx::Error::Io(_) | sqlx::Error::Protocol(_) | sqlx::Error::WorkerCrashed
        ),
    }
}

/// Runs an idempotent statement on `$connection`, and once more on a new connection when the first one broke.
macro_rules! idempotent {
    ($connections:expr, |$connection:ident| $statement:expr) => {{
        let mut $connection = $connections.take().await?;
        match $statement.await {
            Err(error) if $crate::checkpoint::postgres::connections::is_broken(&error) => {
                drop($connection);
                let mut $connection = $connections.fresh().await?;
                let result = $statement.await;
                $connection.settle(result)
            }
            result => $connection.settle(result),
        }
    }};
}
pub(super) use idempotent;
