//! Several statements that happen together or not at all.

use sqlx::{
    AssertSqlSafe, PgConnection, Postgres, SqlSafeStr as _, Sqlite,
    postgres::{PgArguments, PgRow, PgTransactionManager},
    query::Query as Statement,
    sqlite::SqliteTransactionManager,
};
use sqlx_core::transaction::TransactionManager;

use crate::{
    Dialect, Error, Query, Row,
    acting::Acting,
    postgres::{Borrowed, Connections, is_broken},
    row::Inner,
    sqlite::{File, Writer},
};

/// A transaction; dropped without [`Transaction::commit`], it changes nothing.
pub struct Transaction<'a>(Option<Held<'a>>);

enum Held<'a> {
    Sqlite { file: &'a File, writer: Writer },
    Postgres { home: &'a Connections, connection: Borrowed<'a> },
}

impl<'a> Transaction<'a> {
    pub(crate) async fn on_sqlite(file: &'a File) -> Result<Self, Error> {
        let mut writer = file.writer().await?;
        let begin = "BEGIN IMMEDIATE".into_sql_str();
        SqliteTransactionManager::begin(writer.connection()?, Some(begin))
            .await
            .map_err(|error| file.refine(error))?;
        Ok(Self(Some(Held::Sqlite { file, writer })))
    }

    pub(crate) async fn on_postgres(home: &'a Connections, acting: &Acting) -> Result<Self, Error> {
        let begin = acting.begin();
        let mut connection = home.take().await?;
        match begin_on(home, &mut connection, begin.as_deref()).await {
            Ok(()) => {}
            // Nothing was sent yet that could not be sent again.
            Err(error) if is_broken(&error) => {
                drop(connection);
                connection = home.fresh().await?;
                let again = begin_on(home, &mut connection, begin.as_deref()).await;
                again.map_err(|error| home.refine(error))?;
            }
            // Closed, as it may be during a transaction that failed.
            Err(error) => return Err(home.refine(error)),
        }
        Ok(Self(Some(Held::Postgres { home, connection })))
    }

    /// Returns which SQL the database speaks.
    pub fn dialect(&self) -> Dialect {
        match self.0 {
            Some(Held::Postgres { .. }) => Dialect::Postgres,
            _ => Dialect::Sqlite,
        }
    }

    /// Runs a statement and returns how many rows it changed.
    ///
    /// # Errors
    /// [`Error::Failed`], [`Error::Full`].
    pub async fn execute(&mut self, query: &Query) -> Result<u64, Error> {
        match self.0.as_mut() {
            None => Err(sqlx::Error::PoolClosed.into()),
            Some(Held::Sqlite { file, writer }) => {
                let statement =
                    sqlx::query_with::<Sqlite, _>(query.sql.clone(), query.for_sqlite()?);
                let done = statement.execute(writer.connection()?).await;
                Ok(done.map_err(|error| file.refine(error))?.rows_affected())
            }
            Some(Held::Postgres { home, connection }) => {
                let arguments = query.for_postgres()?;
                let statement = sqlx::query_with::<Postgres, _>(query.sql.clone(), arguments);
                let done = home.brief(statement.execute(&mut **connection)).await;
                Ok(done.map_err(|error| home.refine(error))?.rows_affected())
            }
        }
    }

    /// Reads all rows.
    ///
    /// # Errors
    /// [`Error::Failed`].
    pub async fn fetch_all(&mut self, query: &Query) -> Result<Vec<Row>, Error> {
        match self.0.as_mut() {
            None => Err(sqlx::Error::PoolClosed.into()),
            Some(Held::Sqlite { file, writer }) => {
                let statement =
                    sqlx::query_with::<Sqlite, _>(query.sql.clone(), query.for_sqlite()?);
                let rows = statement.fetch_all(writer.connection()?).await;
                let rows = rows.map_err(|error| file.refine(error))?;
                Ok(rows.into_iter().map(|row| Row(Inner::Sqlite(row))).collect())
            }
            Some(Held::Postgres { home, connection }) => {
                let arguments = query.for_postgres()?;
                let statement = sqlx::query_with::<Postgres, _>(query.sql.clone(), arguments);
                let rows = home.rows(statement.fetch(&mut **connection)).await;
                let rows = rows.map_err(|error| home.refine(error))?;
                Ok(rows.into_iter().map(|row| Row(Inner::Postgres(row))).collect())
            }
        }
    }

    /// Reads the first row, if any.
    ///
    /// # Errors
    /// [`Error::Failed`].
    pub async fn fetch_optional(&mut self, query: &Query) -> Result<Option<Row>, Error> {
        Ok(self.fetch_all(query).await?.into_iter().next())
    }

    /// Makes all changes durable and visible at once.
    ///
    /// # Errors
    /// [`Error::Failed`], [`Error::Full`]; with a broken connection it is unknown whether they were made.
    pub async fn commit(mut self) -> Result<(), Error> {
        match self.0.as_mut() {
            None => return Err(sqlx::Error::PoolClosed.into()),
            Some(Held::Sqlite { file, writer }) => {
                let done = SqliteTransactionManager::commit(writer.connection()?).await;
                done.map_err(|error| file.refine(error))?;
            }
            Some(Held::Postgres { home, connection }) => {
                let done = home.brief(PgTransactionManager::commit(connection)).await;
                done.map_err(|error| home.refine(error))?;
            }
        }
        if let Some(Held::Postgres { connection, .. }) = self.0.take() {
            connection.give_back();
        }
        Ok(())
    }

    /// Gives all changes up.
    ///
    /// # Errors
    /// [`Error::Failed`].
    pub async fn roll_back(mut self) -> Result<(), Error> {
        match self.0.take() {
            None => {}
            Some(Held::Sqlite { file, mut writer }) => {
                let done = SqliteTransactionManager::rollback(writer.connection()?).await;
                done.map_err(|error| file.refine(error))?;
            }
            Some(Held::Postgres { home, mut connection }) => {
                let done = home.brief(PgTransactionManager::rollback(&mut connection)).await;
                connection.settle(done)?;
            }
        }
        Ok(())
    }
}

async fn begin_on(
    home: &Connections,
    connection: &mut PgConnection,
    begin: Option<&str>,
) -> Result<(), sqlx::Error> {
    let begin = begin.map(|begin| AssertSqlSafe(begin).into_sql_str());
    home.brief(PgTransactionManager::begin(connection, begin)).await
}

/// Reads all rows in a transaction that begins so and changes nothing; the connection is fit for others after it, or broken.
pub(crate) async fn read_within(
    home: &Connections,
    connection: &mut PgConnection,
    begin: &str,
    statement: Statement<'_, Postgres, PgArguments>,
) -> Result<Vec<PgRow>, sqlx::Error> {
    begin_on(home, connection, Some(begin)).await?;
    let rows = home.rows(statement.fetch(&mut *connection)).await;
    match &rows {
        Ok(_) => home.brief(PgTransactionManager::commit(connection)).await?,
        Err(error) if is_broken(error) => {}
        Err(_) => home.brief(PgTransactionManager::rollback(connection)).await?,
    }
    rows
}

impl Drop for Transaction<'_> {
    /// Rolls back; a Postgres connection is closed instead, after which the server does.
    fn drop(&mut self) {
        if let Some(Held::Sqlite { writer, .. }) = self.0.as_mut()
            && let Ok(connection) = writer.connection()
            && SqliteTransactionManager::get_transaction_depth(connection) > 0
        {
            SqliteTransactionManager::start_rollback(connection);
        }
    }
}
