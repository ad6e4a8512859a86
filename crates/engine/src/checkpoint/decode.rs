//! Rows of either database as the values of the trait.
//!
//! Both databases use the same table and column names; [`Columns`] hides what differs in their types.

use chrono::{DateTime, Utc};
use sqlx::{Row, postgres::PgRow, sqlite::SqliteRow};
use uuid::Uuid;

use super::checksum::{self, Counted};
use super::{
    BlobRow, Codec, EffectKind, EffectRow, EffectStatus, Encoded, Error, EventRow, OpenInterrupt,
    PendingRow, RunRow, RunStatus, SnapshotRow, StepKind, StepRow, ThreadInfo, ThreadStatus,
};
use crate::ids::{InterruptId, RunId, ThreadId};

/// Columns that [`thread`] reads.
macro_rules! thread_columns {
    () => {
        "id, root_id, parent_id, parent_seq, head, base, fence, lease_until, created_at, updated_at, \
         status, graph, title, namespace, tenant, owner, error"
    };
}
pub(super) use thread_columns;

/// Columns that [`effect`] reads.
macro_rules! effect_columns {
    () => {
        "step, started_at, ended_at, task, number, attempt, request_codec, outcome_codec, kind, \
         status, name, key, request, outcome, request_sum, outcome_sum"
    };
}
pub(super) use effect_columns;

/// Columns that [`run`] reads.
macro_rules! run_columns {
    () => {
        "id, number, status, finish_reason, started_at, ended_at"
    };
}
pub(super) use run_columns;

/// Columns that [`step`] reads.
macro_rules! step_columns {
    () => {
        "seq, schema_version, codec, delta AS body, run, at, kind, hash, frontier"
    };
}
pub(super) use step_columns;

/// Columns that [`snapshot`] reads, of the table `s`.
macro_rules! snapshot_columns {
    () => {
        "s.seq, s.schema_version, s.codec, s.state AS body, s.checksum, s.blobs_codec, s.blobs"
    };
}
pub(super) use snapshot_columns;

/// Columns that [`blob`] reads.
macro_rules! blob_columns {
    () => {
        "thread_id, step, codec, hash, body"
    };
}
pub(super) use blob_columns;

/// Columns of a row by name; `None` is a column that is null.
pub(super) trait Columns {
    fn big(&self, column: &str) -> Result<Option<i64>, sqlx::Error>;
    fn int(&self, column: &str) -> Result<Option<i32>, sqlx::Error>;
    fn small(&self, column: &str) -> Result<Option<i16>, sqlx::Error>;
    fn text(&self, column: &str) -> Result<Option<&str>, sqlx::Error>;
    fn bytes(&self, column: &str) -> Result<Option<Vec<u8>>, sqlx::Error>;
    fn uuid(&self, column: &str) -> Result<Option<Uuid>, sqlx::Error>;
    fn time(&self, column: &str) -> Result<Option<DateTime<Utc>>, sqlx::Error>;
}

macro_rules! get {
    ($($name:ident: $kind:ty),+) => {
        $(fn $name(&self, column: &str) -> Result<Option<$kind>, sqlx::Error> {
            self.try_get(column)
        })+
    };
}

impl Columns for PgRow {
    get!(big: i64, int: i32, small: i16, text: &str, bytes: Vec<u8>, uuid: Uuid, time: DateTime<Utc>);
}

impl Columns for SqliteRow {
    get!(big: i64, int: i32, small: i16, text: &str, bytes: Vec<u8>, uuid: Uuid);

    /// Times are whole microseconds since 1970.
    fn time(&self, column: &str) -> Result<Option<DateTime<Utc>>, sqlx::Error> {
        Ok(self.big(column)?.and_then(DateTime::from_timestamp_micros))
    }
}

/// A thread's row with what the trait does not show.
pub(super) struct ThreadRow {
    pub(super) info: ThreadInfo,
    /// Steps up to this one were dropped.
    pub(super) base: u64,
}

/// Reads how many threads have a status.
pub(super) fn counted(row: &impl Columns) -> Result<(ThreadStatus, u64), Error> {
    let threads = row.big("threads")?.unwrap_or_default().unsigned_abs();
    Ok((named(row, "status", ThreadStatus::from_name)?, threads))
}

