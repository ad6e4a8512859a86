//! Brings a database to the shape this binary knows.
//!
//! The SQL stands in `/migrations`, for both databases under the same numbers; a number that one of them has no need of is missing
//! there. A new migration is a file for each and a line in [`SQLITE`] and [`POSTGRES`].

use std::borrow::Cow;

use sqlx::{
    AssertSqlSafe, Connection as _, PgConnection, SqlSafeStr as _, SqliteConnection,
    migrate::{MigrateError, Migration, MigrationType, Migrator},
};

use crate::{
    Error,
    postgres::{Connections, code},
    sqlite::File,
};

macro_rules! migration {
    ($database:literal, $number:literal, $name:literal) => {
        (
            $number,
            $name,
            include_str!(concat!("../../../migrations/", $database, "/", $name, ".sql")),
        )
    };
}

/// A migration: number, name and SQL.
pub type Step = (i64, &'static str, &'static str);

/// SQLite's migrations in order; how many of them were applied is the file's `user_version`.
pub const SQLITE: &[Step] = &[
    migration!("sqlite", 1, "0001_threads"),
    migration!("sqlite", 2, "0002_workers"),
    migration!("sqlite", 3, "0003_trace_debts"),
    migration!("sqlite", 4, "0004_events"),
    migration!("sqlite", 6, "0006_integrity"),
    migration!("sqlite", 7, "0007_recall"),
    migration!("sqlite", 8, "0008_memory"),
    migration!("sqlite", 9, "0009_documents"),
    migration!("sqlite", 11, "0011_service"),
    migration!("sqlite", 12, "0012_people"),
    migration!("sqlite", 13, "0013_teams"),
    migration!("sqlite", 14, "0014_approvals"),
    migration!("sqlite", 15, "0015_service_clock"),
    migration!("sqlite", 16, "0016_users"),
    migration!("sqlite", 17, "0017_documents_of_tenants"),
    migration!("sqlite", 19, "0019_spending"),
    migration!("sqlite", 20, "0020_authors"),
    migration!("sqlite", 22, "0022_threads_of_tenants"),
    migration!("sqlite", 23, "0023_blobs"),
    migration!("sqlite", 24, "0024_document_segments"),
    migration!("sqlite", 25, "0025_recall_changes"),
    migration!("sqlite", 26, "0026_document_attempts"),
    migration!("sqlite", 27, "0027_listed_threads"),
    migration!("sqlite", 28, "0028_recall_recent"),
    migration!("sqlite", 29, "0029_ended_runs"),
    migration!("sqlite", 30, "0030_recall_numbers"),
    migration!("sqlite", 32, "0032_failed_at_rest"),
];

/// Postgres's migrations in order.
pub const POSTGRES: &[Step] = &[
    migration!("postgres", 1, "0001_threads"),
    migration!("postgres", 2, "0002_workers"),
    migration!("postgres", 3, "0003_trace_debts"),
    migration!("postgres", 4, "0004_events"),
    migration!("postgres", 5, "0005_queue_setup"),
    migration!("postgres", 6, "0006_integrity"),
    migration!("postgres", 7, "0007_recall"),
    migration!("postgres", 8, "0008_memory"),
    migration!("postgres", 9, "0009_documents"),
    migration!("postgres", 11, "0011_service"),
    migration!("postgres", 12, "0012_people"),
    migration!("postgres", 13, "0013_teams"),
    migration!("postgres", 14, "0014_approvals"),
    migration!("postgres", 15, "0015_service_clock"),
    migration!("postgres", 16, "0016_users"),
    migration!("postgres", 17, "0017_documents_of_tenants"),
    migration!("postgres", 18, "0018_people_of_tenants"),
    migration!("postgres", 19, "0019_spending"),
    migration!("postgres", 20, "0020_authors"),
    migration!("postgres", 21, "0021_service_of_tenants"),
    migration!("postgres", 22, "0022_threads_of_tenants"),
    migration!("postgres", 23, "0023_blobs"),
    migration!("postgres", 24, "0024_document_segments"),
    migration!("postgres", 25, "0025_recall_changes"),
    migration!("postgres", 26, "0026_document_attempts"),
    migration!("postgres", 27, "0027_listed_threads"),
    migration!("postgres", 28, "0028_recall_recent"),
    migration!("postgres", 29, "0029_ended_runs"),
    migration!("postgres", 30, "0030_recall_numbers"),
    migration!("postgres", 31, "0031_items_below_a_path"),
    migration!("postgres", 32, "0032_failed_at_rest"),
    migration!("postgres", 33, "0033_payloads_as_sent"),
    migration!("postgres", 34, "0034_wake_calls"),
];

/// Marks a file as ours ("peri"), so that another program's database is not written to.
const MARK: i64 = 0x7065_7269;

