//! Threads as such: made, forked, looked up, listed.

use async_trait::async_trait;
use perihelion_database::{self as database, Dialect, Query, Row, query};

use super::super::chain::has_step;
use super::super::limits::{big, text};
use super::super::{Error, NewThread, Result, ThreadFilter, ThreadInfo, ThreadStatus, Threads};
use super::decode::{self, ThreadRow, thread_columns};
use super::{
    Backend, ThreadAccess, info, listing, locking, now, removal, thread_row, with_rows, worded,
};
use crate::ids::ThreadId;

#[async_trait]
impl<B: Backend> Threads for B {
    async fn create(&self, new: NewThread) -> Result<ThreadInfo> {
        let database = self.database();
        let row = database.execute_returning(&insert(database.dialect(), &new, None)).await;
        made(row, &new, None)
    }

    async fn info(&self, thread: ThreadId) -> Result<ThreadInfo> {
        Ok(info(self.database(), thread).await?.info)
    }

    async fn fork(&self, source: ThreadId, at: u64, new: NewThread) -> Result<ThreadInfo> {
        with_rows(self, || async {
            let mut transaction = self.database().begin().await?;
            let thread = source;
            let made = ThreadAccess { transaction: &mut transaction, thread }.fork(at, &new).await;
            transaction.settle(made).await
        })
        .await
    }

    async fn list(&self, filter: &ThreadFilter) -> Result<Vec<ThreadInfo>> {
        let rows = self.database().fetch_all(&listing::list(filter)).await?;
        rows.iter().map(|row| Ok(decode::thread(row)?.info)).collect()
    }

    async fn count_threads(&self) -> Result<Vec<(ThreadStatus, u64)>> {
        self.database()
            .fetch_all(&query(listing::COUNT))
            .await?
            .iter()
            .map(decode::counted)
            .collect()
    }

    async fn delete(&self, thread: ThreadId) -> Result<()> {
        removal::delete(self, thread, None).await
    }

    async fn delete_as_seen(&self, seen: &ThreadInfo) -> Result<()> {
        removal::delete(self, seen.id, Some(seen)).await
    }

    async fn truncate(&self, thread: ThreadId, seq: u64) -> Result<()> {
        with_rows(self, || removal::truncate(self.database(), thread, seq)).await
    }
}

const CREATE: &str = concat!(
    "INSERT INTO thread (id, root_id, parent_id, parent_seq, head, base, graph, title, namespace,
        tenant, created_at, updated_at)
     VALUES ($1, $2, $3, $4, coalesce($4, 0), $5, $6, $7, $8, $9, {now}, {now}) RETURNING ",
    thread_columns!()
);

/// The origin of a fork: the thread, the step, and the step up to which the thread's steps were dropped.
type Origin = (ThreadId, u64, u64);

fn insert(dialect: Dialect, new: &NewThread, origin: Option<Origin>) -> Query {
    worded(dialect, CREATE, &[("{now}", "$10", "now()")])
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
) -> Result<ThreadInfo> {
    match row {
        Err(error) if error.is_duplicate() => Err(Error::ThreadExists(new.id)),
        Err(error) if error.is_orphan() => {
            Err(Error::UnknownThread(new.root.or(source).unwrap_or(new.id)))
        }
        row => Ok(decode::thread(&row?.ok_or(Error::UnknownThread(new.id))?)?.info),
    }
}

impl ThreadAccess<'_, '_> {
    /// Makes a thread that shares the history of this one up to `at`.
    ///
    /// This one's row is locked, so that it cannot be deleted or truncated under the fork.
    async fn fork(&mut self, at: u64, new: &NewThread) -> Result<ThreadInfo> {
        let thread = self.thread;
        let dialect = self.transaction.dialect();
        let statement = locking!(dialect, " FOR KEY SHARE", thread_row!());
        let ThreadRow { info, base } = self.row(statement).await?;
        has_step(&info.present()?, base, at)?;
        let insert = insert(dialect, new, Some((thread, at, base)));
        made(self.transaction.fetch_optional(&insert).await, new, Some(thread))
    }

    pub(super) async fn read(&mut self) -> Result<ThreadRow> {
        self.row(thread_row!()).await
    }

    /// Reads a thread's row to change the thread: a process that claims it waits.
    pub(super) async fn lock(&mut self) -> Result<ThreadInfo> {
        let statement = locking!(self.transaction.dialect(), " FOR UPDATE", thread_row!());
        Ok(self.row(statement).await?.info)
    }

    async fn row(&mut self, statement: &'static str) -> Result<ThreadRow> {
        let row = self.transaction.fetch_optional(&query(statement).bind(self.thread.0)).await?;
        decode::thread(&row.ok_or(Error::UnknownThread(self.thread))?)
    }
}
