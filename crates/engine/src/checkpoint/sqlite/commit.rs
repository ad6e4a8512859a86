//! One step, one statement, which those of other threads may share a flush with; with texts beside it, one transaction.

use sqlx::{Connection as _, Sqlite, SqliteConnection, query::Query, sqlite::SqliteArguments};

use super::{
    super::{
        Commit, Error,
        both::refusal::explain,
        limits::{big, moment},
    },
    SqliteStore, blobs,
};
use crate::clock;
use perihelion_database::sqlite::code;

const COMMIT: &str = "INSERT INTO step_commit (thread_id, seq, run, at, schema_version, codec,
        kind, hash, frontier, delta, fence, status, clears_pending)
     VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13)";

/// SQLITE_CONSTRAINT_TRIGGER: the view's trigger found another head or another fencing token.
const STALE: &str = "1811";

pub(super) async fn commit(store: &SqliteStore, commit: &Commit) -> Result<(), Error> {
    let file = &store.file;
    file.check_place()?;
    let step = &commit.step;
    let done = if commit.blobs.is_empty() {
        file.write(statement(commit)).await.map(drop)
    } else {
        with_blobs(file.writer().await?.connection()?, commit).await
    };
    match done {
        Ok(()) => Ok(()),
        Err(error) if code(&error).as_deref() == Some(STALE) => {
            let place = explain(&store.database, commit.thread, commit.fence).await?;
            Err(Error::Conflict { thread: commit.thread, seq: step.seq, head: place.head })
        }
        Err(error) => Err(file.refine(error).into()),
    }
}

async fn with_blobs(connection: &mut SqliteConnection, commit: &Commit) -> Result<(), sqlx::Error> {
    let mut transaction = connection.begin_with("BEGIN IMMEDIATE").await?;
    statement(commit).execute(&mut *transaction).await?;
    blobs::keep(&mut transaction, &commit.blobs).await?;
    transaction.commit().await
}

fn statement(commit: &Commit) -> Query<'_, Sqlite, SqliteArguments> {
    let step = &commit.step;
    sqlx::query(COMMIT)
        .bind(commit.thread.0)
        .bind(big(step.seq))
        .bind(step.run.0)
        .bind(moment(clock::now()).timestamp_micros())
        .bind(step.schema_version as i32)
        .bind(step.delta.codec as i16)
        .bind(step.kind.as_str())
        .bind(&step.hash[..])
        .bind(&step.frontier[..])
        .bind(&step.delta.bytes[..])
        .bind(big(commit.fence))
        .bind(commit.status.as_str())
        .bind(commit.clears_pending)
}
