//! Rows of either database as the values of the traits: the one place that names their columns and takes them apart.
//!
//! Both databases use the same table and column names; [`Row`] hides what differs in their types.

use perihelion_database::{FromColumn, Row};
use uuid::Uuid;

use super::super::chain::{not_beyond, reached};
use super::super::checksum::{self, Counted};
use super::super::{
    Begun, BlobRow, Codec, EffectKind, EffectRow, EffectStatus, Encoded, Error, EventPosition,
    EventRow, Loaded, OpenInterrupt, PendingExport, PendingRow, Result, RunRow, RunStatus,
    SnapshotRow, StepKind, StepRow, ThreadInfo, ThreadStatus, Waiting,
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
    let threads = maybe::<i64>(row, "threads")?.unwrap_or_default().unsigned_abs();
    Ok((named(row, "status", ThreadStatus::from_name)?, threads))
}

pub(in super::super) fn thread(row: &Row) -> Result<ThreadRow> {
    let parent = maybe::<Uuid>(row, "parent_id")?.zip(maybe::<i64>(row, "parent_seq")?);
    let info = ThreadInfo {
        id: ThreadId(there(row, "id")?),
        graph: there(row, "graph")?,
        title: maybe(row, "title")?,
        root: maybe(row, "root_id")?.map(ThreadId),
        namespace: there(row, "namespace")?,
        tenant: there(row, "tenant")?,
        head: count(row, "head")?,
        status: named(row, "status", ThreadStatus::from_name)?,
        error: maybe(row, "error")?,
        fence: count(row, "fence")?,
        owner: maybe(row, "owner")?,
        lease_until: maybe(row, "lease_until")?,
        forked_from: parent.map(|(id, seq)| (ThreadId(id), seq as u64)),
        created_at: there(row, "created_at")?,
        updated_at: there(row, "updated_at")?,
        archived: maybe(row, "archived")?,
    };
    Ok(ThreadRow { info, base: count(row, "base")? })
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
        match there::<i64>(row, "part")? {
            0 => snapshot = Some(self::snapshot(thread, row)?),
            1 => steps.push(step(row)?),
            2 => pending.push(self::pending(thread, row)?),
            _ => found = Some((self::thread(row)?, maybe(row, "beyond")?)),
        }
    }
    let (ThreadRow { info, base }, beyond) = found.ok_or(Error::UnknownThread(thread))?;
    let info = info.present()?;
    let at = at.unwrap_or(info.head);
    if at > info.head || at < base {
        return Err(Error::UnknownStep { thread, seq: at, head: info.head });
    }
    not_beyond(thread, beyond)?;
    steps.sort_unstable_by_key(|step| step.seq);
    pending.sort_unstable_by_key(|row: &PendingRow| row.task);
    let after = after.or(snapshot.as_ref().map(|snapshot| snapshot.seq)).unwrap_or_default();
    reached(thread, after, &steps, at)?;
    Ok(Loaded { info, snapshot, steps, pending })
}

pub(in super::super) fn step(row: &Row) -> Result<StepRow> {
    let hash = there::<Vec<u8>>(row, "hash")?;
    Ok(StepRow {
        seq: count(row, "seq")?,
        kind: named(row, "kind", StepKind::from_name)?,
        run: RunId(there(row, "run")?),
        schema_version: small_count(row, "schema_version")?,
        delta: body(row, "codec", "body")?,
        frontier: there(row, "frontier")?,
        hash: digest(&hash, "step")?,
        at: there(row, "at")?,
    })
}

pub(in super::super) fn snapshot(thread: ThreadId, row: &Row) -> Result<SnapshotRow> {
    let snapshot = SnapshotRow {
        seq: count(row, "seq")?,
        schema_version: small_count(row, "schema_version")?,
        state: body(row, "codec", "body")?,
        blobs: match maybe(row, "blobs")? {
            Some(bytes) => Some(Encoded { codec: codec(row, "blobs_codec")?, bytes }),
            None => None,
        },
    };
    let sum = checksum::snapshot(&snapshot);
    checksum::check(thread, snapshot.seq, maybe(row, "checksum")?, sum, "the snapshot")?;
    Ok(snapshot)
}

pub(in super::super) fn blob(row: &Row) -> Result<BlobRow> {
    let hash = there::<Vec<u8>>(row, "hash")?;
    Ok(BlobRow {
        owner: ThreadId(there(row, "thread_id")?),
        step: count(row, "step")?,
        hash: digest(&hash, "text")?,
        body: body(row, "codec", "body")?,
    })
}

/// Reads a pending write; its step is in the column `seq`.
pub(in super::super) fn pending(thread: ThreadId, row: &Row) -> Result<PendingRow> {
    let pending = PendingRow {
        step: count(row, "seq")?,
        task: small_count(row, "task")?,
        body: body(row, "codec", "body")?,
    };
    let sum = checksum::pending(&pending);
    let what = format!("what task {} wrote", pending.task);
    checksum::check(thread, pending.step, maybe(row, "checksum")?, sum, &what)?;
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
                step: count(row, "step")?,
                task: small_count(row, "task")?,
                effects: count(row, "effects")?,
            })
        })
        .collect::<Result<Vec<_>>>()?;
    checksum::check_counts(thread, &counted, &effects)?;
    Ok(effects)
}

