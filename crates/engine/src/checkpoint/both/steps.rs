//! Reading steps and texts, a fork's shared ones included, and keeping snapshots.

use async_trait::async_trait;
use perihelion_database::{Database, Dialect, Query, Row, query};

use super::super::chain::{not_beyond, verified};
use super::super::limits::big;
use super::super::{
    BlobRow, Commit, Encoded, Error, Fence, Loaded, PendingRow, Result, SnapshotRow, StateCache,
    StepRow, Steps, checksum,
};
use super::decode::{self, blob_columns, snapshot_columns, step_columns};
use super::leases::explain;
use super::{Backend, ThreadAccess, info, present, with_rows, worded};
use crate::ids::ThreadId;

/// The thread $1 and those it was forked from, each with the last step up to $2 that counts in it.
///
/// Own steps begin after `parent_seq`, so no step is found twice.
macro_rules! line {
    () => {
        line!("JOIN thread t ON t.id = l.id WHERE t.parent_id IS NOT NULL")
    };
    // Postgres expects a hundred origins, and would read whole tables to join them, in the plan that it keeps. It makes
    // a lateral query with an offset for each origin.
    (postgres) => {
        line!("CROSS JOIN LATERAL (SELECT * FROM thread WHERE id = l.id AND parent_id IS NOT NULL OFFSET 0) t")
    };
    ($origin:literal) => {
        concat!(
            "WITH RECURSIVE line (id, upto) AS (
                SELECT id, CASE WHEN head < $2 THEN head ELSE $2 END FROM thread WHERE id = $1
                UNION ALL
                SELECT t.parent_id, CASE WHEN l.upto < t.parent_seq THEN l.upto ELSE t.parent_seq END
                FROM line l ",
            $origin,
            ")"
        )
    };
}
pub(in super::super) use line;

/// The thread, the one at the top, and their origins: the owners of texts that it may reference.
macro_rules! owners {
    ($statement:literal) => {
        concat!(
            "WITH RECURSIVE owner (id) AS (
                SELECT $1
                UNION
                SELECT next.id FROM owner o CROSS JOIN thread t CROSS JOIN thread next
                WHERE t.id = o.id AND next.id IN (t.root_id, t.parent_id)
             ) SELECT ",
            blob_columns!(),
            " FROM owner CROSS JOIN blob WHERE blob.thread_id = owner.id ",
            $statement
        )
    };
}

#[async_trait]
impl<B: Backend> Steps for B {
    async fn commit(&self, commit: &Commit) -> Result<()> {
        Backend::commit(self, commit).await
    }

    async fn save_pending(&self, fence: Fence, row: &PendingRow, blobs: &[BlobRow]) -> Result<()> {
        let database = self.database();
        let saved = if blobs.is_empty() {
            database.execute(&saving(database.dialect(), fence, row).repeatable()).await?
        } else {
            self.save_with(fence, row, blobs).await?
        };
        if saved == 0 {
            // Refused, or already there: then the first one stands.
            let head = explain(database, fence).await?.head;
            if head + 1 != row.step {
                return Err(Error::Conflict { thread: fence.thread, seq: row.step, head });
            }
        }
        Ok(())
    }

    async fn load(&self, thread: ThreadId, at: Option<u64>) -> Result<Loaded> {
        with_rows(self, || Backend::load(self, thread, at, None)).await
    }

    async fn load_since(&self, thread: ThreadId, since: u64, at: Option<u64>) -> Result<Loaded> {
        with_rows(self, || Backend::load(self, thread, at, Some(since))).await
    }

    fn state_cache(&self) -> &StateCache {
        self.states()
    }

    async fn history(
        &self,
        thread: ThreadId,
        before: Option<u64>,
        limit: u32,
    ) -> Result<Vec<StepRow>> {
        with_rows(self, || history(self.database(), thread, before, limit)).await
    }

    /// The row of a thread stays locked while it is deleted or truncated: then the commit writes no row.
    async fn put_snapshot(&self, thread: ThreadId, snapshot: &SnapshotRow) -> Result<()> {
        let database = self.database();
        let put = worded(database.dialect(), PUT_SNAPSHOT, &[("{lock}", "", "FOR KEY SHARE")]);
        let put = bind_snapshot(put.bind(thread.0), snapshot).repeatable();
        with_rows(self, || async {
            if database.execute(&put).await? == 0 {
                let head = info(database, thread).await?.info.present()?.head;
                if snapshot.seq > head {
                    return Err(Error::UnknownStep { thread, seq: snapshot.seq, head });
                }
            }
            Ok(())
        })
        .await
    }

