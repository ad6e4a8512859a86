//! Threads at rest, moved to files and brought back.
//!
//! Invariants: a thread's rows are in the database, or its row names a file that is on disk. A name is used once, and a
//! file without a thread is noted in the table `archive_file` before it exists and until it is gone.

use std::collections::BTreeMap;

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use perihelion_database::{Database, Query, query};

use super::super::archive::Archive;
use super::super::dump::Form;
use super::super::{Archiving, Cause, Error, Result, ThreadDump};
use super::decode::{self, ThreadRow, thread_columns};
use super::{Backend, ThreadAccess, info, locking, now, removal, transfer, worded};
use crate::failpoint::{Point, wrap};
use crate::ids::ThreadId;

/// The present, as the last parameter of a statement.
const NOW: (&str, &str, &str) = ("{now}", "$4", "now()");

/// Microseconds that a process may take to write a file.
const WRITTEN_FOR: i64 = 3_600_000_000;

/// Microseconds for which the file of a thread that was brought back stays: a copy of the database that was begun before
/// needs it.
const STAYS: i64 = 24 * 3_600_000_000;

/// Whether the thread `t` is at rest and neither shares rows with others nor has any that no file has: events, pending
/// traces, open questions. Questions of steps that an edit or a new turn abandoned are not open.
macro_rules! at_rest {
    () => {
        "t.root_id IS NULL AND t.archived IS NULL AND t.status IN ('idle', 'failed', 'parked')
            AND t.lease_until IS NULL AND t.head > 0
            AND NOT EXISTS (SELECT 1 FROM event e WHERE e.thread_id = t.id)
            AND NOT EXISTS (SELECT 1 FROM trace_debt d WHERE d.thread_id = t.id)
            AND t.parent_id IS NULL
            AND NOT EXISTS (SELECT 1 FROM thread f WHERE f.parent_id = t.id)
            AND NOT EXISTS (SELECT 1 FROM thread c WHERE c.root_id = t.id AND c.parent_id IS NOT NULL)
            AND NOT EXISTS (SELECT 1 FROM thread c JOIN thread f ON f.parent_id = c.id WHERE c.root_id = t.id)
            AND NOT EXISTS (SELECT 1 FROM effect e
                WHERE e.thread_id = t.id AND e.kind = 'interrupt' AND e.status = 'started'
                    AND e.step > t.head)
            AND NOT EXISTS (SELECT 1 FROM thread c JOIN effect e ON e.thread_id = c.id
                WHERE c.root_id = t.id AND e.kind = 'interrupt' AND e.status = 'started'
                    AND e.step > c.head AND c.namespace LIKE '%:' || (t.head + 1) || ':%')"
    };
}

/// Read off the index `thread_to_archive`; a thread that was brought back is as young as that.
const ARCHIVABLE: &str = concat!(
    "SELECT t.id, t.rested_at FROM thread t WHERE t.rested_at < $1 AND (t.rested_at, t.id) > ($2, $3)
        AND (t.returned_at IS NULL OR t.returned_at < $1)
        AND NOT EXISTS (SELECT 1 FROM archive_file f WHERE f.thread_id = t.id AND NOT f.is_over) AND ",
    at_rest!(),
    " ORDER BY t.rested_at, t.id LIMIT $4"
);

const NOTE: &str = concat!(
    "INSERT INTO archive_file (name, thread_id, tenant, since)
     SELECT $2, t.id, t.tenant, {now} FROM thread t WHERE t.id = $1 AND t.updated_at < $3
        AND NOT EXISTS (SELECT 1 FROM archive_file f WHERE f.thread_id = t.id AND NOT f.is_over) AND ",
    at_rest!()
);

const IS_AT_REST: &str = concat!("SELECT 1 AS one FROM thread t WHERE t.id = $1 AND ", at_rest!());

macro_rules! family {
    () => {
        concat!(
            "SELECT ",
            thread_columns!(),
            " FROM thread WHERE id = $1 OR root_id = $1 ORDER BY id"
        )
    };
}

/// The file is the thread's from here on, unless it took so long to write that it is to be removed.
const TAKE_NAME: &str = "DELETE FROM archive_file WHERE name = $1 AND NOT is_over";

/// The token rises, so that no process writes that knew the thread before.
const MARK: &str =
    "UPDATE thread SET archived = $2, fence = fence + 1 WHERE id = $1 OR root_id = $1";

const CLEAR: &str =
    "UPDATE thread SET archived = NULL, returned_at = {now} WHERE id = $1 OR root_id = $1";

const GIVE_UP: &str = "INSERT INTO archive_file (name, thread_id, tenant, since, is_over)
     SELECT archived, id, tenant, {now}, true FROM thread WHERE id = $1 AND archived IS NOT NULL";

