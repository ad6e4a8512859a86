//! Rows of the trait, encrypted and decrypted; each value at the place that it belongs to.

use uuid::Uuid;

use super::super::{
    BlobRow, Codec, EffectKind, EffectRow, EffectStatus, Encoded, Error, EventRow, OpenInterrupt,
    PendingRow, Result, SnapshotRow, StepRow,
};
use super::keyring::Keyring;
use super::seal::{SealContext, open, seal};
use crate::graph::BlobName;
use crate::ids::{InterruptId, ThreadId};

/// A decrypted value and its owner; `None` for a value that was never encrypted.
pub(super) type Owner = Option<[u8; 16]>;

#[derive(Clone, Copy)]
pub(super) struct Values<'k> {
    pub keys: &'k Keyring,
    pub thread: ThreadId,
}

struct EffectPlace<'a> {
    step: u64,
    task: u32,
    /// As stored.
    key: &'a [u8],
    kind: EffectKind,
    name: &'a str,
}

impl EffectPlace<'_> {
    fn of_request(&self) -> SealContext {
        let step = self.step.to_le_bytes();
        let task = self.task.to_le_bytes();
        let kind = self.kind.as_str().as_bytes();
        SealContext::new("request", &[&step, &task, self.key, kind, self.name.as_bytes()])
    }
}

