//! Threads as such: made, forked, looked up, listed.

use async_trait::async_trait;
use perihelion_database::{self as database, Database, Dialect, Query, Row, Transaction, query};

use super::{
    super::{
        Error, NewThread, ThreadFilter, ThreadInfo, ThreadStatus, Threads,
        limits::{big, text},
    },
    Backend,
    decode::{self, ThreadRow, thread_columns},
    listing, locking, now, removal,
};
use crate::ids::ThreadId;

#[async_trait]
impl<B: Backend> Threads for B {
    async fn create(&self, new: NewThread) -> Result<ThreadInfo, Error> {
        let database = self.database();
        let row = database.execute_returning(&insert(database.dialect(), &new, None)).await;
        made(row, &new, None)
    }

    async fn info(&self, thread: ThreadId) -> Result<ThreadInfo, Error> {
        Ok(info(self.database(), thread).await?.info)
    }

    async fn fork(&self, source: ThreadId, at: u64, new: NewThread) -> Result<ThreadInfo, Error> {
        let mut transaction = self.database().begin().await?;
        let made = fork(&mut transaction, source, at, &new).await;
        transaction.settle(made).await
    }

    async fn list(&self, filter: &ThreadFilter) -> Result<Vec<ThreadInfo>, Error> {
        let rows = self.database().fetch_all(&listing::list(filter)).await?;
        rows.iter().map(|row| Ok(decode::thread(row)?.info)).collect()
    }

    async fn count_threads(&self) -> Result<Vec<(ThreadStatus, u64)>, Error> {
        self.database()
            .fetch_all(&query(listing::COUNT))
            .await?
            .iter()
            .map(decode::counted)
            .collect()
    }

    async fn delete(&self, thread: ThreadId) -> Result<(), Error> {
        self.states().forget(thread);
        removal::delete(self.database(), thread, None).await
    }

    async fn delete_as_seen(&self, seen: &ThreadInfo) -> Result<(), Error> {
        self.states().forget(seen.id);
        removal::delete(self.database(), seen.id, Some(seen)).await
    }

    async fn truncate(&self, thread: ThreadId, seq: u64) -> Result<(), Error> {
        removal::truncate(self.database(), thread, seq).await
    }
}

macro_rules! create {
    ($now:literal) => {
        concat!(
            "INSERT INTO thread (id, root_id, parent_id, parent_seq, head, base, graph, title,
                namespace, tenant, created_at, updated_at)
             VALUES ($1, $2, $3, $4, coalesce($4, 0), $5, $6, $7, $8, $9, ",
            $now,
            ", ",
            $now,
            ") RETURNING ",
            thread_columns!()
        )
    };
}

/// Where a fork begins: the thread, the step, and the step up to which the thread's were dropped.
type Origin = (ThreadId, u64, u64);

/// Makes a thread that shares the history of `source` up to `at`.
///
/// The source's row is held meanwhile, so that it cannot be deleted or truncated under the fork.
async fn fork(
    transaction: &mut Transaction<'_>,
    source: ThreadId,
    at: u64,
    new: &NewThread,
) -> Result<ThreadInfo, Error> {
    let dialect = transaction.dialect();
    let place = locking!(dialect, " FOR KEY SHARE", "SELECT head, base FROM thread WHERE id = $1");
    let place = transaction.fetch_optional(&query(place).bind(source.0)).await?;
    let place = place.ok_or(Error::UnknownThread(source))?;
    let head = decode::count(&place, "head")?;
    let base = decode::count(&place, "base")?;
    if at > head || at < base {
        return Err(Error::UnknownStep { thread: source, seq: at, head });
    }
    let row = transaction.fetch_optional(&insert(dialect, new, Some((source, at, base)))).await;
    made(row, new, Some(source))
}

fn insert(dialect: Dialect, new: &NewThread, origin: Option<Origin>) -> Query {
    query(dialect.pick(create!("$10"), create!("now()")))
        .binds((new.id.0, new.root.map(|id| id.0), origin.map(|(source, ..)| source.0)))
        .binds((origin.map(|(_, at, _)| big(at)), origin.map_or(0, |(.., base)| big(base))))
        .binds((text(&new.graph), new.title.as_deref().map(text), text(&new.namespace)))
        .binds((text(&new.tenant), now()))
}

/// Names why a thread was not made.
fn made(
    row: Result<Option<Row>, database::Error>,
    new: &NewThread,
    source: Option<ThreadId>,
) -> Result<ThreadInfo, Error> {
    match row {
        Err(error) if error.is_duplicate() => Err(Error::ThreadExists(new.id)),
        Err(error) if error.is_orphan() => {
            Err(Error::UnknownThread(new.root.or(source).unwrap_or(new.id)))
        }
        row => Ok(decode::thread(&row?.ok_or(Error::UnknownThread(new.id))?)?.info),
    }
}

macro_rules! info {
    () => {
        concat!("SELECT ", thread_columns!(), " FROM thread WHERE id = $1")
    };
}

/// Reads a thread's row.
pub(in super::super) async fn info(
    database: &Database,
    thread: ThreadId,
) -> Result<ThreadRow, Error> {
    let row = database.fetch_short(&query(info!()).bind(thread.0)).await?;
    decode::thread(&row.ok_or(Error::UnknownThread(thread))?)
}

/// Reads a thread's row within a transaction.
pub(in super::super) async fn read(
    transaction: &mut Transaction<'_>,
    thread: ThreadId,
) -> Result<ThreadRow, Error> {
    let row = transaction.fetch_optional(&query(info!()).bind(thread.0)).await?;
    decode::thread(&row.ok_or(Error::UnknownThread(thread))?)
}

/// Reads a thread's row to change the thread: anyone who claims it meanwhile waits.
pub(super) async fn lock(
    transaction: &mut Transaction<'_>,
    thread: ThreadId,
) -> Result<ThreadInfo, Error> {
    let statement = locking!(transaction.dialect(), " FOR UPDATE", info!());
    let row = transaction.fetch_optional(&query(statement).bind(thread.0)).await?;
    Ok(decode::thread(&row.ok_or(Error::UnknownThread(thread))?)?.info)
}
