//! The checksum of a stored row, so that damage is found when the row is read.
//!
//! The hash chain covers committed steps; checksums cover the journal, pending writes and snapshots. A row of a version
//! without checksums has none, and is accepted. They contain no secret: they find damage, not forgery, which encryption
//! finds.

use std::collections::BTreeMap;

use super::limits::{moment, text};
use super::{
    EffectRow, EffectSettlement, EffectStatus, Encoded, Error, PendingRow, Result, SnapshotRow,
};
use crate::ids::ThreadId;

/// 128 bits: enough to find damage, and small compared with any row.
pub(super) type Sum = [u8; 16];

struct Hasher(blake3::Hasher);

impl Hasher {
    fn new(what: &str) -> Self {
        Self(blake3::Hasher::new_derive_key(&format!("perihelion row checksum v1: {what}")))
    }

    fn number(mut self, number: u64) -> Self {
        self.0.update(&number.to_le_bytes());
        self
    }

    fn bytes(mut self, bytes: &[u8]) -> Self {
        self.0.update(&(bytes.len() as u64).to_le_bytes());
        self.0.update(bytes);
        self
    }

    fn body(self, body: &Encoded) -> Self {
        self.number(body.codec as u64).bytes(&body.bytes)
    }

    fn maybe_body(self, body: Option<&Encoded>) -> Self {
        match body {
            Some(body) => self.body(body),
            None => self,
        }
    }

    fn end(self) -> Sum {
        let mut sum = Sum::default();
        self.0.finalize_xof().fill(&mut sum);
        sum
    }
}

/// Sums up what never changes in an effect: where and when it was asked for, and what.
pub(super) fn request(thread: ThreadId, row: &EffectRow) -> Sum {
    Hasher::new("request")
        .bytes(thread.0.as_bytes())
        .number(row.step)
        .number(row.task.into())
        .bytes(&row.key)
        .number(row.number.into())
        .bytes(row.kind.as_str().as_bytes())
        .bytes(text(&row.name).as_bytes())
        .number(moment(row.started_at).timestamp_micros().unsigned_abs())
        .body(&row.request)
        .end()
}

pub(super) fn outcome(
    key: &[u8],
    status: EffectStatus,
    attempt: u32,
    outcome: Option<&Encoded>,
) -> Sum {
    Hasher::new("outcome")
        .bytes(key)
        .bytes(status.as_str().as_bytes())
        .number(attempt.into())
        .maybe_body(outcome)
        .end()
}

pub(super) fn outcome_of(row: &EffectRow) -> Sum {
    outcome(&row.key, row.status, row.attempt, row.outcome.as_ref())
}

pub(super) fn outcome_at(end: &EffectSettlement) -> Sum {
    outcome(&end.key, end.status, end.attempt, end.outcome.as_ref())
}

pub(super) fn pending(row: &PendingRow) -> Sum {
    Hasher::new("pending").number(row.step).number(row.task.into()).body(&row.body).end()
}

pub(super) fn snapshot(row: &SnapshotRow) -> Sum {
    let version = u64::from(row.schema_version);
    let hasher = Hasher::new("snapshot").number(row.seq).number(version).body(&row.state);
    hasher.maybe_body(row.blobs.as_ref()).end()
}

pub(super) fn check_effect(
    thread: ThreadId,
    row: &EffectRow,
    sums: [Option<Vec<u8>>; 2],
) -> Result<()> {
    let [of_request, of_outcome] = sums;
    let expected = outcome_of(row);
    let damaged = if is_other(of_request, request(thread, row)) {
        "request"
    } else if is_other(of_outcome, expected) {
        "outcome"
    } else {
        return Ok(());
    };
    let reason = format!(
        "the {damaged} of its recorded call {} (task {}, call {}) does not fit its checksum",
        row.name, row.task, row.number
    );
    Err(Error::corrupt(thread, row.step, reason))
}

/// Checks any other row of a step; `what` names it.
pub(super) fn check(
    thread: ThreadId,
    seq: u64,
    stored: Option<Vec<u8>>,
    expected: Sum,
    what: &str,
) -> Result<()> {
    if is_other(stored, expected) {
        return Err(Error::corrupt(thread, seq, format!("{what} does not fit its checksum")));
    }
    Ok(())
}

fn is_other(stored: Option<Vec<u8>>, expected: Sum) -> bool {
    stored.is_some_and(|stored| stored != expected)
}

/// How many effects a task was counted to have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Counted {
    pub step: u64,
    pub task: u32,
    pub effects: u64,
}

/// Checks that no effect is missing that was counted when it was recorded.
pub(super) fn check_counts(
    thread: ThreadId,
    counted: &[Counted],
    rows: &[EffectRow],
) -> Result<()> {
    let mut found: BTreeMap<(u64, u32), u64> = BTreeMap::new();
    for row in rows {
        *found.entry((row.step, row.task)).or_default() += 1;
    }
    let short = counted.iter().find_map(|one| {
        let there = found.get(&(one.step, one.task)).copied().unwrap_or(0);
        (there < one.effects).then_some((one, there))
    });
    let Some((one, there)) = short else { return Ok(()) };
    let reason = format!(
        "of the {} recorded calls of its task {} only {there} are there",
        one.effects, one.task
    );
    Err(Error::corrupt(thread, one.step, reason))
}
