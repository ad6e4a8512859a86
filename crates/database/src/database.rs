//! One database, whichever it is.

use std::sync::Arc;

use sqlx::{Postgres, Sqlite};

use crate::{
    Dialect, Error, Query, Row, Transaction,
    acting::Acting,
    address::{self, Address},
    migrations,
    postgres::{Connections, SILENCE},
    query,
    row::Inner,
    sqlite::{Deleted, File},
    transaction,
};

/// A migrated database; cheap to clone, every clone is the same one.
///
/// What a handle sees of tables that hold tenants' rows is said by [`Database::of_tenant`] and [`Database::of_all_tenants`]; one
/// that was just opened sees nothing of them, where the server enforces it.
#[derive(Clone)]
pub struct Database {
    kind: Kind,
    acting: Acting,
}

#[derive(Clone)]
enum Kind {
    Sqlite(Arc<File>),
    Postgres(Arc<Connections>),
}

impl Database {
    /// Opens and migrates the database that an address names: `postgres://…`, `sqlite:PATH` or a bare path (made
    /// when missing), or `memory:`, which is a new one for each call and is gone with it.
    ///
    /// # Errors
    /// [`Error::Unreachable`] when the address is no good or nothing answers there, [`Error::Newer`] when a newer
    /// version migrated it.
    pub async fn open(url: &str) -> Result<Self, Error> {
        match address::read(url)? {
            Address::Memory => {
                let file = File::in_memory().await?;
                migrations::run_sqlite(&file).await?;
                Ok(Self::new(Kind::Sqlite(Arc::new(file))))
            }
            Address::File(path) => {
                let file = File::open(&path, Deleted::Overwritten).await?;
                migrations::run_sqlite(&file).await?;
                Ok(Self::new(Kind::Sqlite(Arc::new(file))))
            }
            Address::Server => {
                let connections = Connections::new(url, SILENCE)?;
                migrations::run_postgres(&connections).await?;
                Ok(Self::new(Kind::Postgres(Arc::new(connections))))
            }
        }
    }

    fn new(kind: Kind) -> Self {
        Self { kind, acting: Acting::default() }
    }

    /// Returns a handle whose statements act for one tenant, and see its rows alone where row-level security is enforced.
    #[must_use]
    pub fn of_tenant(&self, tenant: &str) -> Self {
        Self { kind: self.kind.clone(), acting: Acting::Tenant(tenant.into()) }
    }

    /// Returns a handle whose statements act for all tenants: for jobs of the whole service, and for finding out whose a secret is.
    #[must_use]
    pub fn of_all_tenants(&self) -> Self {
        Self { kind: self.kind.clone(), acting: Acting::All }
    }

    /// Tells whether the database's role sees all rows whatever the policies say; never where there are none.
    ///
    /// # Errors
    /// [`Error::Failed`], [`Error::Unreachable`].
    pub async fn is_exempt(&self) -> Result<bool, Error> {
        let look =
            query("SELECT rolsuper OR rolbypassrls FROM pg_roles WHERE rolname = current_user");
        match self.dialect() {
            Dialect::Sqlite => Ok(false),
            Dialect::Postgres => match self.fetch_optional(&look).await? {
                Some(row) => row.get(0),
                None => Ok(false),
            },
        }
    }

    /// Returns which SQL it speaks.
    pub fn dialect(&self) -> Dialect {
        match &self.kind {
            Kind::Sqlite(_) => Dialect::Sqlite,
            Kind::Postgres(_) => Dialect::Postgres,
        }
    }

    /// Returns its address without passwords.
    pub fn shown(&self) -> &str {
        match &self.kind {
            Kind::Sqlite(file) => file.shown(),
            Kind::Postgres(connections) => connections.shown(),
        }
    }

