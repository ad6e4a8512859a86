//! Rows of the trait, encrypted and decrypted; each value at the place that it belongs to.

use super::super::{
    BlobRow, Codec, EffectKind, EffectRow, EffectStatus, Encoded, Error, EventRow, OpenInterrupt,
    PendingRow, SnapshotRow, StepRow,
};
use super::keyring::Keyring;
use super::seal::{SealContext, open, seal};
use crate::graph::BlobName;
use crate::ids::{InterruptId, ThreadId};

/// A value that was read, and whose it is; `None` for one that was never encrypted.
pub(super) type Owner = Option<[u8; 16]>;

fn owner_of(thread: ThreadId) -> [u8; 16] {
    *thread.0.as_bytes()
}

/// Encrypts a body with its codec.
fn seal_body(
    keys: &Keyring,
    owner: [u8; 16],
    place: &SealContext,
    body: &Encoded,
    before: &[u8],
) -> Result<Encoded, Error> {
    let mut plain = Vec::with_capacity(1 + before.len() + body.bytes.len() + 16);
    plain.push(body.codec as u8);
    plain.extend_from_slice(before);
    plain.extend_from_slice(&body.bytes);
    Ok(Encoded { codec: Codec::Sealed, bytes: seal(keys, owner, place, plain)? })
}

fn read_body(plain: &[u8]) -> Result<Encoded, Error> {
    let (codec, bytes) = plain.split_first().unwrap_or((&0, &[]));
    let codec = Codec::from_number(i16::from(*codec))
        .ok_or_else(|| Error::Damaged(format!("unknown codec: {codec}")))?;
    Ok(Encoded { codec, bytes: bytes.to_vec() })
}

fn step_place(kind: &str, row: &StepRow) -> SealContext {
    let seq = row.seq.to_le_bytes();
    let version = row.schema_version.to_le_bytes();
    SealContext::new(kind, &[&seq, &version, row.kind.as_str().as_bytes(), row.run.0.as_bytes()])
}

pub(super) fn seal_step(keys: &Keyring, thread: ThreadId, row: &StepRow) -> Result<StepRow, Error> {
    let owner = owner_of(thread);
    let delta = seal_body(keys, owner, &step_place("delta", row), &row.delta, &[])?;
    // The hash would betray a guessed content, so what stands in its column is a blinded one.
    let frontier = [&row.hash[..], &row.frontier].concat();
    let frontier = seal(keys, owner, &step_place("frontier", row), frontier)?;
    let hash = keys.first().blind_hash(thread, &row.hash);
    Ok(StepRow { delta, frontier, hash, ..row.clone() })
}

pub(super) fn open_step(
    keys: &Keyring,
    thread: ThreadId,
    row: StepRow,
) -> Result<(StepRow, Owner), Error> {
    if row.delta.codec != Codec::Sealed {
        return Ok((row, None));
    }
    let what = || format!("step {}", row.seq);
    let (delta, owner) = open(keys, &step_place("delta", &row), &row.delta.bytes, thread, what)?;
    let (frontier, same) = open(keys, &step_place("frontier", &row), &row.frontier, thread, what)?;
    let Some((hash, frontier)) = frontier.split_first_chunk::<32>().filter(|_| same == owner)
    else {
        return Err(Error::Forged { thread, what: what() });
    };
    let delta = read_body(&delta)?;
    let frontier = frontier.to_vec();
    Ok((StepRow { delta, frontier, hash: *hash, ..row }, Some(owner)))
}

fn snapshot_place(kind: &str, row: &SnapshotRow) -> SealContext {
    SealContext::new(kind, &[&row.seq.to_le_bytes(), &row.schema_version.to_le_bytes()])
}

pub(super) fn seal_snapshot(
    keys: &Keyring,
    thread: ThreadId,
    row: &SnapshotRow,
) -> Result<SnapshotRow, Error> {
    let owner = owner_of(thread);
    let state = seal_body(keys, owner, &snapshot_place("snapshot", row), &row.state, &[])?;
    let seal_names = |names| seal_body(keys, owner, &snapshot_place("texts", row), names, &[]);
    let blobs = row.blobs.as_ref().map(seal_names).transpose()?;
    Ok(SnapshotRow { state, blobs, ..*row })
}

