//! Brings a database to the shape this binary knows.
//!
//! The SQL is in `/migrations`, for both databases under the same numbers; a number that one of them does not need is
//! missing there. A new migration is a file for each and a name in [`SQLITE`] and [`POSTGRES`].

use std::borrow::Cow;

use sqlx::migrate::{MigrateError, Migration, MigrationType, Migrator};
use sqlx::{AssertSqlSafe, Connection as _, PgConnection, SqlSafeStr as _, SqliteConnection};

use crate::postgres::{Connections, code};
use crate::sqlite::File;
use crate::{Cause, Error};

/// Lists migrations by the names of their files, which begin with four digits: the number.
macro_rules! migrations {
    ($database:literal: $($name:literal)*) => {
        &[$((
            number($name),
            $name,
            include_str!(concat!(env!("MIGRATIONS"), "/", $database, "/", $name, ".sql")),
        )),*]
    };
}

const fn number(name: &str) -> i64 {
    let mut number = 0;
    let mut at = 0;
    while at < 4 {
        number = 10 * number + (name.as_bytes()[at] - b'0') as i64;
        at += 1;
    }
    number
}

/// A migration: number, name and SQL.
pub type Step = (i64, &'static str, &'static str);

/// SQLite's migrations in order; how many of them were applied is the file's `user_version`.
pub const SQLITE: &[Step] = migrations! { "sqlite":
    "0001_threads" "0002_workers" "0003_trace_debts" "0004_events" "0006_integrity" "0007_recall"
    "0008_memory" "0009_documents" "0011_service" "0012_people" "0013_teams" "0014_approvals"
    "0015_service_clock" "0016_users" "0017_documents_of_tenants" "0019_spending" "0020_authors"
    "0022_threads_of_tenants" "0023_blobs" "0024_document_segments" "0025_recall_changes"
    "0026_document_attempts" "0027_listed_threads" "0028_recall_recent" "0029_ended_runs"
    "0030_recall_numbers" "0032_failed_at_rest" "0035_runs_across_threads"
    "0036_single_sign_on" "0037_status_counts" "0039_requests_and_memories" "0040_archive"
    "0043_recall_buckets"
};

/// Postgres's migrations in order.
pub const POSTGRES: &[Step] = migrations! { "postgres":
    "0001_threads" "0002_workers" "0003_trace_debts" "0004_events" "0005_queue_setup"
    "0006_integrity" "0007_recall" "0008_memory" "0009_documents" "0011_service" "0012_people"
    "0013_teams" "0014_approvals" "0015_service_clock" "0016_users" "0017_documents_of_tenants"
    "0018_people_of_tenants" "0019_spending" "0020_authors" "0021_service_of_tenants"
    "0022_threads_of_tenants" "0023_blobs" "0024_document_segments" "0025_recall_changes"
    "0026_document_attempts" "0027_listed_threads" "0028_recall_recent" "0029_ended_runs"
    "0030_recall_numbers" "0031_items_below_a_path" "0032_failed_at_rest" "0033_payloads_as_sent"
    "0034_wake_calls" "0035_runs_across_threads"
    "0036_single_sign_on" "0037_status_counts" "0039_requests_and_memories" "0040_archive"
    "0041_rows_of_threads"
    "0042_counts_in_one_statement" "0043_recall_buckets"
};

/// Marks a file as ours ("peri"), so that another program's database is not written to.
const MARK: i64 = 0x7065_7269;

pub const fn known_to_sqlite() -> i64 {
    SQLITE.len() as i64
}

/// Returns the number of the newest migration of Postgres that this binary knows.
pub fn known_to_postgres() -> i64 {
    POSTGRES.last().map_or(0, |(number, ..)| *number)
}

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
/// Several processes can do this at once: the write lock is taken before the second check.
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

/// Returns whether a file has all migrations; the Python package may have created it, for its own tables.
async fn is_current(file: &File, connection: &mut SqliteConnection) -> Result<bool, Error> {
    let looked: Result<(i64, i64, bool), _> = sqlx::query_as(
        "SELECT (SELECT user_version FROM pragma_user_version),
            (SELECT application_id FROM pragma_application_id),
            EXISTS (SELECT 1 FROM sqlite_schema
                WHERE tbl_name NOT LIKE 'perihelion%' AND tbl_name NOT LIKE 'sqlite%')",
    )
    .fetch_one(connection)
    .await;
    let unreachable = |reason: Cause| Error::Unreachable { url: file.shown().to_owned(), reason };
    let (found, mark, filled) = looked.map_err(|error| unreachable(error.into()))?;
    if filled && mark != MARK {
        return Err(unreachable("the file belongs to another program".into()));
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
/// Several processes can do this at once, because the migrator holds an advisory lock.
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
