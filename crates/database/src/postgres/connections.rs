//! Connections to one server, kept between calls.
//!
//! This pool exists because sqlx's sends a ping whenever a connection is returned, which is a second round trip per
//! commit. A connection is returned only after a complete answer. After a cancelled or broken call it is closed, and so
//! is one that stays silent: each wait for the server has a bound, because a network can lose packets without an error.

use std::future::Future;
use std::ops::{Deref, DerefMut};
use std::time::{Duration, Instant};

use futures::FutureExt as _;
use futures::stream::{Stream, TryStreamExt as _};
use parking_lot::Mutex;
use sqlx::{AssertSqlSafe, Connection, PgConnection, Row as _, postgres::PgDatabaseError};
use tokio::sync::{Semaphore, SemaphorePermit};

use super::server::{Server, within};
use crate::{Error, acting::Acting, clock};

/// Connections held at most by one process; a server accepts 100 by default, and several processes share it.
const MOST: usize = 16;

/// A connection that was idle for longer is pinged before it is used.
const TRUSTED_FOR: Duration = Duration::from_secs(2);

/// How many times as long it may take to the next row of a thread that is read: a row may be large.
const PER_ROW: u32 = 3;

/// How many times as long it may work on a whole thread.
const PER_THREAD: u32 = 60;

/// How many times as long it may work on all of them: migrations build indexes.
const PER_DATABASE: u32 = 360;

/// The setup of a new connection. The server ends the transaction and its locks some time after its client has
/// disappeared. It compiles no statement, because ours are short and the planner overestimates policies.
const GREETING: &str = "SET idle_in_transaction_session_timeout = '60s'; SET jit = off; ";

/// Why a pooler that shares connections is refused: one tenant's statements would run with the rights of another.
pub(super) const POOLED: &str = "its connections are shared by a pooler in transaction mode; set pool_mode = session, or pass the server's own address";

/// Asks whether somebody else has used the server's end of a new connection: it still has the setting of a pool then.
const BEFORE: &str = "SELECT current_setting('perihelion.all_tenants', true) IN ('on', 'off'); ";

/// Waits between attempts to reach a server that is restarting.
const PATIENCE: [Duration; 5] = [
    Duration::from_millis(50),
    Duration::from_millis(200),
    Duration::from_millis(750),
    Duration::from_secs(2),
    Duration::from_secs(4),
];

pub struct Connections {
    server: Server,
    silence: Duration,
    /// For whom those act that are lent without a name.
    acting: Acting,
    resting: Mutex<Vec<Resting>>,
    permits: Semaphore,
}

struct Resting {
    connection: PgConnection,
    acting: Acting,
    since: Instant,
}

/// A borrowed connection; [`Borrowed::settle`] gives it back.
pub struct Borrowed<'a> {
    connection: PgConnection,
    acting: Acting,
    home: &'a Connections,
    _permit: SemaphorePermit<'a>,
}

impl Connections {
    /// Reads an address without connecting; `silence` bounds how long the server can be silent on a statement for which
    /// a run waits.
    ///
    /// # Errors
    /// [`Error::Unreachable`] for an address that cannot be read.
    pub fn new(url: &str, silence: Duration) -> Result<Self, Error> {
        let server = Server::read(url, "perihelion")?;
        let resting = Mutex::default();
        let permits = Semaphore::new(MOST);
        Ok(Self { server, silence, acting: Acting::Nobody, resting, permits })
    }

    /// Makes the statements on these connections act for all tenants.
    ///
    /// For code that addresses rows by unguessable IDs and checks a fencing token: it costs no statement time.
    #[must_use]
    pub fn of_all_tenants(self) -> Self {
        Self { acting: Acting::All, ..self }
    }

