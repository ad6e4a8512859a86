//! Whole threads, out and in: as many rows to a statement as a message bears.

use async_trait::async_trait;
use perihelion_database::{self as database, Dialect, Query, Transaction, query};
use sqlx::AssertSqlSafe;

use super::super::blobs::{in_order, keep_named};
use super::super::dump::Form;
use super::super::limits::{big, text};
use super::super::{
    EffectRow, Error, Result, SnapshotRow, StepRow, ThreadDump, Transfer, chain, checksum, family,
};
use super::decode::{self, ThreadRow, effect_columns};
use super::effects::{self, ALL, bind_effect};
use super::steps::{bind_snapshot, insert_snapshot, insert_step};
use super::{Backend, ThreadAccess, leases, with_rows};
use crate::ids::ThreadId;

#[async_trait]
impl<B: Backend> Transfer for B {
    /// Reads a thread and its subgraphs' threads as they are at one moment, and checks its hash chain.
    async fn export(&self, thread: ThreadId) -> Result<ThreadDump> {
        with_rows(self, || export(self, thread, Form::Thread)).await
    }

    /// Checks the hash chain of a thread, and then writes it with its subgraphs' threads in one transaction.
    async fn import(&self, dump: &ThreadDump) -> Result<()> {
        family::check_import(dump)?;
        chain::verify(dump)?;
        let mut transaction = self.database().begin_long().await?;
        let written = write_family(&mut transaction, dump, true).await;
        transaction.settle(written).await
    }
}

/// Reads a thread of which the rows are in the database.
pub(super) async fn export(
    store: &impl Backend,
    thread: ThreadId,
    form: Form,
) -> Result<ThreadDump> {
    let mut transaction = store.database().begin_reading().await?;
    let dump = ThreadAccess { transaction: &mut transaction, thread }.read_family(form).await;
    let dump = transaction.settle(dump).await?;
    chain::verify_as(form, &dump)?;
    family::check_family(store, &family::members(&dump)).await?;
    Ok(dump)
}

const CHILDREN: &str = "SELECT id FROM thread WHERE root_id = $1 ORDER BY namespace, id";

impl ThreadAccess<'_, '_> {
    async fn read_family(&mut self, form: Form) -> Result<ThreadDump> {
        let mut dump = self.read_one(form).await?;
        for child in self.transaction.fetch_all(&query(CHILDREN).bind(self.thread.0)).await? {
            let thread = ThreadId(child.get("id")?);
            let mut child = ThreadAccess { transaction: &mut *self.transaction, thread };
            dump.children.push(child.read_one(form).await?);
        }
        dump.blobs = self.all_blobs().await?;
        keep_named(&mut dump)?;
        Ok(dump)
    }

    async fn read_one(&mut self, form: Form) -> Result<ThreadDump> {
        let thread = self.thread;
        let ThreadRow { info, base } = self.read().await?;
        let info = info.present()?;
        self.check_end().await?;
        let snapshot = if base == 0 { None } else { self.newest_snapshot(base).await? };
        let steps = self.steps(base, info.head).await?;
        let returned = self.later_snapshots(base, &steps, form).await?;
        let pending = self.pending(info.head + 1).await?;
        let counted = self.transaction.fetch_all(&effects::counts(thread, ALL)).await?;
        let effects = self.transaction.fetch_all(&effects::effects(thread, ALL)).await?;
        let runs = self.transaction.fetch_all(&leases::runs(thread)).await?;
        Ok(ThreadDump {
            info,
            snapshot,
            returned,
            steps,
            pending,
            effects: decode::effects(thread, &counted, &effects)?,
            runs: runs.iter().map(decode::run).collect::<Result<_, _>>()?,
            blobs: Vec::new(),
            children: Vec::new(),
        })
    }

