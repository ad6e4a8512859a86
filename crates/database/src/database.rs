//! One database, whichever it is.

use std::sync::Arc;

use crate::{
    Dialect, Error, Query, Row, Transaction,
    acting::Acting,
    address::{self, Address},
    idempotent, migrations,
    postgres::{Connections, SILENCE},
    query,
    sqlite::{Deleted, File},
    transaction::{self, Patience},
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
                let statement = query.for_sqlite()?;
                let mut reader = file.reader().await?;
                let rows = statement.fetch_all(reader.connection()?).await;
                Ok(reader.settle(rows)?.into_iter().map(Row::from).collect())
            }
            Kind::Postgres(connections) => {
                let rows = match self.acting.begin() {
                    None => idempotent!(connections, |c| each row of query.for_postgres()?)?,
                    Some(begin) => idempotent!(@ connections, c,
                        transaction::read_within(connections, &mut c, &begin, query.for_postgres()?))?,
                };
                Ok(rows.into_iter().map(Row::from).collect())
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

    /// Reads one short row that a run waits for, as [`Database::fetch_optional`] does; a server may be silent for as
    /// long as on a write, not for as long as on a large row.
    ///
    /// # Errors
    /// As [`Database::fetch_all`].
    pub async fn fetch_short(&self, query: &Query) -> Result<Option<Row>, Error> {
        match &self.kind {
            Kind::Postgres(connections) if self.acting == Acting::Nobody => {
                let row =
                    idempotent!(connections, |c| query.for_postgres()?.fetch_optional(&mut *c))?;
                Ok(row.map(Row::from))
            }
            _ => self.fetch_optional(query).await,
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
                file.check_place()?;
                file.write(query.for_sqlite()?).await.map_err(|error| file.refine(error))
            }
            Kind::Postgres(connections) => {
                if self.acting != Acting::Nobody {
                    let mut transaction = self.begin().await?;
                    let changed = transaction.execute(query).await?;
                    transaction.commit().await?;
                    return Ok(changed);
                }
                if query.is_repeatable() {
                    let done = idempotent!(connections, |c| query.for_postgres()?.execute(&mut *c));
                    return Ok(done?.rows_affected());
                }
                let mut connection = connections.take_tested().await?;
                let done = query.for_postgres()?.execute(&mut *connection);
                let done = connections.brief(done).await;
                Ok(connection.settle(done)?.rows_affected())
            }
        }
    }

    /// Runs one statement that writes one row and returns it; as durable as [`Database::execute`], and never sent again.
    ///
    /// # Errors
    /// As [`Database::execute`].
    pub async fn execute_returning(&self, query: &Query) -> Result<Option<Row>, Error> {
        match &self.kind {
            Kind::Postgres(connections) if self.acting == Acting::Nobody => {
                let mut connection = connections.take_tested().await?;
                let row = query.for_postgres()?.fetch_optional(&mut *connection);
                let row = connections.brief(row).await;
                Ok(connection.settle(row)?.map(Row::from))
            }
            Kind::Postgres(_) => {
                let mut transaction = self.begin().await?;
                let row = transaction.fetch_optional(query).await?;
                transaction.commit().await?;
                Ok(row)
            }
            Kind::Sqlite(file) => {
                let mut writer = file.writer().await?;
                // Read to the end: only then has it committed.
                let rows = query.for_sqlite()?.fetch_all(writer.connection()?).await;
                let rows = rows.map_err(|error| file.refine(error))?;
                Ok(rows.into_iter().next().map(Row::from))
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
        self.begin_with(Patience::Brief).await
    }

    /// Begins a transaction as [`Database::begin`] does, in which a server may work long on each statement: for what is
    /// done to many rows at once.
    ///
    /// # Errors
    /// As [`Database::begin`].
    pub async fn begin_long(&self) -> Result<Transaction<'_>, Error> {
        self.begin_with(Patience::Long).await
    }

    async fn begin_with(&self, patience: Patience) -> Result<Transaction<'_>, Error> {
        match &self.kind {
            Kind::Sqlite(file) => Transaction::on_sqlite(file).await,
            Kind::Postgres(connections) => {
                let begin = self.acting.begin();
                Transaction::on_postgres(connections, begin.as_deref(), patience).await
            }
        }
    }

    /// Begins a transaction that only reads, and sees the database as it is at one moment; nobody waits for it, unless the
    /// database is in memory, which has one connection.
    ///
    /// # Errors
    /// As [`Database::begin`].
    pub async fn begin_reading(&self) -> Result<Transaction<'_>, Error> {
        match &self.kind {
            Kind::Sqlite(file) => Transaction::reading_sqlite(file).await,
            Kind::Postgres(connections) => {
                let begin = self.acting.begin_reading();
                Transaction::on_postgres(connections, Some(&begin), Patience::Long).await
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

impl From<Arc<File>> for Database {
    /// Stands on a file that was opened and migrated already.
    fn from(file: Arc<File>) -> Self {
        Self::new(Kind::Sqlite(file))
    }
}

impl From<Arc<Connections>> for Database {
    /// Stands on connections to a server that was migrated already; who they act for stays as it is.
    fn from(connections: Arc<Connections>) -> Self {
        Self::new(Kind::Postgres(connections))
    }
}