    async fn blob(&self, thread: ThreadId, hash: &[u8; 32]) -> Result<Option<BlobRow>> {
        let find = query(owners!("AND hash = $2 LIMIT 1")).bind(thread.0).bind(&hash[..]);
        with_rows(self, || async {
            let row = self.database().fetch_optional(&find).await?;
            if row.is_none() {
                present(self.database(), thread).await?;
            }
            row.as_ref().map(decode::blob).transpose()
        })
        .await
    }
}

async fn history(
    database: &Database,
    thread: ThreadId,
    before: Option<u64>,
    limit: u32,
) -> Result<Vec<StepRow>> {
    let newest = match before {
        None => {
            let row = database.fetch_optional(&query(NEWEST).bind(thread.0)).await?;
            Some(newest(thread, row)?)
        }
        Some(_) => None,
    };
    let upto = before.map_or(i64::MAX, |before| big(before.saturating_sub(1)));
    let history =
        query(history_of(database.dialect())).binds((thread.0, upto, i64::from(limit) + 1));
    let rows = database.fetch_all(&history).await?;
    if rows.is_empty() {
        present(database, thread).await?;
    }
    let steps: Vec<StepRow> = rows.iter().map(decode::step).collect::<Result<_, _>>()?;
    if let Some((head, base)) = newest.filter(|_| limit > 0) {
        let reached = steps.first().map_or(base, |step| step.seq);
        if reached < head {
            return Err(Error::missing(thread, reached + 1));
        }
    }
    verified(thread, steps, limit)
}

/// The end of a thread, the step up to which its steps were dropped, and a step beyond its end.
const NEWEST: &str = "SELECT head, base, (SELECT min(seq) FROM step WHERE thread_id = thread.id AND seq > head) AS beyond
     FROM thread WHERE id = $1";

/// Reads the end of a thread, and the step up to which its steps were dropped; an error for steps beyond the end.
fn newest(thread: ThreadId, row: Option<Row>) -> Result<(u64, u64)> {
    let row = row.ok_or(Error::UnknownThread(thread))?;
    not_beyond(thread, row.get("beyond")?)?;
    Ok((row.get("head")?, row.get("base")?))
}

/// Selects rows of a table from a thread and its origins.
macro_rules! on_line {
    ($dialect:expr, $columns:expr, $table:literal, $bounds:literal, $order:literal) => {
        $dialect.pick(
            concat!(
                line!(),
                " SELECT ",
                $columns,
                " FROM line CROSS JOIN ",
                $table,
                " s WHERE s.thread_id = line.id AND ",
                $bounds,
                $order
            ),
            concat!(
                line!(postgres),
                " SELECT ",
                $columns,
                " FROM line CROSS JOIN LATERAL (SELECT * FROM ",
                $table,
                " s WHERE s.thread_id = line.id AND ",
                $bounds,
                " OFFSET 0) s",
                $order
            ),
        )
    };
}

fn snapshot(dialect: Dialect) -> &'static str {
    on_line!(
        dialect,
        snapshot_columns!(),
        "snapshot",
        "s.seq = (SELECT max(seq) FROM snapshot WHERE thread_id = line.id AND seq <= line.upto)",
        " ORDER BY s.seq DESC LIMIT 1"
    )
}

fn snapshots_between(dialect: Dialect) -> &'static str {
    on_line!(
        dialect,
        "DISTINCT s.seq",
        "snapshot",
        "s.seq > $3 AND s.seq <= line.upto",
        " ORDER BY s.seq"
    )
}

fn steps(dialect: Dialect) -> &'static str {
    on_line!(dialect, step_columns!(), "step", "s.seq > $3 AND s.seq <= line.upto", " ORDER BY seq")
}

/// Step numbers have no gaps, so the last N steps are the ones above head minus N.
fn history_of(dialect: Dialect) -> &'static str {
    on_line!(
        dialect,
        step_columns!(),
        "step",
        "s.seq <= line.upto AND s.seq > (SELECT max(upto) FROM line) - $3",
        " ORDER BY seq DESC LIMIT $3"
    )
}

const PENDING: &str = "SELECT step AS seq, task, codec, body, checksum FROM pending
     WHERE thread_id = $1 AND step = $2 ORDER BY task";