    /// Reads the states that the returns to earlier steps produced, if steps were dropped: those steps may be among them.
    /// A thread that comes back from the archive opens from its newest snapshot, as before.
    async fn later_snapshots(
        &mut self,
        base: u64,
        steps: &[StepRow],
        form: Form,
    ) -> Result<Vec<SnapshotRow>> {
        let is_archived = form == Form::Archive;
        let head = steps.last().filter(|_| base > 0 || is_archived).map(|step| step.seq);
        let Some(head) = head else { return Ok(Vec::new()) };
        let there = self.snapshots_between(base, head).await?;
        let returns: &[StepRow] = if base == 0 { &[] } else { steps };
        let mut wanted = chain::of_returns(returns, &there);
        wanted.extend(there.last().filter(|_| is_archived));
        let mut snapshots = Vec::new();
        for seq in wanted {
            snapshots.extend(self.newest_snapshot(seq).await?);
        }
        Ok(snapshots)
    }
}

const THREAD: &str = "INSERT INTO thread (id, root_id, head, base, fence, created_at, updated_at,
        runs, status, graph, title, namespace, tenant, error)
     VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14)";

const STEPS: &str = concat!(insert_step!(), "VALUES {}");

const SNAPSHOTS: &str = concat!(insert_snapshot!(), "VALUES {}");

const PENDING: &str =
    "INSERT INTO pending (thread_id, step, task, codec, body, checksum) VALUES {}";

const EFFECTS: &str = concat!("INSERT INTO effect (thread_id, ", effect_columns!(), ") VALUES {}");

const RUNS: &str = "INSERT INTO run (thread_id, id, number, status, started_at, ended_at, finish_reason) VALUES {}";

/// Of a text that is there already the earlier step counts.
const BLOBS: &str = "INSERT INTO blob (thread_id, hash, step, codec, body) VALUES {}
     ON CONFLICT (thread_id, hash) DO UPDATE SET step = excluded.step
        WHERE blob.step > excluded.step";

/// SQLite counts by a trigger as they come.
const COUNT_EFFECTS: &str = "INSERT INTO effect_count (thread_id, step, task, effects)
     SELECT thread_id, step, task, count(*) FROM effect WHERE thread_id = $1
     GROUP BY thread_id, step, task";

/// Writes the rows of a thread and of its subgraphs' threads; those of the threads themselves and their runs if they are
/// new.
pub(super) async fn write_family(
    transaction: &mut Transaction<'_>,
    dump: &ThreadDump,
    is_new: bool,
) -> Result<()> {
    for one in dump.family() {
        write_one(transaction, one, is_new).await.map_err(|error| {
            if error.is_duplicate() { Error::ThreadExists(one.info.id) } else { error.into() }
        })?;
    }
    let blobs = in_order(&dump.blobs);
    let written = write_all(
        transaction,
        BLOBS,
        &blobs,
        |row| row.body.bytes.len(),
        |query, row| {
            query
                .binds((row.owner.0, &row.hash[..], big(row.step), row.body.codec as i16))
                .bind(&row.body.bytes[..])
        },
    );
    Ok(written.await?)
}

async fn write_one(
    transaction: &mut Transaction<'_>,
    dump: &ThreadDump,
    is_new: bool,
) -> Result<(), database::Error> {
    let id = dump.info.id.0;
    if is_new {
        write_thread(transaction, dump).await?;
    }
    let steps = write_all(
        transaction,
        STEPS,
        &dump.steps,
        |step| step.delta.bytes.len() + step.frontier.len(),
        |query, step| {
            query
                .binds((id, step.run.0, big(step.seq), step.at, step.schema_version as i32))
                .binds((step.delta.codec as i16, step.kind.as_str(), &step.hash[..]))
                .binds((&step.frontier[..], &step.delta.bytes[..]))
        },
    );
    steps.await?;
    let snapshots: Vec<_> = dump.snapshot.iter().chain(&dump.returned).collect();
    let written = write_all(
        transaction,
        SNAPSHOTS,
        &snapshots,
        |snapshot| snapshot.state.bytes.len(),
        |query, snapshot| bind_snapshot(query.bind(id), snapshot),
    );
    written.await?;
    write_journal(transaction, dump).await
}