pub(super) fn thread(row: &impl Columns) -> Result<ThreadRow, Error> {
    let parent = row.uuid("parent_id")?.zip(row.big("parent_seq")?);
    let info = ThreadInfo {
        id: ThreadId(there(row.uuid("id")?, "id")?),
        graph: there(row.text("graph")?, "graph")?.to_owned(),
        title: row.text("title")?.map(str::to_owned),
        root: row.uuid("root_id")?.map(ThreadId),
        namespace: there(row.text("namespace")?, "namespace")?.to_owned(),
        tenant: there(row.text("tenant")?, "tenant")?.to_owned(),
        head: count(row, "head")?,
        status: named(row, "status", ThreadStatus::from_name)?,
        error: row.text("error")?.map(str::to_owned),
        fence: count(row, "fence")?,
        owner: row.text("owner")?.map(str::to_owned),
        lease_until: row.time("lease_until")?,
        forked_from: parent.map(|(id, seq)| (ThreadId(id), seq as u64)),
        created_at: there(row.time("created_at")?, "created_at")?,
        updated_at: there(row.time("updated_at")?, "updated_at")?,
    };
    Ok(ThreadRow { info, base: count(row, "base")? })
}

pub(super) fn step(row: &impl Columns) -> Result<StepRow, Error> {
    let hash = there(row.bytes("hash")?, "hash")?;
    Ok(StepRow {
        seq: count(row, "seq")?,
        kind: named(row, "kind", StepKind::from_name)?,
        run: RunId(there(row.uuid("run")?, "run")?),
        schema_version: small_count(row, "schema_version")?,
        delta: body(row, "codec", "body")?,
        frontier: there(row.bytes("frontier")?, "frontier")?,
        hash: digest(&hash, "step")?,
        at: there(row.time("at")?, "at")?,
    })
}

pub(super) fn snapshot(thread: ThreadId, row: &impl Columns) -> Result<SnapshotRow, Error> {
    let snapshot = SnapshotRow {
        seq: count(row, "seq")?,
        schema_version: small_count(row, "schema_version")?,
        state: body(row, "codec", "body")?,
        blobs: match row.bytes("blobs")? {
            Some(bytes) => Some(Encoded { codec: codec(row, "blobs_codec")?, bytes }),
            None => None,
        },
    };
    let sum = checksum::snapshot(&snapshot);
    checksum::check(thread, snapshot.seq, row.bytes("checksum")?, sum, "the snapshot")?;
    Ok(snapshot)
}

/// Reads a text that is kept beside the states that name it.
pub(super) fn blob(row: &impl Columns) -> Result<BlobRow, Error> {
    let hash = there(row.bytes("hash")?, "hash")?;
    Ok(BlobRow {
        owner: ThreadId(there(row.uuid("thread_id")?, "thread_id")?),
        step: count(row, "step")?,
        hash: digest(&hash, "text")?,
        body: body(row, "codec", "body")?,
    })
}

/// Reads a pending write; its step stands in the column `seq`.
pub(super) fn pending(thread: ThreadId, row: &impl Columns) -> Result<PendingRow, Error> {
    let pending = PendingRow {
        step: count(row, "seq")?,
        task: small_count(row, "task")?,
        body: body(row, "codec", "body")?,
    };
    let (sum, what) = (checksum::pending(&pending), format!("what task {} wrote", pending.task));
    checksum::check(thread, pending.step, row.bytes("checksum")?, sum, &what)?;
    Ok(pending)
}

/// Reads the effects of a thread and checks that they are what was recorded, and none is missing.
///
/// What was counted must have been read before the rows were.
pub(super) fn effects(
    thread: ThreadId,
    counted: &[impl Columns],
    rows: &[impl Columns],
) -> Result<Vec<EffectRow>, Error> {
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
        .collect::<Result<Vec<_>, Error>>()?;
    checksum::check_counts(thread, &counted, &effects)?;
    Ok(effects)
}

