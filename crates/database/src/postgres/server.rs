//! The address of a server, and connections for work without a borrowed statement: receiving and sending calls.
//!
//! Only this module reads the address and its TLS parameters; each wait for the server has a bound, because a network
//! can lose packets without an error.

use std::{future::Future, time::Duration};

use sqlx::postgres::{PgConnectOptions, PgListener, PgPoolOptions};
use sqlx::{ConnectOptions as _, Connection as _, PgConnection};

use crate::{Error, redact_url, round_trips};

/// How long the server may be silent on a statement that a run waits for, or in greeting: well within a lease.
pub const SILENCE: Duration = Duration::from_secs(10);

/// Waits for the server's answer up to a limit, after which the connection counts as broken.
pub async fn within<T, E: From<sqlx::Error>>(
    bound: Duration,
    work: impl Future<Output = Result<T, E>>,
) -> Result<T, E> {
    round_trips::note();
    match tokio::time::timeout(bound, work).await {
        Ok(result) => result,
        Err(_) => {
            let text = format!("the server did not answer within {bound:?}");
            let silent = std::io::Error::new(std::io::ErrorKind::TimedOut, text);
            Err(sqlx::Error::Io(silent).into())
        }
    }
}

/// A parsed server address; its text contains no password.
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
    /// Reads an address without connecting; `application` is the server's name for its connections.
    ///
    /// # Errors
    /// [`Error::Unreachable`] for an address that cannot be read.
    pub fn read(url: &str, application: &str) -> Result<Self, Error> {
        let shown = redact_url(url);
        let options = url
            .parse::<PgConnectOptions>()
            .map_err(|error| Error::Unreachable { url: shown.clone(), reason: error.into() })?
            .application_name(application)
            .disable_statement_logging();
        Ok(Self { options, shown })
    }

    pub fn shown(&self) -> &str {
        &self.shown
    }

    /// Opens a connection, within the caller's limit.
    pub(super) async fn connect(&self) -> Result<PgConnection, sqlx::Error> {
        PgConnection::connect_with(&self.options).await
    }

    /// Opens a connection for one occasion.
    pub(super) async fn connect_once(&self) -> Result<PgConnection, Error> {
        within(SILENCE, self.connect()).await.map_err(|error| self.unreachable(&error))
    }

    pub(super) fn unreachable(&self, error: &sqlx::Error) -> Error {
        Error::Unreachable { url: self.shown.clone(), reason: error.to_string().into() }
    }

    /// Calls all processes that listen on a channel; it is for what happens rarely, and opens a connection each time.
    pub async fn notify(&self, channel: &str, payload: &str) -> Result<(), Error> {
        let mut connection = self.connect_once().await?;
        let call = sqlx::query("SELECT pg_notify($1, $2)").bind(channel).bind(payload);
        within(SILENCE, call.execute(&mut connection)).await?;
        Ok(within(SILENCE, connection.close()).await?)
    }

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

#[derive(Debug)]
pub struct Listener(PgListener);

impl Listener {
    /// Waits for the next call and returns its content; without a limit, because calls can be days apart.
    ///
    /// # Errors
    /// [`Error::Failed`] if the connection is lost: later calls are missed.
    pub async fn next(&mut self) -> Result<String, Error> {
        match self.0.try_recv().await? {
            Some(call) => Ok(call.payload().to_owned()),
            None => Err(sqlx::Error::PoolClosed.into()),
        }
    }
}