/// No file of a deleted thread stays. One that a process is writing is removed by that process, or by a sweep.
const GIVE_UP_ALL: &str = "UPDATE archive_file SET is_over = true,
        since = CASE WHEN is_over THEN $2 ELSE since END
     WHERE thread_id = $1";

const EXPIRE: &str =
    "UPDATE archive_file SET is_over = true WHERE NOT is_over AND since < {before}";

const OVER: &str = "SELECT name FROM archive_file WHERE is_over AND since < {before} LIMIT 1000";

const OF_DELETED: &str = "SELECT name FROM archive_file WHERE thread_id = $1 AND since = $2";

const FORGET: &str = "DELETE FROM archive_file WHERE name = $1";

#[async_trait]
impl<B: Backend> Archiving for B {
    async fn archivable(
        &self,
        before: DateTime<Utc>,
        (at, id): (DateTime<Utc>, ThreadId),
        limit: u32,
    ) -> Result<Vec<(DateTime<Utc>, ThreadId)>> {
        let find = query(ARCHIVABLE).binds((before, at, id.0, limit));
        let rows = self.database().fetch_all(&find).await?;
        rows.iter().map(|row| Ok((row.get("rested_at")?, ThreadId(row.get("id")?)))).collect()
    }

    async fn archive(&self, thread: ThreadId, before: DateTime<Utc>) -> Result<bool> {
        let Some(archive) = self.archive_files() else { return Ok(false) };
        let database = self.database();
        let name = Archive::name(thread);
        let note = worded(database.dialect(), NOTE, &[NOW]);
        if database.execute(&note.binds((thread.0, &name, before, now()))).await? == 0 {
            return Ok(false);
        }
        let dump = async {
            archive.write(&name, transfer::export(self, thread, Form::Archive).await?).await
        };
        let moved = match wrap(Point::ArchiveWrite, dump).await {
            Ok(dump) => wrap(Point::ArchiveCommit, move_out(database, &name, &dump)).await,
            Err(error) => Err(error),
        };
        match moved {
            Ok(()) => {
                self.states().forget(thread);
                Ok(true)
            }
            // If the reply to the last commit was lost, the thread may have the file.
            Err(error @ Error::Database(_)) => Err(error),
            Err(error) => {
                remove(database, archive, &name).await;
                if error.is_of_another_writer() { Ok(false) } else { Err(error) }
            }
        }
    }

    async fn sweep_archive(&self) -> Result<u64> {
        let Some(archive) = self.archive_files() else { return Ok(0) };
        let database = self.database();
        let before = ("{before}", "$2 - $1", "now() - $1 * interval '1 microsecond'");
        let old = |statement, than: i64| {
            worded(database.dialect(), statement, &[before]).binds((than, now()))
        };
        database.execute(&old(EXPIRE, WRITTEN_FOR).repeatable()).await?;
        remove_all(database, archive, &old(OVER, STAYS)).await
    }
}

/// Brings a thread back, unless another process has just done so.
pub(super) async fn bring_back(store: &impl Backend, top: ThreadId) -> Result<()> {
    let database = store.database();
    let Some(archive) = store.archive_files() else { return Ok(()) };
    let Some(name) = info(database, top).await?.info.archived else { return Ok(()) };
    let dump = match archive.read(&name, top).await {
        Ok(dump) => dump,
        Err(error) => {
            // Another process may have brought the thread back, or deleted it.
            let is_archived = info(database, top).await?.info.archived == Some(name);
            return if is_archived { Err(error) } else { Ok(()) };
        }
    };
    wrap(Point::ArchiveReturn, move_in(database, top, &name, &dump)).await?;
    tracing::info!(thread = %top, file = name, "brought a thread back from the archive");
    Ok(())
}

/// Removes the files of a thread that was deleted; if that fails, a sweep does it later.
pub(super) async fn remove_of(store: &impl Backend, thread: ThreadId) {
    let Some(archive) = store.archive_files() else { return };
    let found = of_thread(thread, OF_DELETED).bind(DateTime::UNIX_EPOCH);
    if let Err(error) = remove_all(store.database(), archive, &found).await {
        tracing::warn!(%error, %thread, "could not remove the files of a deleted thread; trying again later");
    }
}

async fn remove_all(database: &Database, archive: &Archive, found: &Query) -> Result<u64> {
    let mut removed = 0;
    for row in database.fetch_all(found).await? {
        let name = row.get::<String>("name")?;
        let is_gone = wrap(Point::ArchiveRemove, remove(database, archive, &name)).await;
        removed += u64::from(is_gone);
    }
    Ok(removed)
}

