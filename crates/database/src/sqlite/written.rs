//! What a write did.

use futures::stream::TryStreamExt as _;
use sqlx::query::Query;
use sqlx::sqlite::{SqliteArguments, SqliteRow};
use sqlx::{Either, Executor, Sqlite, SqliteConnection};

/// What a statement did: how many rows it changed, and those that it returned.
#[derive(Default)]
pub struct Written {
    /// Of a text with several statements, no number: SQLite gives the last one that it knows for each.
    pub changed: u64,
    pub rows: Vec<SqliteRow>,
}

pub(super) async fn written(
    statement: Query<'_, Sqlite, SqliteArguments>,
    connection: &mut SqliteConnection,
) -> Result<Written, sqlx::Error> {
    let mut written = Written::default();
    let mut answers = connection.fetch_many(statement);
    while let Some(answer) = answers.try_next().await? {
        match answer {
            Either::Left(done) => written.changed += done.rows_affected(),
            Either::Right(row) => written.rows.push(row),
        }
    }
    Ok(written)
}
