//! Several statements that happen together or not at all.

use sqlx::postgres::{PgArguments, PgRow, PgTransactionManager};
use sqlx::query::Query as Statement;
use sqlx::sqlite::SqliteTransactionManager;
use sqlx::{PgConnection, Postgres, SqlSafeStr as _, SqliteConnection};
use sqlx_core::transaction::TransactionManager;

use crate::acting::Acting;
use crate::postgres::{Answer, Borrowed, Connections, is_broken};
use crate::sqlite::{File, Reader, Writer};
use crate::{Dialect, Error, Query, Row};

/// A transaction; if it is dropped without [`Transaction::commit`], there is no change.
pub struct Transaction<'a> {
    /// Empty once it has ended, which it has with its connection.
    open: Option<Open<'a>>,
    patience: Patience,
}

enum Open<'a> {
    Sqlite { file: &'a File, side: Side<'a> },
    Postgres { home: &'a Connections, connection: Borrowed<'a> },
}

/// Which connection of a file it is on.
enum Side<'a> {
    Writing(Writer),
    Reading(Reader<'a>),
}

impl Side<'_> {
    fn connection(&mut self) -> Result<&mut SqliteConnection, sqlx::Error> {
        match self {
            Self::Writing(writer) => writer.connection(),
            Self::Reading(reader) => reader.connection(),
        }
    }
}

#[derive(Clone, Copy)]
pub(crate) enum Patience {
    /// As for one for which a run waits.
    Brief,
    /// As for work on a whole thread.
    Long,
}

impl Patience {
    async fn wait<T>(self, home: &Connections, answer: impl Answer<T>) -> Result<T, sqlx::Error> {
        match self {
            Self::Brief => home.brief(answer).await,
            Self::Long => home.long(answer).await,
        }
    }

    async fn rows(
        self,
        home: &Connections,
        connection: &mut PgConnection,
        statement: Statement<'_, Postgres, PgArguments>,
    ) -> Result<Vec<PgRow>, sqlx::Error> {
        match self {
            Self::Brief => home.rows(statement.fetch(connection)).await,
            Self::Long => home.long(statement.fetch_all(connection)).await,
        }
    }
}

impl<'a> Transaction<'a> {
    pub(crate) async fn on_sqlite(file: &'a File) -> Result<Self, Error> {
        let mut writer = file.writer().await?;
        let begin = "BEGIN IMMEDIATE".into_sql_str();
        SqliteTransactionManager::begin(writer.connection()?, Some(begin))
            .await
            .map_err(|error| file.refine(error))?;
        let open = Open::Sqlite { file, side: Side::Writing(writer) };
        Ok(Self { open: Some(open), patience: Patience::Brief })
    }

    pub(crate) async fn reading_sqlite(file: &'a File) -> Result<Self, Error> {
        let mut reader = file.reader().await?;
        SqliteTransactionManager::begin(reader.connection()?, None)
            .await
            .map_err(|error| file.refine(error))?;
        let open = Open::Sqlite { file, side: Side::Reading(reader) };
        Ok(Self { open: Some(open), patience: Patience::Brief })
    }

    pub(crate) async fn on_postgres(
        home: &'a Connections,
        acting: &Acting,
        begin: &'static str,
        patience: Patience,
    ) -> Result<Self, Error> {
        let mut connection = home.take_as(acting).await?;
        match begin_on(home, &mut connection, begin).await {
            Ok(()) => {}
            // Nothing was sent yet that could not be sent again.
            Err(error) if is_broken(&error) => {
                drop(connection);
                connection = home.fresh_as(acting).await?;
                let again = begin_on(home, &mut connection, begin).await;
                again.map_err(|error| home.refine(error))?;
            }
            // Closed, as it may be during a transaction that failed.
            Err(error) => return Err(home.refine(error)),
        }
        Ok(Self { open: Some(Open::Postgres { home, connection }), patience })
    }

    pub fn dialect(&self) -> Dialect {
        match self.open {
            Some(Open::Postgres { .. }) => Dialect::Postgres,
            _ => Dialect::Sqlite,
        }
    }

    /// Runs a statement and returns how many rows it changed.
    pub async fn execute(&mut self, query: &Query) -> Result<u64, Error> {
        let patience = self.patience;
        match self.open.as_mut() {
            None => Err(sqlx::Error::PoolClosed.into()),
            Some(Open::Sqlite { file, side }) => {
                let done = query.for_sqlite()?.execute(side.connection()?).await;
                Ok(done.map_err(|error| file.refine(error))?.rows_affected())
            }
            Some(Open::Postgres { home, connection }) => {
                let done = query.for_postgres()?.execute(&mut **connection);
                let done = patience.wait(home, done).await;
                Ok(self.answered(done)?.rows_affected())
            }
        }
    }

