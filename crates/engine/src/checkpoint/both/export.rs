//! Whole threads, out.

use async_trait::async_trait;
use perihelion_database::{Transaction, Value, query};

use super::{
    super::{Error, SnapshotRow, StepRow, ThreadDump, Transfer, blobs::keep_named, chain, family},
    Backend, blobs,
    decode::{self, ThreadRow},
    effects::{self, ALL},
    import, leases,
    parts::find_any,
    read,
    steps::{check_end, newest_snapshot, pending, snapshots_between, steps},
};
use crate::ids::ThreadId;

#[async_trait]
impl<B: Backend> Transfer for B {
    /// Reads a thread and its subgraphs' threads as they are at one moment, and checks its hash chain.
    async fn export(&self, thread: ThreadId) -> Result<ThreadDump, Error> {
        let mut transaction = self.database().begin_reading().await?;
        let dump = read_family(&mut transaction, thread).await;
        let dump = transaction.settle(dump).await?;
        chain::verify(&dump)?;
        Ok(dump)
    }

    /// Writes a thread and its subgraphs' threads, all or nothing, after checking its hash chain.
    async fn import(&self, dump: &ThreadDump) -> Result<(), Error> {
        chain::verify(dump)?;
        let mut transaction = self.database().begin_long().await?;
        let written = import::write_family(&mut transaction, dump).await;
        transaction.settle(written).await
    }
}

const CHILDREN: &str = "SELECT id FROM thread WHERE root_id = $1 ORDER BY namespace, id";

async fn read_family(
    transaction: &mut Transaction<'_>,
    thread: ThreadId,
) -> Result<ThreadDump, Error> {
    let mut dump = read_one(transaction, thread).await?;
    for child in transaction.fetch_all(&query(CHILDREN).bind(thread.0)).await? {
        let child = read_one(transaction, ThreadId(child.get("id")?)).await?;
        dump.children.push(child);
    }
    // The subgraphs of a subgraph name the thread at the top.
    if dump.info.root.is_none() {
        let places: Vec<_> =
            family::places(&dump).into_iter().map(|id| Value::from(id.0)).collect();
        if let Some(row) = find_any(transaction, "SELECT id FROM thread WHERE id", &places).await? {
            return Err(family::stray(&dump, ThreadId(row.get("id")?)));
        }
    }
    dump.blobs = blobs::all(transaction, thread).await?;
    keep_named(&mut dump)?;
    Ok(dump)
}

async fn read_one(
    transaction: &mut Transaction<'_>,
    thread: ThreadId,
) -> Result<ThreadDump, Error> {
    let ThreadRow { info, base } = read(transaction, thread).await?;
    check_end(transaction, thread).await?;
    let snapshot = match base {
        0 => None,
        base => newest_snapshot(transaction, thread, base).await?,
    };
    let steps = steps(transaction, thread, base, info.head).await?;
    let returned = match base {
        0 => Vec::new(),
        base => snapshots_of_returns(transaction, thread, base, &steps).await?,
    };
    let pending = pending(transaction, thread, info.head + 1).await?;
    let counted = transaction.fetch_all(&effects::counts(thread, ALL)).await?;
    let effects = transaction.fetch_all(&effects::effects(thread, ALL)).await?;
    let runs = transaction.fetch_all(&leases::runs(thread)).await?;
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

/// Reads what the returns to earlier steps came to: those steps may be among the dropped ones.
async fn snapshots_of_returns(
    transaction: &mut Transaction<'_>,
    thread: ThreadId,
    base: u64,
    steps: &[StepRow],
) -> Result<Vec<SnapshotRow>, Error> {
    let Some(head) = steps.last().map(|step| step.seq) else { return Ok(Vec::new()) };
    let there = snapshots_between(transaction, thread, base, head).await?;
    let mut snapshots = Vec::new();
    for seq in chain::of_returns(steps, &there) {
        snapshots.extend(newest_snapshot(transaction, thread, seq).await?);
    }
    Ok(snapshots)
}
