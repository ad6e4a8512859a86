//! Connections to one server, kept between calls.
//!
//! A pool of our own because sqlx's sends a ping whenever a connection comes back, which is a second
//! round trip per commit. A connection goes back only after a complete answer; one whose call was
//! cancelled or broke is closed instead, and so is one that stays silent: a network that swallows packets
//! tells nobody, so each wait for the server has a bound.

use std::{
    future::Future,
    ops::{Deref, DerefMut},
    sync::{Mutex, PoisonError},
    time::{Duration, Instant},
};

use futures::stream::{Stream, TryStreamExt as _};
use sqlx::{Connection, PgConnection, postgres::PgDatabaseError};
use tokio::sync::{Semaphore, SemaphorePermit};

use super::server::{Server, within};
use crate::{Error, clock};

/// Connections held at most by one process; a server accepts 100 by default, and several processes share it.
const MOST: usize = 16;

/// A connection that rested longer is asked for a sign of life before it is used.
const TRUSTED_FOR: Duration = Duration::from_secs(2);

/// How many times as long it may take to the next row of a thread that is read: a row may be large.
const PER_ROW: u32 = 3;

/// How many times as long it may work on a whole thread.
const PER_THREAD: u32 = 60;

/// How many times as long it may work on all of them: migrations build indexes.
const PER_DATABASE: u32 = 360;

/// What a new connection is prepared by, in one message: the server keeps a transaction, and the locks with it, for a while when its
/// client is gone without a word, and compiles no statement, because ours are short and the planner takes policies for expensive.
macro_rules! greeting {
    ($more:literal) => {
        concat!("SET idle_in_transaction_session_timeout = '60s'; SET jit = off", $more)
    };
}
const GREETING: &str = greeting!("");
const GREETING_OF_ALL: &str = greeting!("; SET perihelion.all_tenants = 'on'");

/// Waits between attempts to reach a server that is restarting.
const PATIENCE: [Duration; 5] = [
    Duration::from_millis(50),
    Duration::from_millis(200),
    Duration::from_millis(750),
    Duration::from_secs(2),
    Duration::from_secs(4),
];

/// The connections of this process to one server.
pub struct Connections {
    server: Server,
    silence: Duration,
    /// What a new connection is prepared by.
    greeting: &'static str,
    resting: Mutex<Vec<Resting>>,
    permits: Semaphore,
}

struct Resting {
    connection: PgConnection,
    since: Instant,
}

/// A borrowed connection; [`Borrowed::settle`] gives it back.
pub struct Borrowed<'a> {
    connection: PgConnection,
    home: &'a Connections,
    _permit: SemaphorePermit<'a>,
}

impl Connections {
    /// Reads an address and connects to nothing yet; `silence` bounds how long the server may be silent on a statement that a run
    /// waits for.
    ///
    /// # Errors
    /// [`Error::Unreachable`] for an address that cannot be read.
    pub fn new(url: &str, silence: Duration) -> Result<Self, Error> {
        let server = Server::read(url, "perihelion")?;
        let resting = Mutex::default();
        let permits = Semaphore::new(MOST);
        Ok(Self { server, silence, greeting: GREETING, resting, permits })
    }

    /// Has the statements on these connections act for all tenants, for as long as each connection lasts.
    ///
    /// For those who address rows by ids that nobody guesses and check a fencing token: no statement takes longer for it.
    #[must_use]
    pub fn of_all_tenants(self) -> Self {
        Self { greeting: GREETING_OF_ALL, ..self }
    }

