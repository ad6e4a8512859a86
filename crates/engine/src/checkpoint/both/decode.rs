//! Rows of either database as the values of the traits: the one place that names their columns and takes them apart.
//!
//! Both databases use the same table and column names; [`Row`] hides what differs in their types.

use perihelion_database::Row;
use uuid::Uuid;

use super::super::chain::{has_step, not_beyond, reached};
use super::super::checksum::{self, Counted};
use super::super::{
    Begun, BlobRow, Codec, EffectRow, Encoded, Error, EventPosition, EventRow, Loaded,
    OpenInterrupt, PendingExport, PendingRow, Result, RunRow, SnapshotRow, StepRow, ThreadInfo,
    ThreadStatus, Waiting,
};
use crate::ids::{InterruptId, RunId, ThreadId};

/// Columns that [`thread`] reads.
macro_rules! thread_columns {
    () => {
        "id, root_id, parent_id, parent_seq, head, base, fence, lease_until, created_at, updated_at, \
         status, graph, title, namespace, tenant, owner, error, archived"
    };
}
pub(in super::super) use thread_columns;

/// Columns that [`effect`] reads.
macro_rules! effect_columns {
    () => {
        "step, started_at, ended_at, task, number, attempt, request_codec, outcome_codec, kind, \
         status, name, key, request, outcome, request_sum, outcome_sum"
    };
}
pub(in super::super) use effect_columns;

/// Columns that [`run`] reads.
macro_rules! run_columns {
    () => {
        "id, number, status, finish_reason, started_at, ended_at"
    };
}
pub(in super::super) use run_columns;

/// Columns that [`step`] reads.
macro_rules! step_columns {
    () => {
        "seq, schema_version, codec, delta AS body, run, at, kind, hash, frontier"
    };
}
pub(in super::super) use step_columns;

/// Columns that [`snapshot`] reads, of the table `s`.
macro_rules! snapshot_columns {
    () => {
        "s.seq, s.schema_version, s.codec, s.state AS body, s.checksum, s.blobs_codec, s.blobs"
    };
}
pub(in super::super) use snapshot_columns;

/// Columns that [`blob`] reads.
macro_rules! blob_columns {
    () => {
        "thread_id, step, codec, hash, body"
    };
}
pub(in super::super) use blob_columns;

/// A thread's row with columns that the trait does not show.
pub(in super::super) struct ThreadRow {
    pub(in super::super) info: ThreadInfo,
    /// Steps up to this one were dropped.
    pub(in super::super) base: u64,
}

pub(in super::super) fn counted(row: &Row) -> Result<(ThreadStatus, u64)> {
    let threads = row.get::<Option<i64>>("threads")?.unwrap_or_default().unsigned_abs();
    Ok((row.get("status")?, threads))
}

pub(in super::super) fn thread(row: &Row) -> Result<ThreadRow> {
    let parent = row.get::<Option<Uuid>>("parent_id")?.zip(row.get("parent_seq")?);
    let info = ThreadInfo {
        id: ThreadId(row.get("id")?),
        graph: row.get("graph")?,
        title: row.get("title")?,
        root: row.get::<Option<_>>("root_id")?.map(ThreadId),
        namespace: row.get("namespace")?,
        tenant: row.get("tenant")?,
        head: row.get("head")?,
        status: row.get("status")?,
        error: row.get("error")?,
        fence: row.get("fence")?,
        owner: row.get("owner")?,
        lease_until: row.get("lease_until")?,
        forked_from: parent.map(|(id, seq)| (ThreadId(id), seq)),
        created_at: row.get("created_at")?,
        updated_at: row.get("updated_at")?,
        archived: row.get("archived")?,
    };
    Ok(ThreadRow { info, base: row.get("base")? })
}