/// Returns how many migrations of SQLite this binary knows.
pub const fn known_to_sqlite() -> i64 {
    SQLITE.len() as i64
}

/// Returns the number of the newest migration of Postgres that this binary knows.
pub fn known_to_postgres() -> i64 {
    POSTGRES.last().map_or(0, |(number, ..)| *number)
}

/// Returns the migrator of Postgres.
pub fn postgres_migrator() -> Migrator {
    let migration = |(number, name, sql): &Step| {
        // The name is what it was when sqlx first noted it: without its number.
        let name = name.split_once('_').map_or(*name, |(_, name)| name);
        let name = Cow::Borrowed(name);
        let kind = MigrationType::Simple;
        Migration::new(*number, name, kind, (*sql).into_sql_str(), false)
    };
    Migrator::with_migrations(POSTGRES.iter().map(migration).collect())
}

/// Migrates a file when needed: one query when it is up to date already.
///
/// Several processes may do this at once: the write lock is taken before the second look.
///
/// # Errors
/// [`Error::Newer`], [`Error::Unreachable`] for a file of another program, [`Error::Full`], [`Error::Failed`].
pub async fn run_sqlite(file: &File) -> Result<(), Error> {
    let mut writer = file.writer().await?;
    let connection = writer.connection()?;
    if is_current(file, connection).await? {
        return Ok(());
    }
    let mut transaction =
        connection.begin_with("BEGIN IMMEDIATE").await.map_err(|e| file.refine(e))?;
    if is_current(file, &mut transaction).await? {
        return Ok(());
    }
    let applied: i64 = sqlx::query_scalar("SELECT user_version FROM pragma_user_version")
        .fetch_one(&mut *transaction)
        .await?;
    for (_, _, sql) in SQLITE.iter().skip(applied as usize) {
        sqlx::raw_sql(*sql).execute(&mut *transaction).await.map_err(|e| file.refine(e))?;
    }
    let known = known_to_sqlite();
    let marks = format!("PRAGMA application_id = {MARK}; PRAGMA user_version = {known}");
    sqlx::raw_sql(AssertSqlSafe(marks))
        .execute(&mut *transaction)
        .await
        .map_err(|e| file.refine(e))?;
    transaction.commit().await.map_err(|e| file.refine(e))
}

async fn is_current(file: &File, connection: &mut SqliteConnection) -> Result<bool, Error> {
    let looked: Result<(i64, i64, bool), _> = sqlx::query_as(
        "SELECT (SELECT user_version FROM pragma_user_version),
            (SELECT application_id FROM pragma_application_id),
            EXISTS (SELECT 1 FROM sqlite_schema)",
    )
    .fetch_one(connection)
    .await;
    let unreachable = |reason: String| Error::Unreachable { url: file.shown().to_owned(), reason };
    let (found, mark, filled) = looked.map_err(|error| unreachable(error.to_string()))?;
    if filled && mark != MARK {
        return Err(unreachable("the file belongs to another program".to_owned()));
    }
    let known = known_to_sqlite();
    if found > known {
        Err(Error::Newer { url: file.shown().to_owned(), found, known })
    } else {
        Ok(found == known)
    }
}

/// Migrates a database when needed: one query when it is up to date already.
///
/// Several processes may do this at once; the migrator holds an advisory lock meanwhile.
///
/// # Errors
/// [`Error::Newer`], [`Error::Unreachable`], [`Error::Full`], [`Error::Failed`].
pub async fn run_postgres(connections: &Connections) -> Result<(), Error> {
    let mut connection = connections.take().await?;
    let known = known_to_postgres();
    match connections.brief(newest(&mut connection)).await {
        Ok(Some(found)) if found > known => return Err(newer(connections, found)),
        Ok(Some(found)) if found == known => {
            connection.give_back();
            return Ok(());
        }
        Ok(_) => {}
        // undefined_table: nothing was ever migrated here.
        Err(error) if code(&error) == Some("42P01") => {}
        Err(error) => return connection.settle(Err(error)),
    }
    let migrator = postgres_migrator();
    match connections.longest(migrator.run_direct(None, &mut *connection, false)).await {
        Ok(()) => {
            connection.give_back();
            Ok(())
        }
        Err(MigrateError::VersionMissing(found)) => Err(newer(connections, found)),
        Err(error) => Err(connections.refine(error.into())),
    }
}

async fn newest(connection: &mut PgConnection) -> Result<Option<i64>, sqlx::Error> {
    sqlx::query_scalar("SELECT max(version) FROM _sqlx_migrations WHERE success")
        .fetch_one(connection)
        .await
}

fn newer(connections: &Connections, found: i64) -> Error {
    Error::Newer { url: connections.shown().to_owned(), found, known: known_to_postgres() }
}
