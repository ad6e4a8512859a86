//! Where a server is, and connections to it for what no statement is borrowed for: hearing calls, and calling.
//!
//! The address is read here and nowhere else, with what it says of TLS; each wait for the server has a bound, because a
//! network that swallows packets tells nobody.

use std::{future::Future, time::Duration};

use sqlx::{
    ConnectOptions as _, Connection as _, PgConnection,
    postgres::{PgConnectOptions, PgListener, PgPoolOptions},
};

use crate::{Error, redact_url};

/// How long the server may be silent on a statement that a run waits for, or in greeting: well within a lease.
pub const SILENCE: Duration = Duration::from_secs(10);

/// Waits for the server's answer for so long; then it counts as broken off.
pub async fn within<T, E: From<sqlx::Error>>(
    bound: Duration,
    work: impl Future<Output = Result<T, E>>,
) -> Result<T, E> {
    match tokio::time::timeout(bound, work).await {
        Ok(result) => result,
        Err(_) => {
            let text = format!("the server did not answer within {bound:?}");
            let silent = std::io::Error::new(std::io::ErrorKind::TimedOut, text);
            Err(sqlx::Error::Io(silent).into())
        }
    }
}

/// A server's address, read; it says nothing of passwords when it is shown.
#[derive(Clone)]
pub struct Server {
    options: PgConnectOptions,
    shown: String,
}

impl std::fmt::Debug for Server {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Server").field(&self.shown).finish()
    }
}

impl Server {
    /// Reads an address and connects to nothing yet; `application` is what the server shows its connections as.
    ///
    /// # Errors
    /// [`Error::Unreachable`] for an address that cannot be read.
    pub fn read(url: &str, application: &str) -> Result<Self, Error> {
        let shown = redact_url(url);
        let options = url
            .parse::<PgConnectOptions>()
            .map_err(|e| Error::Unreachable { url: shown.clone(), reason: e.to_string() })?
            .application_name(application)
            .disable_statement_logging();
        Ok(Self { options, shown })
    }

    /// Returns the address without passwords.
    pub fn shown(&self) -> &str {
        &self.shown
    }

    /// Opens a connection, waiting as long as the caller's bound says.
    pub(super) async fn connect(&self) -> Result<PgConnection, sqlx::Error> {
        PgConnection::connect_with(&self.options).await
    }

    /// Names why there is no connection.
    pub(super) fn unreachable(&self, error: &sqlx::Error) -> Error {
        Error::Unreachable { url: self.shown.clone(), reason: error.to_string() }
    }

    /// Calls all processes that listen on a channel; it is for what happens rarely, and opens a connection each time.
    ///
    /// # Errors
    /// [`Error::Unreachable`], [`Error::Failed`].
    pub async fn notify(&self, channel: &str, payload: &str) -> Result<(), Error> {
        let opened = within(SILENCE, self.connect()).await;
        let mut connection = opened.map_err(|error| self.unreachable(&error))?;
        let call = sqlx::query("SELECT pg_notify($1, $2)").bind(channel).bind(payload);
        within(SILENCE, call.execute(&mut connection)).await?;
        Ok(within(SILENCE, connection.close()).await?)
    }

    /// Opens a connection that hears what is called on a channel from now on.
    ///
    /// # Errors
    /// [`Error::Unreachable`], [`Error::Failed`].
    pub async fn listen(&self, channel: &str) -> Result<Listener, Error> {
        let opened = async {
            // A connection of its own: the listener asks for a pool, and keeps the only one that it has.
            let options = PgPoolOptions::new().max_connections(1).acquire_timeout(SILENCE);
            let pool = options.connect_with(self.options.clone()).await;
            let pool = pool.map_err(|error| self.unreachable(&error))?;
            let mut listener = PgListener::connect_with(&pool).await?;
            listener.listen(channel).await?;
            Ok(Listener(listener))
        };
        within(SILENCE, opened).await
    }
}

/// A connection that hears calls.
#[derive(Debug)]
pub struct Listener(PgListener);

impl Listener {
    /// Waits for the next call and returns what it says; there is no bound, because nobody may call for days.
    ///
    /// # Errors
    /// [`Error::Failed`] when the connection is gone: what was called since is not heard.
    pub async fn next(&mut self) -> Result<String, Error> {
        match self.0.try_recv().await? {
            Some(call) => Ok(call.payload().to_owned()),
            None => Err(sqlx::Error::PoolClosed.into()),
        }
    }
}