/// Puts the rows together that restore a thread, each with its `part`: a snapshot (0), steps (1), pending writes (2), and the
/// thread with its first step that the head has not reached (3).
///
/// # Errors
/// [`Error::UnknownThread`] without the row of the thread, [`Error::UnknownStep`] if it does not have the step `at`.
pub(in super::super) fn loaded(
    thread: ThreadId,
    at: Option<u64>,
    after: Option<u64>,
    rows: &[Row],
) -> Result<Loaded> {
    let mut found = None;
    let mut snapshot = None;
    let mut steps = Vec::with_capacity(rows.len());
    let mut pending = Vec::new();
    for row in rows {
        match row.get::<i64>("part")? {
            0 => snapshot = Some(self::snapshot(thread, row)?),
            1 => steps.push(step(row)?),
            2 => pending.push(self::pending(thread, row)?),
            _ => found = Some((self::thread(row)?, row.get("beyond")?)),
        }
    }
    let (ThreadRow { info, base }, beyond) = found.ok_or(Error::UnknownThread(thread))?;
    let info = info.present()?;
    let at = at.unwrap_or(info.head);
    has_step(&info, base, at)?;
    not_beyond(thread, beyond)?;
    steps.sort_unstable_by_key(|step| step.seq);
    pending.sort_unstable_by_key(|row: &PendingRow| row.task);
    let after = after.or(snapshot.as_ref().map(|snapshot| snapshot.seq)).unwrap_or_default();
    reached(thread, after, &steps, at)?;
    Ok(Loaded { info, snapshot, steps, pending })
}

pub(in super::super) fn step(row: &Row) -> Result<StepRow> {
    let hash = row.get::<Vec<u8>>("hash")?;
    Ok(StepRow {
        seq: row.get("seq")?,
        kind: row.get("kind")?,
        run: RunId(row.get("run")?),
        schema_version: row.get("schema_version")?,
        delta: body(row, "codec", "body")?,
        frontier: row.get("frontier")?,
        hash: digest(&hash, "step")?,
        at: row.get("at")?,
    })
}

pub(in super::super) fn snapshot(thread: ThreadId, row: &Row) -> Result<SnapshotRow> {
    let snapshot = SnapshotRow {
        seq: row.get("seq")?,
        schema_version: row.get("schema_version")?,
        state: body(row, "codec", "body")?,
        blobs: maybe_body(row, "blobs_codec", "blobs")?,
    };
    let sum = checksum::snapshot(&snapshot);
    checksum::check(thread, snapshot.seq, row.get("checksum")?, sum, "the snapshot")?;
    Ok(snapshot)
}

pub(in super::super) fn blob(row: &Row) -> Result<BlobRow> {
    let hash = row.get::<Vec<u8>>("hash")?;
    Ok(BlobRow {
        owner: ThreadId(row.get("thread_id")?),
        step: row.get("step")?,
        hash: digest(&hash, "text")?,
        body: body(row, "codec", "body")?,
    })
}

/// Reads a pending write; its step is in the column `seq`.
pub(in super::super) fn pending(thread: ThreadId, row: &Row) -> Result<PendingRow> {
    let pending = PendingRow {
        step: row.get("seq")?,
        task: row.get("task")?,
        body: body(row, "codec", "body")?,
    };
    let sum = checksum::pending(&pending);
    let what = format!("what task {} wrote", pending.task);
    checksum::check(thread, pending.step, row.get("checksum")?, sum, &what)?;
    Ok(pending)
}

/// Reads the effects of a thread and checks that they are as recorded and complete.
///
/// The count must be read before the rows.
pub(in super::super) fn effects(
    thread: ThreadId,
    counted: &[Row],
    rows: &[Row],
) -> Result<Vec<EffectRow>> {
    let effects = rows.iter().map(|row| effect(thread, row)).collect::<Result<Vec<_>, _>>()?;
    let counted = counted
        .iter()
        .map(|row| {
            Ok(Counted {
                step: row.get("step")?,
                task: row.get("task")?,
                effects: row.get("effects")?,
            })
        })
        .collect::<Result<Vec<_>>>()?;
    checksum::check_counts(thread, &counted, &effects)?;
    Ok(effects)
}