    pub async fn fetch_all(&mut self, query: &Query) -> Result<Vec<Row>, Error> {
        let patience = self.patience;
        match self.open.as_mut() {
            None => Err(sqlx::Error::PoolClosed.into()),
            Some(Open::Sqlite { file, side }) => {
                let rows = query.for_sqlite()?.fetch_all(side.connection()?).await;
                let rows = rows.map_err(|error| file.refine(error))?;
                Ok(rows.into_iter().map(Row::from).collect())
            }
            Some(Open::Postgres { home, connection }) => {
                let rows = patience.rows(home, connection, query.for_postgres()?).await;
                Ok(self.answered(rows)?.into_iter().map(Row::from).collect())
            }
        }
    }

    /// Classifies a server's answer; if its connection broke, the transaction has ended with it.
    fn answered<T>(&mut self, answer: Result<T, sqlx::Error>) -> Result<T, Error> {
        let refined = match (answer, &self.open) {
            (Ok(answer), _) => return Ok(answer),
            (Err(error), Some(Open::Postgres { home, .. })) => home.refine(error),
            (Err(error), _) => error.into(),
        };
        if matches!(&refined, Error::Failed(error) if is_broken(error)) {
            self.open = None;
        }
        Err(refined)
    }

    pub async fn fetch_optional(&mut self, query: &Query) -> Result<Option<Row>, Error> {
        Ok(self.fetch_all(query).await?.into_iter().next())
    }

    /// Makes all changes durable and visible at once.
    ///
    /// # Errors
    /// [`Error::Failed`], [`Error::Full`]; with a broken connection it is unknown whether they were made.
    pub async fn commit(mut self) -> Result<(), Error> {
        let patience = self.patience;
        match self.open.as_mut() {
            None => return Err(sqlx::Error::PoolClosed.into()),
            Some(Open::Sqlite { file, side }) => {
                let done = SqliteTransactionManager::commit(side.connection()?).await;
                done.map_err(|error| file.refine(error))?;
            }
            Some(Open::Postgres { home, connection }) => {
                let done = PgTransactionManager::commit(connection);
                let done = patience.wait(home, done).await;
                done.map_err(|error| home.refine(error))?;
            }
        }
        self.give_back();
        Ok(())
    }

    /// Discards all changes; a transaction that ended with its connection has done so.
    pub async fn roll_back(mut self) -> Result<(), Error> {
        match self.open.as_mut() {
            None => {}
            Some(Open::Sqlite { file, side }) => {
                let done = SqliteTransactionManager::rollback(side.connection()?).await;
                done.map_err(|error| file.refine(error))?;
            }
            Some(Open::Postgres { home, connection }) => {
                let done = home.brief(PgTransactionManager::rollback(connection)).await;
                done.map_err(|error| home.refine(error))?;
            }
        }
        self.give_back();
        Ok(())
    }

    /// Ends it by the result of its work: commits it, or discards it and returns the failure.
    pub async fn settle<T, E: From<Error>>(self, done: Result<T, E>) -> Result<T, E> {
        match done {
            Ok(value) => {
                self.commit().await?;
                Ok(value)
            }
            Err(error) => {
                // A connection that cannot roll back is not used again.
                let _ = self.roll_back().await;
                Err(error)
            }
        }
    }

    /// Gives the connection back after its transaction has ended.
    fn give_back(&mut self) {
        match self.open.take() {
            Some(Open::Postgres { connection, .. }) => connection.give_back(),
            Some(Open::Sqlite { side: Side::Reading(reader), .. }) => reader.give_back(),
            Some(Open::Sqlite { side: Side::Writing(_), .. }) | None => {}
        }
    }
}

async fn begin_on(
    home: &Connections,
    connection: &mut PgConnection,
    begin: &'static str,
) -> Result<(), sqlx::Error> {
    home.brief(PgTransactionManager::begin(connection, Some(begin.into_sql_str()))).await
}

impl Drop for Transaction<'_> {
    /// Rolls back; a Postgres connection is closed instead, after which the server does.
    fn drop(&mut self) {
        if let Some(Open::Sqlite { side, .. }) = self.open.as_mut()
            && let Ok(connection) = side.connection()
            && SqliteTransactionManager::get_transaction_depth(connection) > 0
        {
            SqliteTransactionManager::start_rollback(connection);
        }
    }
}