impl Values<'_> {
    fn owner(self) -> [u8; 16] {
        *self.thread.0.as_bytes()
    }

    /// The owner of an outcome: the thread, or the question, because a person answers by its ID alone.
    fn owner_of_outcome(self, key: &[u8]) -> [u8; 16] {
        key.try_into().unwrap_or(self.owner())
    }

    fn forged(self, what: String) -> Error {
        Error::Forged { thread: self.thread, what }
    }

    fn seal(self, place: &SealContext, body: &Encoded) -> Result<Encoded> {
        seal_body(self.keys, self.owner(), place, body, &[])
    }

    /// Decrypts a body; a body that was never encrypted stays unchanged.
    fn open(
        self,
        place: &SealContext,
        body: &Encoded,
        what: impl Fn() -> String,
    ) -> Result<(Encoded, Owner)> {
        if body.codec != Codec::Sealed {
            return Ok((body.clone(), None));
        }
        let (plain, owner) = open(self.keys, place, &body.bytes, self.thread, what)?;
        Ok((read_body(&plain)?, Some(owner)))
    }

    pub(super) fn seal_step(self, row: &StepRow) -> Result<StepRow> {
        let delta = self.seal(&step_place("delta", row), &row.delta)?;
        // The hash would confirm a guessed content, so its column has a blinded hash.
        let frontier = [&row.hash[..], &row.frontier].concat();
        let frontier = seal(self.keys, self.owner(), &step_place("frontier", row), frontier)?;
        let hash = self.keys.first().blind_hash("step", self.thread, &row.hash);
        Ok(StepRow { delta, frontier, hash, ..row.clone() })
    }

    pub(super) fn open_step(self, row: StepRow) -> Result<(StepRow, u64, Owner)> {
        let what = || format!("step {}", row.seq);
        let (delta, owner) = self.open(&step_place("delta", &row), &row.delta, what)?;
        let seq = row.seq;
        let Some(is) = owner else { return Ok((row, seq, None)) };
        let place = step_place("frontier", &row);
        let (frontier, same) = open(self.keys, &place, &row.frontier, self.thread, what)?;
        let parts = frontier.split_first_chunk::<32>().filter(|_| same == is);
        let (hash, frontier) = parts.ok_or_else(|| self.forged(what()))?;
        let frontier = frontier.to_vec();
        Ok((StepRow { delta, frontier, hash: *hash, ..row }, seq, owner))
    }

    pub(super) fn seal_snapshot(self, row: &SnapshotRow) -> Result<SnapshotRow> {
        let state = self.seal(&snapshot_place("snapshot", row), &row.state)?;
        let seal_names = |names| self.seal(&snapshot_place("texts", row), names);
        let blobs = row.blobs.as_ref().map(seal_names).transpose()?;
        Ok(SnapshotRow { state, blobs, ..*row })
    }

    pub(super) fn open_snapshot(self, row: SnapshotRow) -> Result<(SnapshotRow, u64, Owner)> {
        let what = || format!("the snapshot of step {}", row.seq);
        let (state, owner) = self.open(&snapshot_place("snapshot", &row), &row.state, what)?;
        let seq = row.seq;
        if owner.is_none() {
            return Ok((row, seq, None));
        }
        let open_names = |names| self.open(&snapshot_place("texts", &row), names, what);
        let blobs = match row.blobs.as_ref().map(open_names).transpose()? {
            Some((_, same)) if same != owner => return Err(self.forged(what())),
            names => names.map(|(names, _)| names),
        };
        Ok((SnapshotRow { state, blobs, ..row }, seq, owner))
    }

    /// Encrypts a text, as the owner that its row names, under a name that does not reveal it.
    fn seal_blob(self, row: &BlobRow) -> Result<BlobRow> {
        let hash = self.keys.first().blind_hash("text", row.owner, &row.hash);
        let of_owner = Self { thread: row.owner, ..self };
        let body = of_owner.seal(&SealContext::new("text", &[&hash]), &row.body)?;
        Ok(BlobRow { hash, body, ..*row })
    }

    pub(super) fn seal_blobs(self, rows: &[BlobRow]) -> Result<Vec<BlobRow>> {
        rows.iter().map(|row| self.seal_blob(row)).collect()
    }

    /// Decrypts a text and computes its name, so that a swapped text is detected.
    pub(super) fn open_blob(self, row: BlobRow) -> Result<BlobRow> {
        let place = SealContext::new("text", &[&row.hash]);
        let (body, owner) = self.open(&place, &row.body, || "a text".to_owned())?;
        if owner.is_none() {
            return Ok(row);
        }
        let hash = BlobName::of(&body.decode::<String>()?).hash;
        Ok(BlobRow { hash, body, ..row })
    }

    pub(super) fn seal_pending(self, row: &PendingRow) -> Result<PendingRow> {
        Ok(PendingRow { body: self.seal(&pending_place(row), &row.body)?, ..*row })
    }

    pub(super) fn open_pending(self, row: PendingRow) -> Result<(PendingRow, u64, Owner)> {
        let what = || format!("a pending write of step {}", row.step);
        let (body, owner) = self.open(&pending_place(&row), &row.body, what)?;
        Ok((PendingRow { body, ..row }, row.step, owner))
    }

    pub(super) fn seal_event(self, row: &EventRow) -> Result<EventRow> {
        Ok(EventRow { body: self.seal(&event_place(row), &row.body)?, ..*row })
    }

    /// Events from before the first key was set open as they are.
    pub(super) fn open_event(self, row: EventRow) -> Result<EventRow> {
        let what = || format!("the events {} to {}", row.first, row.last());
        let (body, owner) = self.open(&event_place(&row), &row.body, what)?;
        if owner.is_some_and(|owner| owner != self.owner()) {
            return Err(self.forged(what()));
        }
        Ok(EventRow { body, ..row })
    }

    /// Encrypts an outcome for the effect with a key, which is the one it was asked for under, not the stored one.
    pub(super) fn seal_outcome(
        self,
        key: &[u8],
        status: EffectStatus,
        outcome: &Encoded,
    ) -> Result<Encoded> {
        let place = outcome_place(key, status);
        seal_body(self.keys, self.owner_of_outcome(key), &place, outcome, &[])
    }

    pub(super) fn seal_effect(self, row: &EffectRow) -> Result<EffectRow> {
        let key = self.keys.first().blind(&row.key);
        let EffectRow { step, task, kind, ref name, .. } = *row;
        let place = EffectPlace { step, task, key: &key, kind, name }.of_request();
        let mut inside = vec![row.key.len() as u8];
        inside.extend_from_slice(&row.key);
        let request = seal_body(self.keys, self.owner(), &place, &row.request, &inside)?;
        let seal_outcome = |outcome| self.seal_outcome(&row.key, row.status, outcome);
        let outcome = row.outcome.as_ref().map(seal_outcome).transpose()?;
        Ok(EffectRow { key, request, outcome, ..row.clone() })
    }

    /// Reads a request and the key that it was asked for under.
    fn open_request(
        self,
        place: &EffectPlace<'_>,
        request: &Encoded,
    ) -> Result<(Encoded, Vec<u8>)> {
        let what = || format!("the {} {} of step {}", place.kind.as_str(), place.name, place.step);
        let sealed = &request.bytes;
        let (plain, owner) = open(self.keys, &place.of_request(), sealed, self.thread, what)?;
        let key = plain.get(1).map(|length| 2..2 + usize::from(*length));
        let key = key.and_then(|range| plain.get(range)).filter(|_| owner == self.owner());
        let key = key.ok_or_else(|| self.forged(what()))?.to_vec();
        let body = [&plain[..1], &plain[2 + key.len()..]].concat();
        Ok((read_body(&body)?, key))
    }

    /// Returns the effect, its step, and whether its request was encrypted.
    pub(super) fn open_effect(self, mut row: EffectRow) -> Result<(EffectRow, u64, Owner)> {
        let mut is_sealed = None;
        if row.request.codec == Codec::Sealed {
            let EffectRow { step, task, kind, ref name, ref key, .. } = row;
            let place = EffectPlace { step, task, key, kind, name };
            (row.request, row.key) = self.open_request(&place, &row.request)?;
            is_sealed = Some(self.owner());
        }
        if let Some(outcome) = &row.outcome {
            let what = || format!("the outcome of {} of step {}", row.name, row.step);
            let (outcome, owner) =
                self.open(&outcome_place(&row.key, row.status), outcome, what)?;
            let expected = owner.map_or(is_sealed, |_| Some(self.owner_of_outcome(&row.key)));
            if owner != expected {
                return Err(self.forged(what()));
            }
            row.outcome = Some(outcome);
        }
        let step = row.step;
        Ok((row, step, is_sealed))
    }

    pub(super) fn open_question(self, row: OpenInterrupt) -> Result<OpenInterrupt> {
        if row.payload.codec != Codec::Sealed {
            return Ok(row);
        }
        let stored = row.id.0;
        let place = EffectPlace {
            step: row.step,
            task: row.task,
            key: stored.as_bytes(),
            kind: EffectKind::Interrupt,
            name: &row.kind,
        };
        let (payload, key) = self.open_request(&place, &row.payload)?;
        let id =
            Uuid::from_slice(&key).map_err(|_| Error::damaged("an interrupt's id is no UUID"))?;
        Ok(OpenInterrupt { id: InterruptId(id), payload, ..row })
    }
}