/// Removes a file that no thread names, and then the note of it; if that fails, a sweep does it later.
async fn remove(database: &Database, archive: &Archive, name: &str) -> bool {
    let forget = query(FORGET).bind(name).repeatable();
    let removed: Result<_, Cause> = match archive.remove(name).await {
        Ok(()) => database.execute(&forget).await.map_err(Cause::from),
        Err(error) => Err(error.into()),
    };
    if let Err(error) = &removed {
        tracing::warn!(%error, file = name, "could not remove a file of the archive; trying again later");
    }
    removed.is_ok()
}

/// Deletes the rows of a thread that a file has, if they are as they were read.
async fn move_out(database: &Database, name: &str, dump: &ThreadDump) -> Result<()> {
    let mut transaction = database.begin_long().await?;
    let thread = dump.info.id;
    let moved = ThreadAccess { transaction: &mut transaction, thread }.move_out(name, dump).await;
    transaction.settle(moved).await
}

async fn move_in(
    database: &Database,
    thread: ThreadId,
    name: &str,
    dump: &ThreadDump,
) -> Result<()> {
    let mut transaction = database.begin_long().await?;
    let moved = ThreadAccess { transaction: &mut transaction, thread }.move_in(name, dump).await;
    transaction.settle(moved).await
}

impl ThreadAccess<'_, '_> {
    async fn move_out(&mut self, name: &str, dump: &ThreadDump) -> Result<()> {
        let family = self.family().await?;
        let is_as_read = |one: &ThreadDump| {
            let row = family.get(&one.info.id);
            row.is_some_and(|row| row.info == one.info && row.base == one.base())
        };
        let is_at_rest =
            self.transaction.fetch_optional(&of_thread(self.thread, IS_AT_REST)).await?;
        if is_at_rest.is_none()
            || family.len() != dump.family().count()
            || !dump.family().all(is_as_read)
            || self.transaction.execute(&query(TAKE_NAME).bind(name)).await? == 0
        {
            return Err(Error::Moved { thread: self.thread });
        }
        self.transaction.execute(&of_thread(self.thread, MARK).bind(name)).await?;
        for statement in removal::DELETE_CONTENTS {
            self.transaction.execute(&of_thread(self.thread, statement).bind(true)).await?;
        }
        Ok(())
    }

    /// Writes the rows of a thread from its file; if another process has done so, nothing.
    async fn move_in(&mut self, name: &str, dump: &ThreadDump) -> Result<()> {
        let family = self.family().await?;
        let top = family.get(&self.thread).ok_or(Error::UnknownThread(self.thread))?;
        if top.info.archived.as_deref() != Some(name) {
            return Ok(());
        }
        let is_of_row = |one: &ThreadDump| {
            let row = family.get(&one.info.id);
            row.is_some_and(|row| row.info.head == one.info.head && row.base == one.base())
        };
        if family.len() != dump.family().count() || !dump.family().all(is_of_row) {
            let reason = "it is of another thread, or of another time";
            return Err(Error::archived(self.thread, name, reason));
        }
        transfer::write_family(self.transaction, dump, false).await?;
        self.give_up_file().await?;
        let clear = worded(self.transaction.dialect(), CLEAR, &[("{now}", "$2", "now()")]);
        self.transaction.execute(&clear.bind(self.thread.0).bind(now())).await?;
        Ok(())
    }

    /// Notes that the file of a thread, if it has one, is to be removed later.
    async fn give_up_file(&mut self) -> Result<()> {
        let give_up = worded(self.transaction.dialect(), GIVE_UP, &[("{now}", "$2", "now()")]);
        self.transaction.execute(&give_up.bind(self.thread.0).bind(now())).await?;
        Ok(())
    }

    /// Notes that all files of a thread are to be removed.
    pub(super) async fn give_up_files(&mut self) -> Result<()> {
        self.give_up_file().await?;
        let all = of_thread(self.thread, GIVE_UP_ALL).bind(DateTime::UNIX_EPOCH);
        self.transaction.execute(&all).await?;
        Ok(())
    }

    /// Locks the rows of a thread and of its subgraphs' threads.
    async fn family(&mut self) -> Result<BTreeMap<ThreadId, ThreadRow>> {
        let family = locking!(self.transaction.dialect(), " FOR UPDATE", family!());
        let rows = self.transaction.fetch_all(&of_thread(self.thread, family)).await?;
        let rows = rows.iter().map(decode::thread);
        rows.map(|row| row.map(|row| (row.info.id, row))).collect()
    }
}

fn of_thread(thread: ThreadId, statement: &'static str) -> Query {
    query(statement).bind(thread.0)
}
