//! The rows that an operation stands for; both sides make the same.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use chrono::DateTime;
use perihelion_engine::checkpoint::{
    BlobRow, Commit, EffectKind, EffectRow, EffectSettlement, EffectStatus, Encoded, NewThread,
    PendingRow, SnapshotRow, StepKind, StepRow, ThreadDump, ThreadStatus, blob_row, chain_hash,
};
use perihelion_engine::graph::{BlobName, BlobText, step_at_the_top};
use perihelion_engine::ids::{InterruptId, RunId, ThreadId};
use serde_json::{Value, json};

use super::op::EffectName;

pub fn encoded(value: &Value) -> Encoded {
    Encoded::json(value, usize::MAX).unwrap()
}

/// Threads whose ids are those of subgraphs' threads of the first one.
const PLACED: RangeInclusive<usize> = 1..=2;

/// Returns the id of a thread, given the ids of threads at the top.
pub fn thread_id(thread: usize, top: impl Fn(usize) -> ThreadId) -> ThreadId {
    if PLACED.contains(&thread) { top(0).child(&namespace(thread)) } else { top(thread) }
}

fn namespace(thread: usize) -> String {
    format!("child:{thread}:0")
}

pub fn new_thread(thread: usize, id: ThreadId, root: Option<ThreadId>) -> NewThread {
    let namespace = root.map_or_else(String::new, |_| namespace(thread));
    NewThread { id, graph: "g".into(), title: None, root, namespace, tenant: "t".into() }
}

pub fn commit(
    (thread, fence, run): (ThreadId, u64, RunId),
    (seq, previous): (u64, [u8; 32]),
    (body, status, clears_pending): (u8, ThreadStatus, bool),
    top: (ThreadId, u64),
) -> Commit {
    let delta = encoded(&json!([written(body)]));
    let frontier = format!("[{body}]").into_bytes();
    let hash = chain_hash(&previous, seq, &delta.bytes, &frontier);
    let kinds = [StepKind::Input, StepKind::Loop, StepKind::Edit, StepKind::Loop, StepKind::Fork];
    let kind = kinds[usize::from(body % 5)];
    let at = DateTime::UNIX_EPOCH;
    let step = StepRow { seq, kind, run, schema_version: 1, delta, frontier, hash, at };
    Commit { thread, fence, step, status, clears_pending, blobs: blobs(body, top) }
}

/// What a snapshot holds follows from the steps, so two of one step are equal.
pub fn snapshot(seq: u64) -> SnapshotRow {
    SnapshotRow { seq, schema_version: 1, state: encoded(&json!({ "at": seq })), blobs: None }
}

pub fn pending(step: u64, task: u32, body: u8) -> PendingRow {
    PendingRow { step, task, body: encoded(&json!([1, written(body)])) }
}

/// Some of what is written names a text; there are few, so that the same one is brought more than once.
fn text(body: u8) -> Option<BlobText> {
    let text = format!("text {}", body / 4 % 3);
    body.is_multiple_of(4).then(|| BlobText { name: BlobName::of(&text), text: text.into() })
}

fn written(body: u8) -> Value {
    let names: Vec<BlobName> = text(body).into_iter().map(|text| text.name).collect();
    json!({ "u": { "wrote": body }, "b": names })
}

/// The texts that come with what is written, of the thread at the top and of its step.
pub fn blobs(body: u8, (owner, step): (ThreadId, u64)) -> Vec<BlobRow> {
    text(body).iter().map(|text| blob_row(owner, step, text, usize::MAX).unwrap()).collect()
}

/// Returns the bodies that bring the texts which what was written names.
pub fn bodies_of(written: &Value) -> Vec<u8> {
    let written = written.as_array().into_iter().flatten();
    let bodies = written.filter_map(|one| u8::try_from(one["u"]["wrote"].as_u64()?).ok());
    bodies.filter(|body| text(*body).is_some()).collect()
}

/// Every text that is named is there, from the first step that names it.
pub fn texts_of(dump: &ThreadDump) -> Vec<BlobRow> {
    let mut texts: BTreeMap<[u8; 32], BlobRow> = BTreeMap::new();
    for one in std::iter::once(dump).chain(&dump.children) {
        let steps = one.steps.iter().map(|row| (row.seq, &row.delta));
        let pending = one.pending.iter().map(|row| (row.step, &row.body));
        for (seq, body) in steps.chain(pending) {
            let step = step_at_the_top(&one.info.namespace, seq);
            for body in bodies_of(&body.decode().unwrap()) {
                for row in blobs(body, (dump.info.id, step)) {
                    let known = texts.entry(row.hash).or_insert(row);
                    known.step = known.step.min(step);
                }
            }
        }
    }
    texts.into_values().collect()
}

pub fn question_id(thread: ThreadId, what: u8) -> InterruptId {
    InterruptId::derive(thread, 0, 0, &[what])
}

pub fn key(thread: ThreadId, name: EffectName) -> Vec<u8> {
    if name.is_question {
        question_id(thread, name.what).0.as_bytes().to_vec()
    } else {
        vec![name.what; 32]
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
