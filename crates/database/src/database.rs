//! One database, whichever it is.

use std::sync::Arc;

use crate::acting::Acting;
use crate::address::{self, Address};
use crate::postgres::{Connections, SILENCE};
use crate::sqlite::{Deleted, File};
use crate::transaction::Patience;
use crate::{Dialect, Error, FromRow, Query, Row, Transaction, idempotent, migrations, query};

/// A migrated database; cheap to clone, every clone is the same one.
///
/// [`Database::of_tenant`] and [`Database::of_all_tenants`] determine which tenants' rows a handle sees; a new handle
/// sees none of them, if the server enforces it.
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
    /// Opens and migrates the database of an address: `postgres://…`, `sqlite:PATH` or a bare path (created if
    /// missing), or `memory:`, which is a new database for each call.
    ///
    /// # Errors
    /// [`Error::Unreachable`] for an invalid address or without an answer, [`Error::Newer`] if a newer version migrated
    /// it.
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

    /// Returns whether the database's role sees all rows in spite of the policies; false without policies.
    pub async fn is_exempt(&self) -> Result<bool, Error> {
        let look =
            query("SELECT rolsuper OR rolbypassrls FROM pg_roles WHERE rolname = current_user");
        match self.dialect() {
            Dialect::Sqlite => Ok(false),
            Dialect::Postgres => Ok(self.row(&look).await?.unwrap_or_default()),
        }
    }

    pub fn dialect(&self) -> Dialect {
        match &self.kind {
            Kind::Sqlite(_) => Dialect::Sqlite,
            Kind::Postgres(_) => Dialect::Postgres,
        }
    }

    pub fn shown(&self) -> &str {
        match &self.kind {
            Kind::Sqlite(file) => file.shown(),
            Kind::Postgres(connections) => connections.shown(),
        }
    }

    /// Reads all rows; repeated on a new connection if the first one broke, so the statement must be repeatable.
    ///
    /// # Errors
    /// [`Error::Failed`], [`Error::Unreachable`].
    pub async fn fetch_all(&self, query: &Query) -> Result<Vec<Row>, Error> {
        match &self.kind {
            Kind::Sqlite(file) => {
                let statement = query.for_sqlite()?;
                let mut reader = file.reader().await?;
                let rows = statement.fetch_all(reader.connection()?).await;
                let rows = match rows {
                    // Its transaction is still open: it ends with the connection.
                    Err(error) if query.is_several() => return Err(file.refine(error)),
                    rows => reader.settle(rows)?,
                };
                Ok(rows.into_iter().map(Row::from).collect())
            }
            Kind::Postgres(connections) => {
                let rows = idempotent!(connections as &self.acting, |c| each row of query.for_postgres()?)?;
                Ok(rows.into_iter().map(Row::from).collect())
            }
        }
    }

    /// Reads the first row, if any, as [`Database::fetch_all`] does.
    pub async fn fetch_optional(&self, query: &Query) -> Result<Option<Row>, Error> {
        Ok(self.fetch_all(query).await?.into_iter().next())
    }

    /// Reads all rows as values of a type, as [`Database::fetch_all`] does.
    pub async fn rows<T: FromRow>(&self, query: &Query) -> Result<Vec<T>, Error> {
        self.fetch_all(query).await?.iter().map(T::from_row).collect()
    }

    /// Reads the first row, if any, as a value of a type.
    pub async fn row<T: FromRow>(&self, query: &Query) -> Result<Option<T>, Error> {
        self.fetch_optional(query).await?.as_ref().map(T::from_row).transpose()
    }

    /// Reads one short row for which a run waits, as [`Database::fetch_optional`] does; a server can be silent for as
    /// long as on a write, but not as long as on a large row.
    pub async fn fetch_short(&self, query: &Query) -> Result<Option<Row>, Error> {
        match &self.kind {
            Kind::Postgres(connections) => {
                let row = idempotent!(connections as &self.acting, |c| query
                    .for_postgres()?
                    .fetch_optional(&mut *c))?;
                Ok(row.map(Row::from))
            }
            Kind::Sqlite(_) => self.fetch_optional(query).await,
        }
    }

    /// Runs one statement that writes and returns how many rows it changed.
    ///
    /// When it returns, the change is durable; when the connection breaks, it is unknown whether it was made, unless the
    /// statement is [repeatable](Query::repeatable): then it is sent once more.
    ///
    /// # Errors
    /// [`Error::Failed`], [`Error::Unreachable`], [`Error::Full`].
    pub async fn execute(&self, query: &Query) -> Result<u64, Error> {
        match &self.kind {
            Kind::Sqlite(file) => {
                Ok(file.write(query.for_sqlite()?, query.is_several()).await?.changed)
            }
            Kind::Postgres(connections) => {
                if query.is_repeatable() {
                    let done = idempotent!(connections as &self.acting, |c| query
                        .for_postgres()?
                        .execute(&mut *c));
                    return Ok(done?.rows_affected());
                }
                let mut connection = connections.take_tested_as(&self.acting).await?;
                let done = query.for_postgres()?.execute(&mut *connection);
                let done = connections.brief(done).await;
                Ok(connection.settle(done)?.rows_affected())
            }
        }
    }

    /// Runs one statement that writes one row and returns it; as durable as [`Database::execute`].
    pub async fn execute_returning(&self, query: &Query) -> Result<Option<Row>, Error> {
        match &self.kind {
            Kind::Postgres(_) if query.is_repeatable() => self.fetch_short(query).await,
            Kind::Postgres(connections) => {
                let mut connection = connections.take_tested_as(&self.acting).await?;
                let row = query.for_postgres()?.fetch_optional(&mut *connection);
                let row = connections.brief(row).await;
                Ok(connection.settle(row)?.map(Row::from))
            }
            Kind::Sqlite(file) => {
                let written = file.write(query.for_sqlite()?, query.is_several()).await?;
                Ok(written.rows.into_iter().next().map(Row::from))
            }
        }
    }

    /// Begins a transaction that may write; in SQLite it holds the write lock from here on, so keep it short.
    ///
    /// If it is dropped without [`Transaction::commit`], there is no change.
    pub async fn begin(&self) -> Result<Transaction<'_>, Error> {
        self.begin_with(Patience::Brief).await
    }

    /// Begins a transaction as [`Database::begin`] does, in which each statement can take long, for work on many rows
    /// at once.
    pub async fn begin_long(&self) -> Result<Transaction<'_>, Error> {
        self.begin_with(Patience::Long).await
    }

    async fn begin_with(&self, patience: Patience) -> Result<Transaction<'_>, Error> {
        match &self.kind {
            Kind::Sqlite(file) => Transaction::on_sqlite(file).await,
            Kind::Postgres(connections) => {
                Transaction::on_postgres(connections, &self.acting, "BEGIN", patience).await
            }
        }
    }

    /// Begins a read-only transaction that sees the database at one moment; it blocks no other one, except on a
    /// database in memory, which has one connection.
    pub async fn begin_reading(&self) -> Result<Transaction<'_>, Error> {
        match &self.kind {
            Kind::Sqlite(file) => Transaction::reading_sqlite(file).await,
            Kind::Postgres(connections) => {
                let begin = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY";
                Transaction::on_postgres(connections, &self.acting, begin, Patience::Long).await
            }
        }
    }

    /// Overwrites what deleted rows leave in SQLite's write-ahead log; call it after a deletion that must leave no byte.
    ///
    /// The file itself is overwritten by each deletion (`secure_delete`). Postgres reclaims by its own vacuum.
    ///
    /// # Errors
    /// [`Error::Unscrubbed`] if other processes keep reading the earlier state; [`Error::Failed`].
    pub async fn scrub(&self) -> Result<(), Error> {
        match &self.kind {
            Kind::Sqlite(file) => file.scrub().await,
            Kind::Postgres(_) => Ok(()),
        }
    }

    /// Waits for active statements and closes the connections.
    pub async fn close(&self) {
        match &self.kind {
            Kind::Sqlite(file) => file.close().await,
            Kind::Postgres(connections) => connections.close().await,
        }
    }
}

impl From<Arc<File>> for Database {
    /// Uses a file that is open and migrated.
    fn from(file: Arc<File>) -> Self {
        Self::new(Kind::Sqlite(file))
    }
}

impl From<Arc<Connections>> for Database {
    /// Uses connections to a migrated server; their tenant stays the same.
    fn from(connections: Arc<Connections>) -> Self {
        Self::new(Kind::Postgres(connections))
    }
}