    /// Reads all rows; asked once more on a new connection when the first one broke, so the statement must be one that
    /// may run twice.
    ///
    /// # Errors
    /// [`Error::Failed`], [`Error::Unreachable`].
    pub async fn fetch_all(&self, query: &Query) -> Result<Vec<Row>, Error> {
        match &self.kind {
            Kind::Sqlite(file) => {
                let arguments = query.for_sqlite()?;
                let mut reader = file.reader().await?;
                let statement = sqlx::query_with::<Sqlite, _>(query.sql.clone(), arguments);
                let rows = statement.fetch_all(reader.connection()?).await;
                let rows = reader.settle(rows)?;
                Ok(rows.into_iter().map(|row| Row(Inner::Sqlite(row))).collect())
            }
            Kind::Postgres(connections) => {
                let arguments = query.for_postgres()?;
                let statement =
                    || sqlx::query_with::<Postgres, _>(query.sql.clone(), arguments.clone());
                let rows = match self.acting.begin() {
                    None => crate::idempotent!(connections, |c| each row of statement())?,
                    Some(begin) => crate::idempotent!(@ connections, c,
                        transaction::read_within(connections, &mut c, &begin, statement()))?,
                };
                Ok(rows.into_iter().map(|row| Row(Inner::Postgres(row))).collect())
            }
        }
    }

    /// Reads the first row, if any, as [`Database::fetch_all`] does.
    ///
    /// # Errors
    /// As [`Database::fetch_all`].
    pub async fn fetch_optional(&self, query: &Query) -> Result<Option<Row>, Error> {
        Ok(self.fetch_all(query).await?.into_iter().next())
    }

    /// Runs one statement that writes and returns how many rows it changed.
    ///
    /// When it returns, the change is durable; when the connection breaks, it is unknown whether it was made.
    ///
    /// # Errors
    /// [`Error::Failed`], [`Error::Unreachable`], [`Error::Full`].
    pub async fn execute(&self, query: &Query) -> Result<u64, Error> {
        match &self.kind {
            Kind::Sqlite(file) => {
                let arguments = query.for_sqlite()?;
                let statement = sqlx::query_with::<Sqlite, _>(query.sql.clone(), arguments);
                file.write(statement).await.map_err(|error| file.refine(error))
            }
            Kind::Postgres(connections) => {
                let arguments = query.for_postgres()?;
                let statement = sqlx::query_with::<Postgres, _>(query.sql.clone(), arguments);
                if self.acting != Acting::Nobody {
                    let mut transaction = self.begin().await?;
                    let changed = transaction.execute(query).await?;
                    transaction.commit().await?;
                    return Ok(changed);
                }
                let mut connection = connections.take_tested().await?;
                let done = connections.brief(statement.execute(&mut *connection)).await;
                Ok(connection.settle(done)?.rows_affected())
            }
        }
    }

    /// Begins a transaction that may write; in SQLite it holds the write lock from here on, so keep it short.
    ///
    /// Dropped without [`Transaction::commit`], it changes nothing.
    ///
    /// # Errors
    /// [`Error::Failed`], [`Error::Unreachable`].
    pub async fn begin(&self) -> Result<Transaction<'_>, Error> {
        match &self.kind {
            Kind::Sqlite(file) => Transaction::on_sqlite(file).await,
            Kind::Postgres(connections) => {
                Transaction::on_postgres(connections, &self.acting).await
            }
        }
    }

    /// Overwrites what deleted rows leave in SQLite's write-ahead log; call it after a deletion that must leave no byte.
    ///
    /// The file itself is overwritten by each deletion (`secure_delete`). Postgres reclaims by its own vacuum.
    ///
    /// # Errors
    /// [`Error::Unscrubbed`] where others read what was there before and do not end; [`Error::Failed`].
    pub async fn scrub(&self) -> Result<(), Error> {
        match &self.kind {
            Kind::Sqlite(file) => file.scrub().await,
            Kind::Postgres(_) => Ok(()),
        }
    }

    /// Waits for what is under way and closes the connections.
    pub async fn close(&self) {
        match &self.kind {
            Kind::Sqlite(file) => file.close().await,
            Kind::Postgres(connections) => connections.close().await,
        }
    }
}
