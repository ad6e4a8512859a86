//! Deleting and shortening threads without taking history from their forks.

use perihelion_database::{Database, query};

use super::super::limits::big;
use super::super::{Error, Result, ThreadInfo};
use super::steps::{insert_snapshot, insert_step};
use super::{Backend, ThreadAccess, archive, locking, with_rows};
use crate::graph::subgraph_step;
use crate::ids::ThreadId;

/// The thread $1, and with $2 its subgraphs' threads.
macro_rules! doomed {
    () => {
        "SELECT id FROM thread WHERE (id = $1 OR ($2 AND root_id = $1))"
    };
}

/// Walks from each fork of the threads to delete through them, and ends at the first thread that stays.
macro_rules! line {
    ($statement:expr) => {
        concat!(
            "WITH RECURSIVE doomed (id) AS (",
            doomed!(),
            "), line (fork, id, upto) AS (
                SELECT id, parent_id, parent_seq FROM thread
                WHERE parent_id IN (SELECT id FROM doomed) AND id NOT IN (SELECT id FROM doomed)
                UNION ALL
                SELECT l.fork, t.parent_id,
                    CASE WHEN l.upto < t.parent_seq THEN l.upto ELSE t.parent_seq END
                FROM line l JOIN thread t ON t.id = l.id
                WHERE l.id IN (SELECT id FROM doomed) AND t.parent_id IS NOT NULL
             ) ",
            $statement
        )
    };
}

/// Copies the steps of a line's threads to the thread `$to`.
macro_rules! copy_steps {
    ($to:literal, $which:literal) => {
        concat!(
            insert_step!(),
            "SELECT ",
            $to,
            ", s.run, s.seq, s.at, s.schema_version, s.codec, s.kind, s.hash, s.frontier, s.delta
             FROM line l CROSS JOIN step s WHERE s.thread_id = l.id AND s.seq <= l.upto AND ",
            $which
        )
    };
}

/// Copies the snapshots of a line's threads to the thread `$to`, which keeps those that it has.
macro_rules! copy_snapshots {
    ($to:literal, $which:literal) => {
        concat!(
            insert_snapshot!(),
            "SELECT ",
            $to,
            ", s.seq, s.schema_version, s.codec, s.state, s.checksum, s.blobs_codec, s.blobs
             FROM line l CROSS JOIN snapshot s WHERE s.thread_id = l.id AND s.seq <= l.upto AND ",
            $which,
            " ON CONFLICT DO NOTHING"
        )
    };
}

/// Transfers to every fork the rows that it shares with deleted threads, and makes it a fork of their own origin, if
/// there is one.
const HAND_OVER: [&str; 4] = [
    line!(copy_steps!("l.fork", "l.id IN (SELECT id FROM doomed)")),
    line!(copy_snapshots!("l.fork", "l.id IN (SELECT id FROM doomed)")),
    // The steps of a subgraph's thread have numbers of their own: then all texts that there are. One that several
    // of them keep is handed over once.
    line!(
        ", shared AS (
            SELECT coalesce(f.root_id, f.id) AS owner, b.hash, b.step, b.codec, b.body,
                row_number() OVER (
                    PARTITION BY coalesce(f.root_id, f.id), b.hash ORDER BY b.step) AS place
            FROM line l CROSS JOIN thread t CROSS JOIN thread f CROSS JOIN blob b
            WHERE t.id = l.id AND f.id = l.fork AND b.thread_id = coalesce(t.root_id, t.id)
                AND (t.root_id IS NOT NULL OR b.step <= l.upto) AND l.id IN (SELECT id FROM doomed)
         )
         INSERT INTO blob (thread_id, hash, step, codec, body)
         SELECT owner, hash, step, codec, body FROM shared WHERE place = 1
         ON CONFLICT (thread_id, hash) DO UPDATE SET step = excluded.step
            WHERE blob.step > excluded.step"
    ),
    line!(
        "UPDATE thread AS f SET (parent_id, parent_seq) = (
            SELECT l.id, l.upto FROM line l
            WHERE l.fork = f.id AND l.id NOT IN (SELECT id FROM doomed)
         )
         WHERE f.id IN (SELECT fork FROM line)"
    ),
];