    /// Borrows a connection, and opens one if none is idle; waits while all are in use.
    pub async fn take(&self) -> Result<Borrowed<'_>, Error> {
        self.take_as(&self.acting).await
    }

    pub(crate) async fn take_as(&self, acting: &Acting) -> Result<Borrowed<'_>, Error> {
        self.take_trusting(acting, TRUSTED_FOR).await
    }

    /// Borrows a connection that has just answered: for statements that cannot be repeated when it breaks.
    pub(crate) async fn take_tested_as(&self, acting: &Acting) -> Result<Borrowed<'_>, Error> {
        self.take_trusting(acting, Duration::ZERO).await
    }

    async fn take_trusting(
        &self,
        acting: &Acting,
        trusted_for: Duration,
    ) -> Result<Borrowed<'_>, Error> {
        let acting = self.named(acting);
        let permit = self.permits.acquire().await.map_err(|_| sqlx::Error::PoolClosed)?;
        while let Some(Resting { mut connection, acting: before, since }) =
            self.pop(acting, trusted_for)
        {
            let answered = if before != *acting {
                self.set(&mut connection, &acting.setting()).await
            } else if clock::monotonic().duration_since(since) < trusted_for {
                Ok(())
            } else {
                self.brief(connection.ping()).await
            };
            match answered {
                Ok(()) => return Ok(self.lent(connection, acting, permit)),
                // The cause would silence the other connections too, each after a full wait.
                Err(error) if is_silence(&error) => self.resting.lock().clear(),
                Err(_) => {}
            }
        }
        let connection = self.connect(acting).await.map_err(|e| self.server.unreachable(&e))?;
        Ok(self.lent(connection, acting, permit))
    }

    /// Opens a new connection after another one broke, waiting a few seconds for a server that restarts.
    ///
    /// A server that does not even refuse gets no second attempt.
    pub async fn fresh(&self) -> Result<Borrowed<'_>, Error> {
        self.fresh_as(&self.acting).await
    }

    pub(crate) async fn fresh_as(&self, acting: &Acting) -> Result<Borrowed<'_>, Error> {
        let acting = self.named(acting);
        // The others that rest here were likely cut by the same event.
        self.resting.lock().clear();
        let permit = self.permits.acquire().await.map_err(|_| sqlx::Error::PoolClosed)?;
        let mut waits = PATIENCE.iter();
        loop {
            match (self.connect(acting).await, waits.next()) {
                (Ok(connection), _) => return Ok(self.lent(connection, acting, permit)),
                (Err(error), Some(wait)) if is_broken(&error) && !is_silence(&error) => {
                    clock::sleep(*wait).await;
                }
                (Err(error), _) => return Err(self.server.unreachable(&error)),
            }
        }
    }

    fn named<'a>(&'a self, acting: &'a Acting) -> &'a Acting {
        if *acting == Acting::Nobody { &self.acting } else { acting }
    }

    fn lent<'a>(
        &'a self,
        connection: PgConnection,
        acting: &Acting,
        permit: SemaphorePermit<'a>,
    ) -> Borrowed<'a> {
        Borrowed { connection, acting: acting.clone(), home: self, _permit: permit }
    }

    async fn connect(&self, acting: &Acting) -> Result<PgConnection, sqlx::Error> {
        // On the heap: otherwise each statement, and each stream that waits for one, has room for a handshake.
        let mut connection = self.brief(self.server.connect().boxed()).await?;
        let greeting = format!("{BEFORE}{GREETING}{}", acting.setting());
        let answers = sqlx::raw_sql(AssertSqlSafe(greeting)).fetch_all(&mut connection);
        let answers = self.brief(answers).await?;
        let before = answers.first().map(|row| row.try_get::<Option<bool>, _>(0)).transpose()?;
        if before.flatten() == Some(true) {
            return Err(sqlx::Error::Configuration(POOLED.into()));
        }
        Ok(connection)
    }

    async fn set(&self, connection: &mut PgConnection, setting: &str) -> Result<(), sqlx::Error> {
        let set = sqlx::raw_sql(AssertSqlSafe(setting)).execute(connection);
        self.brief(set).await.map(|_| ())
    }

    /// Waits for the end of a statement that a run waits for.
    pub async fn brief<T>(&self, statement: impl Answer<T>) -> Result<T, sqlx::Error> {
        within(self.silence, statement).await
    }

    /// Reads any number of rows, while they keep arriving.
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

    /// Waits for the end of work on a whole thread.
    pub async fn long<T>(&self, work: impl Answer<T>) -> Result<T, sqlx::Error> {
        within(self.silence * PER_THREAD, work).await
    }

    /// Waits for the end of work on the whole database.
    pub async fn longest<T, E: From<sqlx::Error>>(
        &self,
        work: impl Future<Output = Result<T, E>>,
    ) -> Result<T, E> {
        within(self.silence * PER_DATABASE, work).await
    }

    /// Classifies a database failure by the reader's possible fix.
    pub fn refine(&self, error: sqlx::Error) -> Error {
        match code(&error) {
            // disk_full, and the server's own words for a write that the disk refused.
            Some("53100") => {
                Error::Full { url: self.shown().to_owned(), reason: error.to_string() }
            }
            _ => Error::Failed(error),
        }
    }

    pub fn shown(&self) -> &str {
        self.server.shown()
    }

    pub async fn close(&self) {
        // Each active statement has a permit; this waits for all of them before it closes their connections.
        let _all = self.permits.acquire_many(MOST as u32).await;
        self.permits.close();
        let resting = std::mem::take(&mut *self.resting.lock());
        for Resting { connection, .. } in resting {
            // The socket is closed either way, so a failure changes nothing.
            let _ = self.brief(connection.close()).await;
        }
    }

    /// Returns the connection that was given back last; before it, one that acts so already, if possible without a test.
    fn pop(&self, acting: &Acting, trusted_for: Duration) -> Option<Resting> {
        let mut resting = self.resting.lock();
        let now = clock::monotonic();
        let is_ready =
            |one: &Resting| one.acting == *acting && now.duration_since(one.since) < trusted_for;
        let at = resting.iter().rposition(is_ready);
        match at.or_else(|| resting.iter().rposition(|one| one.acting == *acting)) {
            Some(at) => Some(resting.remove(at)),
            None => resting.pop(),
        }
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
        let Self { connection, acting, home, .. } = self;
        home.resting.lock().push(Resting { connection, acting, since: clock::monotonic() });
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

pub trait Answer<T>: Future<Output = Result<T, sqlx::Error>> {}

impl<T, F: Future<Output = Result<T, sqlx::Error>>> Answer<T> for F {}

fn is_silence(error: &sqlx::Error) -> bool {
    matches!(error, sqlx::Error::Io(error) if error.kind() == std::io::ErrorKind::TimedOut)
}

pub fn code(error: &sqlx::Error) -> Option<&str> {
    let database = error.as_database_error()?.try_downcast_ref::<PgDatabaseError>()?;
    Some(database.code())
}

/// Returns whether a connection is of no more use: it is gone, and with it the answer to the statement, or its server
/// only reads.
pub fn is_broken(error: &sqlx::Error) -> bool {
    match code(error) {
        // Connection exceptions; shutdown, crash, start-up of the server; a transaction that it gave up; a server that
        // only reads, as the old writer does after a failover.
        Some(code) => {
            code.starts_with("08") || code.starts_with("57P0") || ["25P03", "25006"].contains(&code)
        }
        None => matches!(
            error,
            sqlx::Error::Io(_) | sqlx::Error::Protocol(_) | sqlx::Error::WorkerCrashed
        ),
    }
}

/// Runs an idempotent statement on `$connection`, and once more on a new connection if the first one broke or stayed
/// silent; with `each row of`, a query whose rows can be many or large.
#[macro_export]
macro_rules! idempotent {
    ($connections:ident as $acting:expr, |$connection:ident| each row of $query:expr) => {
        $crate::idempotent!(@ $connections.take_as($acting), $connections.fresh_as($acting), $connection,
            $connections.rows($query.fetch(&mut *$connection)))
    };
    ($connections:ident as $acting:expr, |$connection:ident| $statement:expr) => {
        $crate::idempotent!(@ $connections.take_as($acting), $connections.fresh_as($acting), $connection,
            $connections.brief($statement))
    };
    ($connections:expr, |$connection:ident| $statement:expr) => {
        $crate::idempotent!(@ $connections.take(), $connections.fresh(), $connection, $connections.brief($statement))
    };
    (@ $taken:expr, $fresh:expr, $connection:ident, $answer:expr) => {{
        let mut $connection = $taken.await?;
        match $answer.await {
            Err(error) if $crate::postgres::is_broken(&error) => {
                drop($connection);
                let mut $connection = $fresh.await?;
                let result = $answer.await;
                $connection.settle(result)
            }
            result => $connection.settle(result),
        }
    }};
}