/// Reads an effect and checks that it is what was recorded.
pub(super) fn effect(thread: ThreadId, row: &impl Columns) -> Result<EffectRow, Error> {
    let effect = read_effect(row).map_err(|error| match (error, row.big("step")) {
        (Error::Damaged(reason), Ok(Some(step))) => {
            let name = row.text("name").ok().flatten().unwrap_or("?");
            let reason = format!("its recorded call {name} cannot be read: {reason}");
            Error::Corrupt { thread, seq: step as u64, reason }
        }
        (error, _) => error,
    })?;
    let sums = [row.bytes("request_sum")?, row.bytes("outcome_sum")?];
    checksum::check_effect(thread, &effect, sums)?;
    Ok(effect)
}

fn read_effect(row: &impl Columns) -> Result<EffectRow, Error> {
    let outcome = match row.bytes("outcome")? {
        Some(bytes) => Some(Encoded { codec: codec(row, "outcome_codec")?, bytes }),
        None => None,
    };
    Ok(EffectRow {
        step: count(row, "step")?,
        task: small_count(row, "task")?,
        key: there(row.bytes("key")?, "key")?,
        number: small_count(row, "number")?,
        kind: named(row, "kind", EffectKind::from_name)?,
        status: named(row, "status", EffectStatus::from_name)?,
        name: there(row.text("name")?, "name")?.to_owned(),
        request: body(row, "request_codec", "request")?,
        outcome,
        attempt: small_count(row, "attempt")?,
        started_at: there(row.time("started_at")?, "started_at")?,
        ended_at: row.time("ended_at")?,
    })
}

pub(super) fn open_interrupt(row: &impl Columns) -> Result<OpenInterrupt, Error> {
    let thread = ThreadId(there(row.uuid("thread_id")?, "thread_id")?);
    let asked = effect(thread, row)?;
    let key = asked.key;
    let id = Uuid::from_slice(&key)
        .map_err(|_| Error::Damaged(format!("an interrupt's id is no UUID: {key:02x?}")))?;
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

pub(super) fn run(row: &impl Columns) -> Result<RunRow, Error> {
    Ok(RunRow {
        id: RunId(there(row.uuid("id")?, "id")?),
        number: small_count(row, "number")?,
        status: named(row, "status", RunStatus::from_name)?,
        finish_reason: row.text("finish_reason")?.map(str::to_owned),
        started_at: there(row.time("started_at")?, "started_at")?,
        ended_at: row.time("ended_at")?,
    })
}

pub(super) fn event(row: &impl Columns) -> Result<EventRow, Error> {
    Ok(EventRow {
        first: count(row, "first_id")?,
        count: small_count(row, "events")?,
        run: RunId(there(row.uuid("run")?, "run")?),
        step: count(row, "step")?,
        body: body(row, "codec", "body")?,
        at: there(row.time("at")?, "at")?,
    })
}

/// Reads a number that the database keeps signed.
pub(super) fn count(row: &impl Columns, column: &str) -> Result<u64, Error> {
    Ok(there(row.big(column)?, column)? as u64)
}

fn small_count(row: &impl Columns, column: &str) -> Result<u32, Error> {
    Ok(there(row.int(column)?, column)? as u32)
}

fn digest(bytes: &[u8], what: &str) -> Result<[u8; 32], Error> {
    bytes.try_into().map_err(|_| {
        Error::Damaged(format!("a {what}'s hash has not 32 bytes but: {}", bytes.len()))
    })
}

fn body(row: &impl Columns, codec_column: &str, column: &str) -> Result<Encoded, Error> {
    Ok(Encoded { codec: codec(row, codec_column)?, bytes: there(row.bytes(column)?, column)? })
}

fn codec(row: &impl Columns, column: &str) -> Result<Codec, Error> {
    let number = there(row.small(column)?, column)?;
    Codec::from_number(number).ok_or_else(|| Error::Damaged(format!("unknown codec: {number}")))
}

fn named<T>(
    row: &impl Columns,
    column: &str,
    read: impl FnOnce(&str) -> Option<T>,
) -> Result<T, Error> {
    let name = there(row.text(column)?, column)?;
    read(name).ok_or_else(|| {
        Error::Damaged(format!(
            "unknown {column}, perhaps of a newer version of perihelion (then upgrade this binary): {name}"
        ))
    })
}

fn there<T>(value: Option<T>, column: &str) -> Result<T, Error> {
    value.ok_or_else(|| Error::Damaged(format!("a stored row lacks its {column}")))
}