macro_rules! forks {
    () => {
        concat!(
            "SELECT id FROM thread WHERE parent_id IN (",
            doomed!(),
            ") AND id NOT IN (",
            doomed!(),
            ") ORDER BY id"
        )
    };
}

/// Deletes what is kept of threads beside their own rows and their runs.
pub(super) const DELETE_CONTENTS: [&str; 7] = [
    concat!("DELETE FROM step WHERE thread_id IN (", doomed!(), ")"),
    concat!("DELETE FROM snapshot WHERE thread_id IN (", doomed!(), ")"),
    concat!("DELETE FROM blob WHERE thread_id IN (", doomed!(), ")"),
    concat!("DELETE FROM effect WHERE thread_id IN (", doomed!(), ")"),
    concat!("DELETE FROM effect_count WHERE thread_id IN (", doomed!(), ")"),
    concat!("DELETE FROM pending WHERE thread_id IN (", doomed!(), ")"),
    concat!("DELETE FROM event WHERE thread_id IN (", doomed!(), ")"),
];

const DELETE_ROWS: [&str; 2] = [
    concat!("DELETE FROM run WHERE thread_id IN (", doomed!(), ")"),
    concat!("DELETE FROM thread WHERE id IN (", doomed!(), ")"),
];

/// Deletes a thread with its files in the archive; with `seen`, only while it is as it was seen.
pub(super) async fn delete(
    store: &impl Backend,
    thread: ThreadId,
    seen: Option<&ThreadInfo>,
) -> Result<()> {
    store.states().forget(thread);
    with_rows(store, || async {
        let mut transaction = store.database().begin_long().await?;
        let deleted = ThreadAccess { transaction: &mut transaction, thread }.delete(seen).await;
        transaction.settle(deleted).await
    })
    .await?;
    archive::remove_of(store, thread).await;
    Ok(())
}

impl ThreadAccess<'_, '_> {
    /// Locks the thread's row first: a process that claims it waits, and then finds it deleted.
    async fn delete(&mut self, seen: Option<&ThreadInfo>) -> Result<()> {
        let info = self.lock().await?;
        if seen.is_some_and(|seen| !info.is_as_seen(seen)) {
            return Err(Error::Moved { thread: self.thread });
        }
        if info.root.is_some() {
            // The file has the threads above it too.
            info.present()?;
        }
        self.give_up_files().await?;
        self.remove(true).await
    }

    async fn remove(&mut self, with_children: bool) -> Result<()> {
        self.hand_over(with_children).await?;
        for statement in DELETE_CONTENTS.iter().chain(&DELETE_ROWS) {
            let delete = query(*statement).bind(self.thread.0).bind(with_children);
            self.transaction.execute(&delete).await?;
        }
        Ok(())
    }

    /// Locks the threads to delete and then their forks, so that none of them is deleted, shortened or forked while
    /// rows are transferred.
    async fn hand_over(&mut self, with_children: bool) -> Result<()> {
        let thread = self.thread.0;
        let of_doomed = |statement: &'static str| query(statement).bind(thread).bind(with_children);
        let dialect = self.transaction.dialect();
        let doomed = locking!(dialect, " ORDER BY id FOR UPDATE", doomed!());
        let forks = locking!(dialect, " FOR UPDATE", forks!());
        self.transaction.fetch_all(&of_doomed(doomed)).await?;
        if self.transaction.fetch_all(&of_doomed(forks)).await?.is_empty() {
            return Ok(());
        }
        for statement in HAND_OVER {
            self.transaction.execute(&of_doomed(statement)).await?;
        }
        Ok(())
    }
}

/// Walks the threads that $1 was forked from.
macro_rules! origins {
    ($statement:expr) => {
        concat!(
            "WITH RECURSIVE line (id, upto) AS (
                SELECT parent_id, parent_seq FROM thread WHERE id = $1 AND parent_id IS NOT NULL
                UNION ALL
                SELECT t.parent_id,
                    CASE WHEN l.upto < t.parent_seq THEN l.upto ELSE t.parent_seq END
                FROM line l JOIN thread t ON t.id = l.id WHERE t.parent_id IS NOT NULL
             ) ",
            $statement
        )
    };
}