    /// Borrows a connection, opening one when none rests; waits while all are in use.
    pub async fn take(&self) -> Result<Borrowed<'_>, Error> {
        self.take_trusting(TRUSTED_FOR).await
    }

    /// Borrows a connection that has just answered: for statements that cannot be repeated when it breaks.
    pub async fn take_tested(&self) -> Result<Borrowed<'_>, Error> {
        self.take_trusting(Duration::ZERO).await
    }

    async fn take_trusting(&self, trusted_for: Duration) -> Result<Borrowed<'_>, Error> {
        let permit = self.permits.acquire().await.map_err(|_| sqlx::Error::PoolClosed)?;
        while let Some(Resting { mut connection, since }) = self.pop() {
            if clock::monotonic().duration_since(since) < trusted_for {
                return Ok(Borrowed { connection, home: self, _permit: permit });
            }
            match self.brief(connection.ping()).await {
                Ok(()) => return Ok(Borrowed { connection, home: self, _permit: permit }),
                // What swallowed this answer would swallow the others', each with a wait of its own.
                Err(error) if is_silence(&error) => self.lock().clear(),
                Err(_) => {}
            }
        }
        let connection = self.connect().await.map_err(|e| self.unreachable(&e))?;
        Ok(Borrowed { connection, home: self, _permit: permit })
    }

    /// Opens a new connection after another one broke, waiting a few seconds for a server that restarts.
    ///
    /// One that does not even refuse is not waited for again.
    pub async fn fresh(&self) -> Result<Borrowed<'_>, Error> {
        // The others that rest here were likely cut by the same event.
        self.lock().clear();
        let permit = self.permits.acquire().await.map_err(|_| sqlx::Error::PoolClosed)?;
        let mut waits = PATIENCE.iter();
        loop {
            match (self.connect().await, waits.next()) {
                (Ok(connection), _) => {
                    return Ok(Borrowed { connection, home: self, _permit: permit });
                }
                (Err(error), Some(wait)) if is_broken(&error) && !is_silence(&error) => {
                    clock::sleep(*wait).await;
                }
                (Err(error), _) => return Err(self.unreachable(&error)),
            }
        }
    }

    async fn connect(&self) -> Result<PgConnection, sqlx::Error> {
        let connect = async {
            let mut connection = self.server.connect().await?;
            sqlx::raw_sql(self.greeting).execute(&mut connection).await?;
            Ok(connection)
        };
        self.brief(connect).await
    }

    /// Waits for the end of a statement that a run waits for.
    pub async fn brief<T>(&self, statement: impl Answer<T>) -> Result<T, sqlx::Error> {
        within(self.silence, statement).await
    }

    /// Reads all rows, however many, as long as they keep coming.
    pub async fn rows<T>(
        &self,
        mut rows: impl Stream<Item = Result<T, sqlx::Error>> + Unpin,
    ) -> Result<Vec<T>, sqlx::Error> {
        let mut read = Vec::new();
        while let Some(row) = within(self.silence * PER_ROW, rows.try_next()).await? {
            read.push(row);
        }
        Ok(read)
    }

    /// Waits for the end of what is done to a whole thread, or reads one.
    pub async fn long<T>(&self, work: impl Answer<T>) -> Result<T, sqlx::Error> {
        within(self.silence * PER_THREAD, work).await
    }

    /// Waits for the end of what is done to the whole database.
    pub async fn longest<T, E: From<sqlx::Error>>(
        &self,
        work: impl Future<Output = Result<T, E>>,
    ) -> Result<T, E> {
        within(self.silence * PER_DATABASE, work).await
    }

    /// Names a database failure by what the reader can do about it.
    pub fn refine(&self, error: sqlx::Error) -> Error {
        match code(&error) {
            // disk_full, and the server's own words for a write that the disk refused.
            Some("53100") => {
                Error::Full { url: self.shown().to_owned(), reason: error.to_string() }
            }
            _ => Error::Failed(error),
        }
    }

    fn unreachable(&self, error: &sqlx::Error) -> Error {
        self.server.unreachable(error)
    }

    /// Returns the address without passwords.
    pub fn shown(&self) -> &str {
        self.server.shown()
    }

    /// Waits for what is under way and closes all connections.
    pub async fn close(&self) {
        // Anyone who still works holds a permit; each is awaited before its connection is closed.
        let _all = self.permits.acquire_many(MOST as u32).await;
        self.permits.close();
        let resting = std::mem::take(&mut *self.lock());
        for Resting { connection, .. } in resting {
            // The socket is gone either way; a failed farewell changes nothing.
            let _ = self.brief(connection.close()).await;
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
    pub fn settle<T>(self, result: Result<T, sqlx::Error>) -> Result<T, Error> {
        match result {
            Ok(value) => {
                self.give_back();
                Ok(value)
            }
            Err(error) => {
                let refined = self.home.refine(error);
                if !matches!(&refined, Error::Failed(e) if is_broken(e)) {
                    self.give_back();
                }
                Err(refined)
            }
        }
    }

    /// Gives the connection back; every call on it must have ended with an answer.
    pub fn give_back(self) {
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

/// What a server answers to.
pub trait Answer<T>: Future<Output = Result<T, sqlx::Error>> {}

impl<T, F: Future<Output = Result<T, sqlx::Error>>> Answer<T> for F {}

fn is_silence(error: &sqlx::Error) -> bool {
    matches!(error, sqlx::Error::Io(error) if error.kind() == std::io::ErrorKind::TimedOut)
}

/// Returns the server's error code.
pub fn code(error: &sqlx::Error) -> Option<&str> {
    let database = error.as_database_error()?.try_downcast_ref::<PgDatabaseError>()?;
    Some(database.code())
}

/// Returns whether the connection is gone, so that it is unknown what became of the statement.
pub fn is_broken(error: &sqlx::Error) -> bool {
    match code(error) {
        // Connection exceptions; shutdown, crash, start-up of the server; a transaction that it gave up.
        Some(code) => code.starts_with("08") || code.starts_with("57P0") || code == "25P03",
        None => matches!(
            error,
            sqlx::Error::Io(_) | sqlx::Error::Protocol(_) | sqlx::Error::WorkerCrashed
        ),
    }
}

/// Runs an idempotent statement on `$connection`, and once more on a new connection when the first one broke
/// or stayed silent; with `each row of`, a query whose rows may be many or large.
#[macro_export]
macro_rules! idempotent {
    ($connections:expr, |$connection:ident| each row of $query:expr) => {
        $crate::idempotent!(@ $connections, $connection, $connections.rows($query.fetch(&mut *$connection)))
    };
    ($connections:expr, |$connection:ident| $statement:expr) => {
        $crate::idempotent!(@ $connections, $connection, $connections.brief($statement))
    };
    (@ $connections:expr, $connection:ident, $answer:expr) => {{
        let mut $connection = $connections.take().await?;
        match $answer.await {
            Err(error) if $crate::postgres::is_broken(&error) => {
                drop($connection);
                let mut $connection = $connections.fresh().await?;
                let result = $answer.await;
                $connection.settle(result)
            }
            result => $connection.settle(result),
        }
    }};
}