/// Reads an effect and checks that it is as recorded.
pub(in super::super) fn effect(thread: ThreadId, row: &Row) -> Result<EffectRow> {
    let effect =
        read_effect(row).map_err(|error| match (error, row.get::<Option<u64>>("step")) {
            (Error::Damaged(reason), Ok(Some(step))) => {
                let name = row.get::<Option<String>>("name").ok().flatten().unwrap_or("?".into());
                let reason = format!("its recorded call {name} cannot be read: {reason}");
                Error::corrupt(thread, step, reason)
            }
            (error, _) => error,
        })?;
    let sums = [row.get("request_sum")?, row.get("outcome_sum")?];
    checksum::check_effect(thread, &effect, sums)?;
    Ok(effect)
}

fn read_effect(row: &Row) -> Result<EffectRow> {
    Ok(EffectRow {
        step: row.get("step")?,
        task: row.get("task")?,
        key: row.get("key")?,
        number: row.get("number")?,
        kind: row.get("kind")?,
        status: row.get("status")?,
        name: row.get("name")?,
        request: body(row, "request_codec", "request")?,
        outcome: maybe_body(row, "outcome_codec", "outcome")?,
        attempt: row.get("attempt")?,
        started_at: row.get("started_at")?,
        ended_at: row.get("ended_at")?,
    })
}

pub(in super::super) fn open_interrupt(row: &Row) -> Result<OpenInterrupt> {
    let thread = ThreadId(row.get("thread_id")?);
    let asked = effect(thread, row)?;
    let key = asked.key;
    let id = Uuid::from_slice(&key)
        .map_err(|_| Error::damaged(format!("an interrupt's id is no UUID: {key:02x?}")))?;
    Ok(OpenInterrupt {
        id: InterruptId(id),
        thread,
        step: asked.step,
        task: asked.task,
        kind: asked.name,
        payload: asked.request,
        asked_at: asked.started_at,
    })
}

pub(in super::super) fn run(row: &Row) -> Result<RunRow> {
    Ok(RunRow {
        id: RunId(row.get("id")?),
        number: row.get("number")?,
        status: row.get("status")?,
        finish_reason: row.get("finish_reason")?,
        started_at: row.get("started_at")?,
        ended_at: row.get("ended_at")?,
    })
}

pub(in super::super) fn waiting(row: &Row) -> Result<Waiting> {
    Ok(Waiting { thread: ThreadId(row.get("id")?), holder: row.get("holder")? })
}

pub(in super::super) fn export(row: &Row) -> Result<PendingExport> {
    Ok(PendingExport {
        thread: ThreadId(row.get("thread_id")?),
        from_run: row.get("from_run")?,
        to_run: row.get("to_run")?,
        since: row.get("since")?,
    })
}

/// Reads how far a thread's log reaches.
pub(in super::super) fn mark(row: &Row) -> Result<EventPosition> {
    Ok(EventPosition { last: row.get("events")?, step: row.get("events_step")? })
}

pub(in super::super) fn begun(row: &Row) -> Result<Begun> {
    let info = thread(row)?.info;
    Ok(Begun { info, run: RunId(row.get("run")?), events: mark(row)? })
}

pub(in super::super) fn event(row: &Row) -> Result<EventRow> {
    Ok(EventRow {
        first: row.get("first_id")?,
        count: row.get("events")?,
        run: RunId(row.get("run")?),
        step: row.get("step")?,
        body: body(row, "codec", "body")?,
        at: row.get("at")?,
    })
}

fn digest(bytes: &[u8], what: &str) -> Result<[u8; 32]> {
    bytes.try_into().map_err(|_| {
        Error::damaged(format!("a {what}'s hash has not 32 bytes but: {}", bytes.len()))
    })
}

fn body(row: &Row, codec_column: &str, column: &str) -> Result<Encoded> {
    Ok(Encoded { codec: codec(row, codec_column)?, bytes: row.get(column)? })
}

fn maybe_body(row: &Row, codec_column: &str, column: &str) -> Result<Option<Encoded>> {
    let bytes = row.get::<Option<_>>(column)?;
    bytes.map(|bytes| Ok(Encoded { codec: codec(row, codec_column)?, bytes })).transpose()
}

fn codec(row: &Row, column: &str) -> Result<Codec> {
    let number = row.get::<i64>(column)?;
    let known = i16::try_from(number).ok().and_then(Codec::from_number);
    known.ok_or_else(|| Error::damaged(format!("unknown codec: {number}")))
}