fn seal_body(
    keys: &Keyring,
    owner: [u8; 16],
    place: &SealContext,
    body: &Encoded,
    before: &[u8],
) -> Result<Encoded> {
    let plain = [&[body.codec as u8], before, &body.bytes].concat();
    Ok(Encoded { codec: Codec::Sealed, bytes: seal(keys, owner, place, plain)? })
}

fn read_body(plain: &[u8]) -> Result<Encoded> {
    let (codec, bytes) = plain.split_first().unwrap_or((&0, &[]));
    let codec = Codec::from_number(i16::from(*codec))
        .ok_or_else(|| Error::damaged(format!("unknown codec: {codec}")))?;
    Ok(Encoded { codec, bytes: bytes.to_vec() })
}

fn step_place(kind: &str, row: &StepRow) -> SealContext {
    let seq = row.seq.to_le_bytes();
    let version = row.schema_version.to_le_bytes();
    SealContext::new(kind, &[&seq, &version, row.kind.as_str().as_bytes(), row.run.0.as_bytes()])
}

fn snapshot_place(kind: &str, row: &SnapshotRow) -> SealContext {
    SealContext::new(kind, &[&row.seq.to_le_bytes(), &row.schema_version.to_le_bytes()])
}

fn pending_place(row: &PendingRow) -> SealContext {
    SealContext::new("pending", &[&row.step.to_le_bytes(), &row.task.to_le_bytes()])
}

fn event_place(row: &EventRow) -> SealContext {
    let first = row.first.to_le_bytes();
    let count = row.count.to_le_bytes();
    SealContext::new("event", &[&first, &count, &row.step.to_le_bytes(), row.run.0.as_bytes()])
}

fn outcome_place(key: &[u8], status: EffectStatus) -> SealContext {
    SealContext::new("outcome", &[key, status.as_str().as_bytes()])
}
