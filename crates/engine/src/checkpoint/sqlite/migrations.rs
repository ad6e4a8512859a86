//! Brings a database file to the shape this binary knows.

use perihelion_database::migrations::{SQLITE, known_to_sqlite};
use sqlx::{Connection, SqliteConnection};

use super::{super::Error, file::File};

/// How many migrations this binary knows; the number applied is the file's `user_version`.
const KNOWN: i64 = known_to_sqlite();

/// Marks a file as ours ("peri"), so that another program's database is not written to.
const MARK: i64 = 0x7065_7269;

/// Migrates the file when needed: one query when it is up to date already.
///
/// Several processes may do this at once: the write lock is taken before the second look.
pub(super) async fn run(file: &File) -> Result<(), Error> {
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
    let applied = version(&mut transaction).await?;
    for (_, _, migration) in SQLITE.iter().skip(applied as usize) {
        sqlx::raw_sql(*migration).execute(&mut *transaction).await.map_err(|e| file.refine(e))?;
    }
    let marks = format!("PRAGMA application_id = {MARK}; PRAGMA user_version = {KNOWN}");
    sqlx::raw_sql(sqlx::AssertSqlSafe(marks))
        .execute(&mut *transaction)
        .await
        .map_err(|e| file.refine(e))?;
    transaction.commit().await.map_err(|e| file.refine(e))
}

async fn version(connection: &mut SqliteConnection) -> Result<i64, sqlx::Error> {
    sqlx::query_scalar("SELECT user_version FROM pragma_user_version").fetch_one(connection).await
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
    match found {
        found if found > KNOWN => {
            Err(Error::Newer { url: file.shown().to_owned(), found, known: KNOWN })
        }
        found => Ok(found == KNOWN),
    }
}
