//! The lines of the file, one kind per row of a store.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::super::{
    BlobRow, Codec, EffectKind, EffectRow, EffectStatus, Encoded, Error, PendingRow, RunRow,
    SnapshotRow, StepKind, StepRow, ThreadInfo,
    hex::{from_hex, to_hex},
};
use crate::graph::BlobName;
use crate::ids::{RunId, ThreadId};

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Line {
    Header(Header),
    Thread(Box<ThreadInfo>),
    Snapshot(Snapshot),
    /// What a return to an earlier step came to, where steps before it were dropped.
    Returned(Snapshot),
    Step(Box<Step>),
    Pending(Pending),
    Effect(Box<Effect>),
    Run(RunRow),
    Blob(Blob),
    /// Shows that nothing is missing before it.
    End(End),
}

#[derive(Serialize, Deserialize)]
pub(super) struct Header {
    pub(super) format: String,
    pub(super) version: u32,
}

#[derive(Serialize, Deserialize)]
pub(super) struct End {
    /// Lines of the file, this one included.
    pub(super) lines: u64,
    /// BLAKE3 over the lines before this one, their line feeds included, in hexadecimal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) digest: Option<String>,
}

/// Bytes that come out as they went in: as JSON where that keeps them letter by letter.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Verbatim {
    Json(Box<RawValue>),
    Hex(String),
}

/// Bodies longer than this are compressed on the way in, whatever they were before.
const COMPRESS_ABOVE: usize = 2048;

impl Verbatim {
    fn new(bytes: &[u8]) -> Self {
        let text = std::str::from_utf8(bytes).ok().filter(|text| !text.contains(['\n', '\r']));
        let raw = text.and_then(|text| serde_json::from_str::<Box<RawValue>>(text).ok());
        match raw {
            // Spaces around the value would be lost.
            Some(raw) if raw.get().len() == bytes.len() => Self::Json(raw),
            _ => Self::Hex(to_hex(bytes)),
        }
    }

    fn of(body: &Encoded) -> Result<Self, Error> {
        Ok(Self::new(&body.to_json_bytes()?))
    }

    fn into_bytes(self) -> Result<Vec<u8>, Error> {
        match self {
            Self::Json(raw) => Ok(raw.get().as_bytes().to_vec()),
            Self::Hex(text) => from_hex(&text),
        }
    }

    fn into_encoded(self) -> Result<Encoded, Error> {
        match self {
            Self::Json(raw) => Encoded::json(&raw, COMPRESS_ABOVE),
            Self::Hex(text) => Ok(Encoded { codec: Codec::Json, bytes: from_hex(&text)? }),
        }
    }
}

#[derive(Serialize, Deserialize)]
pub(super) struct Snapshot {
    seq: u64,
    schema_version: u32,
    state: Verbatim,
    /// The texts that the state names.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    blobs: Option<Verbatim>,
}

impl Snapshot {
    pub(super) fn new(row: &SnapshotRow) -> Result<Self, Error> {
        let SnapshotRow { seq, schema_version, ref state, ref blobs } = *row;
        let blobs = blobs.as_ref().map(Verbatim::of).transpose()?;
        Ok(Self { seq, schema_version, state: Verbatim::of(state)?, blobs })
    }

    pub(super) fn into_row(self) -> Result<SnapshotRow, Error> {
        let Self { seq, schema_version, state, blobs } = self;
        let blobs = blobs.map(Verbatim::into_encoded).transpose()?;
        Ok(SnapshotRow { seq, schema_version, state: state.into_encoded()?, blobs })
    }
}

#[derive(Serialize, Deserialize)]
pub(super) struct Step {
    seq: u64,
    kind: StepKind,
    run: RunId,
    at: DateTime<Utc>,
    schema_version: u32,
    hash: String,
    frontier: Verbatim,
    delta: Verbatim,
}

impl Step {
    pub(super) fn new(row: &StepRow) -> Result<Self, Error> {
        Ok(Self {
            seq: row.seq,
            kind: row.kind,
            run: row.run,
            at: row.at,
            schema_version: row.schema_version,
            hash: to_hex(&row.hash),
            frontier: Verbatim::new(&row.frontier),
            delta: Verbatim::of(&row.delta)?,
        })
    }

    pub(super) fn into_row(self) -> Result<StepRow, Error> {
        let hash = from_hex(&self.hash)?;
        Ok(StepRow {
            seq: self.seq,
            kind: self.kind,
            run: self.run,
            at: self.at,
            schema_version: self.schema_version,
            hash: hash
                .try_into()
                .map_err(|_| Error::Damaged(format!("the hash has not 32 bytes: {}", self.hash)))?,
            frontier: self.frontier.into_bytes()?,
            delta: self.delta.into_encoded()?,
        })
    }
}

#[derive(Serialize, Deserialize)]
pub(super) struct Pending {
    step: u64,
    task: u32,
    body: Verbatim,
}

impl Pending {
    pub(super) fn new(row: &PendingRow) -> Result<Self, Error> {
        Ok(Self { step: row.step, task: row.task, body: Verbatim::of(&row.body)? })
    }

    pub(super) fn into_row(self) -> Result<PendingRow, Error> {
        Ok(PendingRow { step: self.step, task: self.task, body: self.body.into_encoded()? })
    }
}

/// A text that rows before it name, by what it is.
#[derive(Serialize, Deserialize)]
pub(super) struct Blob {
    text: Verbatim,
}

impl Blob {
    pub(super) fn new(row: &BlobRow) -> Result<Self, Error> {
        Ok(Self { text: Verbatim::of(&row.body)? })
    }

    /// The step that names it is found when the whole file is read.
    pub(super) fn into_row(self, owner: ThreadId) -> Result<BlobRow, Error> {
        let body = self.text.into_encoded()?;
        let hash = BlobName::of(&body.decode::<String>()?).hash;
        Ok(BlobRow { owner, step: 0, hash, body })
    }
}

#[derive(Serialize, Deserialize)]
pub(super) struct Effect {
    step: u64,
    task: u32,
    number: u32,
    key: String,
    kind: EffectKind,
    status: EffectStatus,
    name: String,
    attempt: u32,
    started_at: DateTime<Utc>,
    ended_at: Option<DateTime<Utc>>,
    request: Verbatim,
    outcome: Option<Verbatim>,
}

impl Effect {
    pub(super) fn new(row: &EffectRow) -> Result<Self, Error> {
        Ok(Self {
            step: row.step,
            task: row.task,
            number: row.number,
            key: to_hex(&row.key),
            kind: row.kind,
            status: row.status,
            name: row.name.clone(),
            attempt: row.attempt,
            started_at: row.started_at,
            ended_at: row.ended_at,
            request: Verbatim::of(&row.request)?,
            outcome: row.outcome.as_ref().map(Verbatim::of).transpose()?,
        })
    }

    pub(super) fn into_row(self) -> Result<EffectRow, Error> {
        Ok(EffectRow {
            step: self.step,
            task: self.task,
            number: self.number,
            key: from_hex(&self.key)?,
            kind: self.kind,
            status: self.status,
            name: self.name,
            attempt: self.attempt,
            started_at: self.started_at,
            ended_at: self.ended_at,
            request: self.request.into_encoded()?,
            outcome: self.outcome.map(Verbatim::into_encoded).transpose()?,
        })
    }
}