/// Gives a fork its own copies of the shared rows beyond step $2, of the snapshots from $2 on, and of all texts.
const TAKE_OVER: [&str; 3] = [
    origins!(copy_steps!("$1", "s.seq > $2")),
    origins!(copy_snapshots!("$1", "s.seq >= $2")),
    origins!(
        ", shared AS (
            SELECT b.hash, b.step, b.codec, b.body,
                row_number() OVER (PARTITION BY b.hash ORDER BY b.step) AS place
            FROM line l CROSS JOIN thread t CROSS JOIN blob b
            WHERE t.id = l.id AND b.thread_id = coalesce(t.root_id, t.id)
                AND (t.root_id IS NOT NULL OR b.step <= l.upto)
         )
         INSERT INTO blob (thread_id, hash, step, codec, body)
         SELECT (SELECT coalesce(root_id, id) FROM thread WHERE id = $1), hash, step, codec, body
         FROM shared WHERE place = 1
         ON CONFLICT (thread_id, hash) DO UPDATE SET step = excluded.step
            WHERE blob.step > excluded.step"
    ),
];

const IS_THERE: &str =
    "SELECT EXISTS (SELECT 1 FROM snapshot WHERE thread_id = $1 AND seq = $2) AS is_there";

/// The first remaining return to an earlier step without a snapshot of its state.
const BARE_RETURN: &str = "SELECT min(seq) AS seq FROM step
     WHERE thread_id = $1 AND seq > $2 AND kind = 'fork'
        AND NOT EXISTS (SELECT 1 FROM snapshot s WHERE s.thread_id = $1 AND s.seq = step.seq)";

/// The subgraphs' threads below the thread at the top.
const BELOW: &str = "SELECT id, namespace FROM thread WHERE root_id = $1 ORDER BY id";

const DROP: [&str; 5] = [
    "DELETE FROM step WHERE thread_id = $1 AND seq <= $2",
    "DELETE FROM snapshot WHERE thread_id = $1 AND seq < $2",
    "DELETE FROM effect WHERE thread_id = $1 AND step <= $2",
    "DELETE FROM effect_count WHERE thread_id = $1 AND step <= $2",
    "UPDATE thread SET base = $2, parent_id = NULL, parent_seq = NULL WHERE id = $1",
];

/// Deletes the steps before the snapshot at `seq`, with the subgraphs' threads of these steps.
pub(super) async fn truncate(database: &Database, thread: ThreadId, seq: u64) -> Result<()> {
    let mut transaction = database.begin_long().await?;
    let dropped = ThreadAccess { transaction: &mut transaction, thread }.drop_before(seq).await;
    transaction.settle(dropped).await
}

impl ThreadAccess<'_, '_> {
    async fn drop_before(&mut self, seq: u64) -> Result<()> {
        let thread = self.thread;
        let of_step = |statement: &'static str| query(statement).bind(thread.0).bind(big(seq));
        let info = self.lock().await?.present()?;
        self.hand_over(false).await?;
        let transaction = &mut *self.transaction;
        for statement in TAKE_OVER {
            transaction.execute(&of_step(statement)).await?;
        }
        let found = transaction.fetch_optional(&of_step(IS_THERE)).await?;
        let is_there = found.map_or(Ok(false), |row| row.get("is_there"))?;
        if !is_there {
            return Err(Error::UnknownStep { thread, seq, head: info.head });
        }
        let bare = transaction.fetch_optional(&of_step(BARE_RETURN)).await?;
        if let Some(seq) = bare.map_or(Ok(None), |row| row.get::<Option<i64>>("seq"))? {
            return Err(Error::BareReturn { thread, seq: seq.unsigned_abs() });
        }
        for statement in DROP {
            transaction.execute(&of_step(statement)).await?;
        }
        for child in transaction.fetch_all(&query(BELOW).bind(info.top().0)).await? {
            let step = subgraph_step(&child.get::<String>("namespace")?, &info.namespace);
            if step.is_some_and(|step| step <= seq) {
                let thread = ThreadId(child.get("id")?);
                ThreadAccess { transaction: &mut *transaction, thread }.remove(false).await?;
            }
        }
        Ok(())
    }
}
