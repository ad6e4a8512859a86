//! The rows that an operation stands for; both sides make the same.

use chrono::DateTime;
use perihelion::checkpoint::{
    Commit, EffectKind, EffectRow, EffectSettlement, EffectStatus, Encoded, NewThread, PendingRow,
    SnapshotRow, StepKind, StepRow, ThreadStatus, chain_hash,
};
use perihelion::ids::{InterruptId, RunId, ThreadId};
use serde_json::{Value, json};

use super::op::EffectName;

pub fn encoded(value: &Value) -> Encoded {
    Encoded::json(value, usize::MAX).unwrap()
}

pub fn new_thread(thread: usize, id: ThreadId, root: Option<ThreadId>) -> NewThread {
    let namespace = root.map_or_else(String::new, |_| format!("child:{thread}:0"));
    NewThread { id, graph: "g".into(), title: None, root, namespace, tenant: "t".into() }
}

pub fn commit(
    (thread, fence, run): (ThreadId, u64, RunId),
    (seq, previous): (u64, [u8; 32]),
    (body, status, clears_pending): (u8, ThreadStatus, bool),
) -> Commit {
    let delta = encoded(&json!({ "wrote": body }));
    let frontier = format!("[{body}]").into_bytes();
    let hash = chain_hash(&previous, seq, &delta.bytes, &frontier);
    let kind = [StepKind::Input, StepKind::Loop, StepKind::Edit][usize::from(body % 3)];
    let at = DateTime::UNIX_EPOCH;
    let step = StepRow { seq, kind, run, schema_version: 1, delta, frontier, hash, at };
    Commit { thread, fence, step, status, clears_pending, blobs: Vec::new() }
}

/// What a snapshot holds follows from the steps, so two of one step are equal.
pub fn snapshot(seq: u64) -> SnapshotRow {
    SnapshotRow { seq, schema_version: 1, state: encoded(&json!({ "at": seq })), blobs: None }
}

pub fn pending(step: u64, task: u32, body: u8) -> PendingRow {
    PendingRow { step, task, body: encoded(&json!({ "task wrote": body })) }
}

pub fn question_id(thread: ThreadId, what: u8) -> InterruptId {
    InterruptId::derive(thread, 0, 0, &[what])
}

pub fn key(thread: ThreadId, name: EffectName) -> Vec<u8> {
    match name.is_question {
        true => question_id(thread, name.what).0.as_bytes().to_vec(),
        false => vec![name.what; 32],
    }
}

/// `count` tells the moment, so that no two effects began at the same one.
pub fn effect(
    thread: ThreadId,
    step: u64,
    name: EffectName,
    (status, body, count): (EffectStatus, u8, u32),
) -> EffectRow {
    let is_started = status == EffectStatus::Started;
    let at = DateTime::from_timestamp_micros(1_700_000_000_000_000 + i64::from(count)).unwrap();
    EffectRow {
        step,
        task: name.task,
        key: key(thread, name),
        number: count,
        kind: if name.is_question { EffectKind::Interrupt } else { EffectKind::Tool },
        status,
        name: "effect".to_owned(),
        request: encoded(&json!({ "what": name.what, "body": body })),
        outcome: (!is_started).then(|| encoded(&json!({ "outcome": body }))),
        attempt: 1,
        started_at: at,
        ended_at: (!is_started).then_some(at),
    }
}

pub fn settlement(
    thread: ThreadId,
    step: u64,
    name: EffectName,
    (status, body, attempt): (EffectStatus, Option<u8>, u32),
) -> EffectSettlement {
    let outcome = body.map(|body| encoded(&json!({ "settled": body })));
    EffectSettlement { step, task: name.task, key: key(thread, name), status, outcome, attempt }
}