pub(super) fn open_snapshot(
    keys: &Keyring,
    thread: ThreadId,
    row: SnapshotRow,
) -> Result<(SnapshotRow, Owner), Error> {
    if row.state.codec != Codec::Sealed {
        return Ok((row, None));
    }
    let what = || format!("the snapshot of step {}", row.seq);
    let place = snapshot_place("snapshot", &row);
    let (plain, owner) = open(keys, &place, &row.state.bytes, thread, what)?;
    let blobs = match &row.blobs {
        None => None,
        Some(names) => {
            let place = snapshot_place("texts", &row);
            let (plain, same) = open(keys, &place, &names.bytes, thread, what)?;
            if same != owner {
                return Err(Error::Forged { thread, what: what() });
            }
            Some(read_body(&plain)?)
        }
    };
    Ok((SnapshotRow { state: read_body(&plain)?, blobs, ..row }, Some(owner)))
}

/// Encrypts a text under a name that does not betray it.
pub(super) fn seal_blob(keys: &Keyring, row: &BlobRow) -> Result<BlobRow, Error> {
    let hash = keys.first().blind_text(row.owner, &row.hash);
    let place = SealContext::new("text", &[&hash]);
    let body = seal_body(keys, owner_of(row.owner), &place, &row.body, &[])?;
    Ok(BlobRow { hash, body, ..*row })
}

/// Decrypts a text and names it by what it is, so that one in the place of another is seen.
pub(super) fn open_blob(keys: &Keyring, thread: ThreadId, row: BlobRow) -> Result<BlobRow, Error> {
    if row.body.codec != Codec::Sealed {
        return Ok(row);
    }
    let place = SealContext::new("text", &[&row.hash]);
    let (plain, _) = open(keys, &place, &row.body.bytes, thread, || "a text".to_owned())?;
    let body = read_body(&plain)?;
    let hash = BlobName::of(&body.decode::<String>()?).hash;
    Ok(BlobRow { hash, body, ..row })
}

fn pending_place(row: &PendingRow) -> SealContext {
    SealContext::new("pending", &[&row.step.to_le_bytes(), &row.task.to_le_bytes()])
}

pub(super) fn seal_pending(
    keys: &Keyring,
    thread: ThreadId,
    row: &PendingRow,
) -> Result<PendingRow, Error> {
    let body = seal_body(keys, owner_of(thread), &pending_place(row), &row.body, &[])?;
    Ok(PendingRow { body, ..*row })
}

pub(super) fn open_pending(
    keys: &Keyring,
    thread: ThreadId,
    row: PendingRow,
) -> Result<(PendingRow, Owner), Error> {
    if row.body.codec != Codec::Sealed {
        return Ok((row, None));
    }
    let what = || format!("a pending write of step {}", row.step);
    let (plain, owner) = open(keys, &pending_place(&row), &row.body.bytes, thread, what)?;
    Ok((PendingRow { body: read_body(&plain)?, ..row }, Some(owner)))
}

fn event_place(row: &EventRow) -> SealContext {
    let first = row.first.to_le_bytes();
    let count = row.count.to_le_bytes();
    SealContext::new("event", &[&first, &count, &row.step.to_le_bytes(), row.run.0.as_bytes()])
}

pub(super) fn seal_event(
    keys: &Keyring,
    thread: ThreadId,
    row: &EventRow,
) -> Result<EventRow, Error> {
    let body = seal_body(keys, owner_of(thread), &event_place(row), &row.body, &[])?;
    Ok(EventRow { body, ..*row })
}

/// Events from before the first key was set open as they are.
pub(super) fn open_event(
    keys: &Keyring,
    thread: ThreadId,
    row: EventRow,
) -> Result<EventRow, Error> {
    if row.body.codec != Codec::Sealed {
        return Ok(row);
    }
    let what = || format!("the events {} to {}", row.first, row.last());
    let (plain, owner) = open(keys, &event_place(&row), &row.body.bytes, thread, what)?;
    if owner == owner_of(thread) {
        Ok(EventRow { body: read_body(&plain)?, ..row })
    } else {
        Err(Error::Forged { thread, what: what() })
    }
}

/// Where an effect stands, by what is stored of it in the open.
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
        let name = self.name.as_bytes();
        SealContext::new("request", &[&step, &task, self.key, kind, name])
    }
}

/// Whose an outcome is: the thread's, or the question's own, since a person answers by its id alone.
fn owner_of_outcome(thread: ThreadId, key: &[u8]) -> [u8; 16] {
    key.try_into().unwrap_or(owner_of(thread))
}