/// Reads an effect and checks that it is as recorded.
pub(in super::super) fn effect(thread: ThreadId, row: &Row) -> Result<EffectRow> {
    let effect = read_effect(row).map_err(|error| match (error, maybe::<i64>(row, "step")) {
        (Error::Damaged(reason), Ok(Some(step))) => {
            let name = maybe::<String>(row, "name").ok().flatten().unwrap_or("?".into());
            let reason = format!("its recorded call {name} cannot be read: {reason}");
            Error::Corrupt { thread, seq: step as u64, reason: reason.into() }
        }
        (error, _) => error,
    })?;
    let sums = [maybe(row, "request_sum")?, maybe(row, "outcome_sum")?];
    checksum::check_effect(thread, &effect, sums)?;
    Ok(effect)
}

fn read_effect(row: &Row) -> Result<EffectRow> {
    let outcome = match maybe(row, "outcome")? {
        Some(bytes) => Some(Encoded { codec: codec(row, "outcome_codec")?, bytes }),
        None => None,
    };
    Ok(EffectRow {
        step: count(row, "step")?,
        task: small_count(row, "task")?,
        key: there(row, "key")?,
        number: small_count(row, "number")?,
        kind: named(row, "kind", EffectKind::from_name)?,
        status: named(row, "status", EffectStatus::from_name)?,
        name: there(row, "name")?,
        request: body(row, "request_codec", "request")?,
        outcome,
        attempt: small_count(row, "attempt")?,
        started_at: there(row, "started_at")?,
        ended_at: maybe(row, "ended_at")?,
    })
}

pub(in super::super) fn open_interrupt(row: &Row) -> Result<OpenInterrupt> {
    let thread = ThreadId(there(row, "thread_id")?);
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
        id: RunId(there(row, "id")?),
        number: small_count(row, "number")?,
        status: named(row, "status", RunStatus::from_name)?,
        finish_reason: maybe(row, "finish_reason")?,
        started_at: there(row, "started_at")?,
        ended_at: maybe(row, "ended_at")?,
    })
}

pub(in super::super) fn waiting(row: &Row) -> Result<Waiting> {
    Ok(Waiting { thread: ThreadId(there(row, "id")?), holder: maybe(row, "holder")? })
}

pub(in super::super) fn export(row: &Row) -> Result<PendingExport> {
    Ok(PendingExport {
        thread: ThreadId(there(row, "thread_id")?),
        from_run: small_count(row, "from_run")?,
        to_run: small_count(row, "to_run")?,
        since: there(row, "since")?,
    })
}

/// Reads how far a thread's log reaches.
pub(in super::super) fn mark(row: &Row) -> Result<EventPosition> {
    Ok(EventPosition { last: count(row, "events")?, step: count(row, "events_step")? })
}

pub(in super::super) fn begun(row: &Row) -> Result<Begun> {
    let info = thread(row)?.info;
    Ok(Begun { info, run: RunId(there(row, "run")?), events: mark(row)? })
}

pub(in super::super) fn event(row: &Row) -> Result<EventRow> {
    Ok(EventRow {
        first: count(row, "first_id")?,
        count: small_count(row, "events")?,
        run: RunId(there(row, "run")?),
        step: count(row, "step")?,
        body: body(row, "codec", "body")?,
        at: there(row, "at")?,
    })
}

/// Reads a number that the database keeps signed.
pub(in super::super) fn count(row: &Row, column: &str) -> Result<u64> {
    Ok(there::<i64>(row, column)? as u64)
}

fn small_count(row: &Row, column: &str) -> Result<u32> {
    Ok(there::<i64>(row, column)? as u32)
}

fn digest(bytes: &[u8], what: &str) -> Result<[u8; 32]> {
    bytes.try_into().map_err(|_| {
        Error::damaged(format!("a {what}'s hash has not 32 bytes but: {}", bytes.len()))
    })
}

fn body(row: &Row, codec_column: &str, column: &str) -> Result<Encoded> {
    Ok(Encoded { codec: codec(row, codec_column)?, bytes: there(row, column)? })
}

fn codec(row: &Row, column: &str) -> Result<Codec> {
    let number = there::<i64>(row, column)?;
    let known = i16::try_from(number).ok().and_then(Codec::from_number);
    known.ok_or_else(|| Error::damaged(format!("unknown codec: {number}")))
}

fn named<T>(row: &Row, column: &str, read: impl FnOnce(&str) -> Option<T>) -> Result<T> {
    let name = there::<String>(row, column)?;
    read(&name).ok_or_else(|| {
        Error::damaged(format!(
            "unknown {column}, perhaps of a newer version of perihelion (then upgrade this binary): {name}"
        ))
    })
}

fn there<T: FromColumn>(row: &Row, column: &str) -> Result<T> {
    maybe(row, column)?.ok_or_else(|| Error::damaged(format!("a stored row lacks its {column}")))
}

fn maybe<T: FromColumn>(row: &Row, column: &str) -> Result<Option<T>> {
    Ok(row.get(column)?)
}
