//! PostgreSQL: a small pool; a batch is one transaction whose statements travel together, in one round trip.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Mutex, PoisonError};

use futures_util::future::{try_join_all, try_join3};
use tokio::sync::Semaphore;
use tokio_postgres::types::ToSql;
use tokio_postgres::{Client, Config};

use crate::error::Error;
use crate::tls::{self, Connector};
use crate::value::{Rows, Statement, Value};

/// Statements that are sent before the first answer is read; `try_join_all` polls up to 30 in their order.
const AT_ONCE: usize = 24;

/// Prepared statements of a connection at most: what searches ask differs in its conditions.
const MOST_PREPARED: usize = 256;

/// A connection with the statements that it has prepared.
#[derive(Debug)]
struct Connection {
    client: Client,
    prepared: HashMap<String, tokio_postgres::Statement>,
}

/// A PostgreSQL database.
pub struct Postgres {
    config: Config,
    connector: Connector,
    idle: Mutex<Vec<Connection>>,
    slots: Semaphore,
}

impl Postgres {
    /// Reads a connection string; connections are made when needed, at most `size` at once.
    pub fn open(dsn: &str, size: usize) -> Result<Self, Error> {
        let settings = tls::settings(dsn)?;
        let mut config: Config = settings.dsn.parse().map_err(Error::Connect)?;
        if let Some(mode) = settings.mode {
            config.ssl_mode(mode);
        }
        if config.get_application_name().is_none() {
            config.application_name("perihelion-agents");
        }
        let idle = Mutex::new(Vec::new());
        Ok(Self { config, connector: settings.connector, idle, slots: Semaphore::new(size.max(1)) })
    }

    /// Runs statements as one transaction and returns the rows of each; a lost connection is replaced once.
    pub async fn run(&self, batch: &[Statement], writes: bool) -> Result<Vec<Rows>, Error> {
        let _slot = self.slots.acquire().await.map_err(|_| Error::Closed)?;
        let found = self.idle().pop().filter(|connection| !connection.client.is_closed());
        if let Some(mut connection) = found {
            match connection.run(batch, writes).await {
                Err(error) if error.is_lost_connection() => self.idle().clear(),
                result => return self.put_back(connection, result),
            }
        }
        let mut connection = self.connect().await?;
        let result = connection.run(batch, writes).await;
        self.put_back(connection, result)
    }

    fn put_back(
        &self,
        connection: Connection,
        result: Result<Vec<Rows>, Error>,
    ) -> Result<Vec<Rows>, Error> {
        if !connection.client.is_closed() && !self.slots.is_closed() {
            self.idle().push(connection);
        }
        result
    }

    fn idle(&self) -> std::sync::MutexGuard<'_, Vec<Connection>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn connect(&self) -> Result<Connection, Error> {
        let connected = self.config.connect(self.connector.clone()).await;
        let (client, driver) = connected.map_err(Error::Connect)?;
        tokio::spawn(driver);
        Ok(Connection { client, prepared: HashMap::new() })
    }

    /// Closes idle connections; later calls fail.
    pub fn close(&self) {
        self.slots.close();
        self.idle().clear();
    }
}

impl Connection {
    async fn run(&mut self, batch: &[Statement], writes: bool) -> Result<Vec<Rows>, Error> {
        self.prepare(batch).await?;
        if batch.len() < 2 || !writes {
            return self.query_all(batch).await;
        }
        let result = if batch.len() > AT_ONCE {
            self.one_by_one(batch).await
        } else {
            self.at_once(batch).await
        };
        if result.is_err() && !self.client.is_closed() {
            self.client.batch_execute("ROLLBACK").await?;
        }
        result
    }

    /// Sends a whole transaction before the first answer: futures of one client send in the order of their first poll.
    ///
    /// After a failed statement PostgreSQL refuses the later ones and makes COMMIT a ROLLBACK.
    async fn at_once(&self, batch: &[Statement]) -> Result<Vec<Rows>, Error> {
        let begin = async { Ok(self.client.batch_execute("BEGIN").await?) };
        let commit = async { Ok(self.client.batch_execute("COMMIT").await?) };
        let queries = try_join_all(batch.iter().map(|statement| self.query(statement)));
        Ok(try_join3(begin, queries, commit).await?.1)
    }

    async fn one_by_one(&self, batch: &[Statement]) -> Result<Vec<Rows>, Error> {
        self.client.batch_execute("BEGIN").await?;
        let all = self.query_all(batch).await?;
        self.client.batch_execute("COMMIT").await?;
        Ok(all)
    }

    async fn query_all(&self, batch: &[Statement]) -> Result<Vec<Rows>, Error> {
        let mut all = Vec::with_capacity(batch.len());
        for some in batch.chunks(AT_ONCE) {
            all.extend(try_join_all(some.iter().map(|statement| self.query(statement))).await?);
        }
        Ok(all)
    }

    async fn prepare(&mut self, batch: &[Statement]) -> Result<(), Error> {
        if self.prepared.len() > MOST_PREPARED {
            self.prepared.clear();
        }
        let is_new = |sql: &&String| !self.prepared.contains_key(*sql);
        let new: BTreeSet<&String> =
            batch.iter().map(|statement| &statement.sql).filter(is_new).collect();
        let prepare = async |sql: &String| {
            Ok::<_, Error>((sql.clone(), self.client.prepare(&sql.replace('?', "$")).await?))
        };
        let prepared = try_join_all(new.into_iter().map(prepare)).await?;
        self.prepared.extend(prepared);
        Ok(())
    }

    async fn query(&self, statement: &Statement) -> Result<Rows, Error> {
        let prepared = self.prepared.get(&statement.sql).ok_or(Error::Closed)?;
        let values: Vec<&(dyn ToSql + Sync)> =
            statement.values.iter().map(|value| value as _).collect();
        let rows = self.client.query(prepared, &values).await?;
        let read = |row: &tokio_postgres::Row| {
            (0..row.len()).map(|index| Value::from_postgres(row, index)).collect()
        };
        rows.iter().map(read).collect()
    }
}