/// Encrypts an outcome for the effect with a key, which is the one it was asked for under, not the stored one.
pub(super) fn seal_outcome(
    keys: &Keyring,
    thread: ThreadId,
    key: &[u8],
    status: EffectStatus,
    outcome: &Encoded,
) -> Result<Encoded, Error> {
    let place = SealContext::new("outcome", &[key, status.as_str().as_bytes()]);
    seal_body(keys, owner_of_outcome(thread, key), &place, outcome, &[])
}

pub(super) fn seal_answer(
    keys: &Keyring,
    interrupt: InterruptId,
    answer: &Encoded,
) -> Result<Encoded, Error> {
    // The question's id is 16 bytes, so the thread named here is never looked at.
    let key = interrupt.0.as_bytes();
    seal_outcome(keys, ThreadId(interrupt.0), key, EffectStatus::Done, answer)
}

pub(super) fn seal_effect(
    keys: &Keyring,
    thread: ThreadId,
    row: &EffectRow,
) -> Result<EffectRow, Error> {
    let key = keys.first().blind(&row.key);
    let EffectRow { step, task, kind, ref name, .. } = *row;
    let place = EffectPlace { step, task, key: &key, kind, name }.of_request();
    let mut inside = vec![row.key.len() as u8];
    inside.extend_from_slice(&row.key);
    let request = seal_body(keys, owner_of(thread), &place, &row.request, &inside)?;
    let seal_outcome =
        |outcome: &Encoded| seal_outcome(keys, thread, &row.key, row.status, outcome);
    let outcome = row.outcome.as_ref().map(seal_outcome).transpose()?;
    Ok(EffectRow { key, request, outcome, ..row.clone() })
}

/// Reads a request and the key that it was asked for under.
fn open_request(
    keys: &Keyring,
    thread: ThreadId,
    place: &EffectPlace<'_>,
    request: &Encoded,
) -> Result<(Encoded, Vec<u8>), Error> {
    let what = || format!("the {} {} of step {}", place.kind.as_str(), place.name, place.step);
    let forged = || Error::Forged { thread, what: what() };
    let (plain, owner) = open(keys, &place.of_request(), &request.bytes, thread, what)?;
    let key = plain.get(1).map(|length| 2..2 + usize::from(*length));
    let key = key.and_then(|range| plain.get(range)).filter(|_| owner == owner_of(thread));
    let key = key.ok_or_else(forged)?.to_vec();
    let body = [&plain[..1], &plain[2 + key.len()..]].concat();
    Ok((read_body(&body)?, key))
}

/// Returns the effect, and whether its request was encrypted.
pub(super) fn open_effect(
    keys: &Keyring,
    thread: ThreadId,
    mut row: EffectRow,
) -> Result<(EffectRow, Owner), Error> {
    let mut is_sealed = None;
    if row.request.codec == Codec::Sealed {
        let EffectRow { step, task, kind, ref name, ref key, .. } = row;
        let place = EffectPlace { step, task, key, kind, name };
        (row.request, row.key) = open_request(keys, thread, &place, &row.request)?;
        is_sealed = Some(owner_of(thread));
    }
    let what = || format!("the outcome of {} of step {}", row.name, row.step);
    row.outcome = match row.outcome.take() {
        Some(outcome) if outcome.codec == Codec::Sealed => {
            let place = SealContext::new("outcome", &[&row.key, row.status.as_str().as_bytes()]);
            let (plain, owner) = open(keys, &place, &outcome.bytes, thread, what)?;
            if owner != owner_of_outcome(thread, &row.key) {
                return Err(Error::Forged { thread, what: what() });
            }
            Some(read_body(&plain)?)
        }
        Some(_) if is_sealed.is_some() => return Err(Error::Forged { thread, what: what() }),
        other => other,
    };
    Ok((row, is_sealed))
}

pub(super) fn open_question(keys: &Keyring, row: OpenInterrupt) -> Result<OpenInterrupt, Error> {
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
    let (payload, key) = open_request(keys, row.thread, &place, &row.payload)?;
    let id = uuid::Uuid::from_slice(&key)
        .map_err(|_| Error::Damaged("an interrupt's id is no UUID".to_owned()))?;
    Ok(OpenInterrupt { id: InterruptId(id), payload, ..row })
}