async fn write_thread(
    transaction: &mut Transaction<'_>,
    dump: &ThreadDump,
) -> Result<(), database::Error> {
    let id = dump.info.id.0;
    transaction.execute(&thread(dump)).await?;
    let runs = write_all(
        transaction,
        RUNS,
        &dump.runs,
        |_| 0,
        |query, run| {
            query
                .binds((id, run.id.0, run.number as i32, run.status.as_str(), run.started_at))
                .binds((run.ended_at, run.finish_reason.as_deref().map(text)))
        },
    );
    runs.await
}

fn thread(dump: &ThreadDump) -> Query {
    let info = &dump.info;
    let (status, error) = info.imported();
    let runs = dump.runs.iter().map(|run| run.number).max().unwrap_or(0);
    query(THREAD)
        .binds((info.id.0, info.root.map(|id| id.0), big(info.head)))
        .binds((big(dump.base()), big(info.fence)))
        .binds((info.created_at, info.updated_at, runs as i32, status.as_str(), text(&info.graph)))
        .binds((info.title.as_deref().map(text), text(&info.namespace), text(&info.tenant)))
        .bind(error.map(text))
}

async fn write_journal(
    transaction: &mut Transaction<'_>,
    dump: &ThreadDump,
) -> Result<(), database::Error> {
    let id = dump.info.id.0;
    let pending = write_all(
        transaction,
        PENDING,
        &dump.pending,
        |row| row.body.bytes.len(),
        |query, row| {
            query
                .binds((id, big(row.step), row.task as i32, row.body.codec as i16))
                .binds((&row.body.bytes[..], &checksum::pending(row)[..]))
        },
    );
    pending.await?;
    let size = |row: &EffectRow| {
        row.request.bytes.len() + row.outcome.as_ref().map_or(0, |outcome| outcome.bytes.len())
    };
    let bind = |query: Query, row: &EffectRow| bind_effect(query.bind(id), dump.info.id, row);
    write_all(transaction, EFFECTS, &dump.effects, size, bind).await?;
    if transaction.dialect() == Dialect::Postgres {
        transaction.execute(&query(COUNT_EFFECTS).bind(id)).await?;
    }
    Ok(())
}

/// Bytes that one statement of an import contains; a longer row has a separate statement.
const TOGETHER: usize = 4 << 20;

/// Rows of one statement, however small they are: with 17 columns each, well below what either database takes of parameters.
const MOST: usize = 512;

/// Writes all rows of one table; `size` is about how many bytes one has, `bind` adds its columns.
async fn write_all<T>(
    transaction: &mut Transaction<'_>,
    insert: &str,
    rows: &[T],
    size: impl Fn(&T) -> usize,
    bind: impl Fn(Query, &T) -> Query,
) -> Result<(), database::Error> {
    for these in parts(rows, size) {
        let insert = query(AssertSqlSafe(of_rows(insert, these.len()))).unprepared();
        transaction.execute(&these.iter().fold(insert, &bind)).await?;
    }
    Ok(())
}

/// Returns the statement for a number of rows, each with the columns between its first brackets.
fn of_rows(insert: &str, rows: usize) -> String {
    let named = insert.split_once(')').map_or(insert, |(named, _)| named);
    insert.replace("{}", &effects::places(1, rows, named.matches(',').count() + 1))
}

/// Splits rows into the parts of separate statements.
fn parts<T>(mut rows: &[T], size: impl Fn(&T) -> usize) -> impl Iterator<Item = &[T]> {
    std::iter::from_fn(move || {
        let mut bytes = 0;
        let beyond = rows.iter().take(MOST).position(|row| {
            bytes += size(row);
            bytes > TOGETHER
        });
        let end = beyond.unwrap_or(rows.len().min(MOST)).max(1);
        let (these, rest) = rows.split_at_checked(end)?;
        rows = rest;
        Some(these)
    })
}