/// Postgres locks the thread's row in share mode first, as for effects.
macro_rules! save_pending {
    ($lock:literal) => {
        concat!(
            "INSERT INTO pending (thread_id, step, task, codec, body, checksum)
             SELECT id, $3, $4, $5, $6, $7 FROM thread
             WHERE id = $1 AND fence = $2 AND head = $3 - 1",
            $lock,
            " ON CONFLICT DO NOTHING"
        )
    };
}

/// Stores the write of a task of an incomplete step, if the claim and the head are current.
pub(in super::super) fn saving(dialect: Dialect, fence: Fence, row: &PendingRow) -> Query {
    query(dialect.pick(save_pending!(""), save_pending!(" FOR SHARE")))
        .binds((fence.thread.0, big(fence.token), big(row.step), row.task as i32))
        .binds((row.body.codec as i16, &row.body.bytes[..], &checksum::pending(row)[..]))
}

/// Begins a statement that inserts whole steps.
macro_rules! insert_step {
    () => {
        "INSERT INTO step
            (thread_id, run, seq, at, schema_version, codec, kind, hash, frontier, delta) "
    };
}
pub(super) use insert_step;

/// Begins a statement that inserts snapshots, with the columns that [`bind_snapshot`] binds.
macro_rules! insert_snapshot {
    () => {
        "INSERT INTO snapshot
            (thread_id, seq, schema_version, codec, state, checksum, blobs_codec, blobs) "
    };
}
pub(super) use insert_snapshot;

const PUT_SNAPSHOT: &str = concat!(
    insert_snapshot!(),
    "SELECT id, $2, $3, $4, $5, $6, $7, $8 FROM thread
     WHERE id = $1 AND head >= $2 AND base <= $2 AND archived IS NULL {lock} ON CONFLICT DO NOTHING"
);

/// Binds a snapshot's columns after its thread.
pub(super) fn bind_snapshot(query: Query, snapshot: &SnapshotRow) -> Query {
    query
        .binds((big(snapshot.seq), snapshot.schema_version as i32, snapshot.state.codec as i16))
        .binds((&snapshot.state.bytes[..], &checksum::snapshot(snapshot)[..]))
        .binds(Encoded::columns(snapshot.blobs.as_ref()))
}

impl ThreadAccess<'_, '_> {
    pub(in super::super) async fn newest_snapshot(
        &mut self,
        upto: u64,
    ) -> Result<Option<SnapshotRow>> {
        let snapshot =
            query(snapshot(self.transaction.dialect())).bind(self.thread.0).bind(big(upto));
        let row = self.transaction.fetch_optional(&snapshot).await?;
        row.as_ref().map(|row| decode::snapshot(self.thread, row)).transpose()
    }

    /// Lists the steps after `after` up to `upto` that have a snapshot, in order.
    pub(super) async fn snapshots_between(&mut self, after: u64, upto: u64) -> Result<Vec<u64>> {
        let between = query(snapshots_between(self.transaction.dialect()));
        let between = between.bind(self.thread.0).bind(big(upto)).bind(big(after));
        let rows = self.transaction.fetch_all(&between).await?;
        rows.iter().map(|row| Ok(row.get("seq")?)).collect()
    }

    /// Reads steps after `after` up to `upto`, oldest first.
    pub(in super::super) async fn steps(&mut self, after: u64, upto: u64) -> Result<Vec<StepRow>> {
        let steps = query(steps(self.transaction.dialect()));
        let steps = steps.bind(self.thread.0).bind(big(upto)).bind(big(after));
        self.transaction.fetch_all(&steps).await?.iter().map(decode::step).collect()
    }

    pub(in super::super) async fn pending(&mut self, step: u64) -> Result<Vec<PendingRow>> {
        let pending = query(PENDING).bind(self.thread.0).bind(big(step));
        let rows = self.transaction.fetch_all(&pending).await?;
        rows.iter().map(|row| decode::pending(self.thread, row)).collect()
    }

    /// Rejects a thread that has steps beyond its head.
    pub(super) async fn check_end(&mut self) -> Result<()> {
        let row = self.transaction.fetch_optional(&query(NEWEST).bind(self.thread.0)).await?;
        newest(self.thread, row).map(drop)
    }

    pub(super) async fn all_blobs(&mut self) -> Result<Vec<BlobRow>> {
        let all = query(owners!("ORDER BY step, hash")).bind(self.thread.0);
        self.transaction.fetch_all(&all).await?.iter().map(decode::blob).collect()
    }
}
