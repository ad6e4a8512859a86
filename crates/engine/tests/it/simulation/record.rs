//! Everything that was seen while a seed was played; the invariants read it and nothing else.

use std::collections::HashMap;

use perihelion_engine::checkpoint::{EffectRow, StepRow};
use perihelion_engine::ids::{InterruptId, ThreadId};
use perihelion_engine::runner::ReplayReport;
use serde_json::Value;

use super::plan::Plan;

/// Number of something seen, in the order of time.
pub type Order = u64;

/// A write that its writer was told had taken hold.
#[derive(Debug)]
pub struct Ack {
    pub seq: u64,
    pub hash: [u8; 32],
}

/// A write of a finished task that was acknowledged.
#[derive(Debug)]
pub struct Kept {
    pub at: Order,
    pub step: u64,
    pub task: u32,
}

/// A node that began to run.
#[derive(Debug)]
pub struct Start {
    pub step: u64,
    pub task: u32,
    /// When the process that ran it took the thread.
    pub claimed_at: Order,
}

/// An action as its receiver saw it.
#[derive(Debug)]
pub struct Sent {
    pub key: String,
    pub thread: ThreadId,
    pub step: u64,
    pub task: u32,
    pub what: String,
    /// Which of the equal requests of its task.
    pub repeatable: bool,
}

/// A question to a model, as a process put it.
#[derive(Debug)]
pub struct AskedOfModel {
    /// When the process that asked took the thread.
    pub claimed_at: Order,
    pub about: OfModel,
}

/// The question of a model call, and when it was put, or when the record of its answer was acknowledged.
#[derive(Debug)]
pub struct OfModel {
    pub at: Order,
    pub process: usize,
    pub thread: ThreadId,
    pub step: u64,
    pub task: u32,
    pub key: String,
}

/// A person's attempt at an answer.
#[derive(Debug)]
pub struct Answered {
    pub id: InterruptId,
    pub kind: String,
    pub payload: Value,
    pub answer: Value,
    pub is_accepted: bool,
}

/// An answer as a node got it.
#[derive(Debug)]
pub struct Delivered {
    pub payload: Value,
    pub answer: Value,
}

/// A write under a token that was no longer the newest.
#[derive(Debug)]
pub struct Stale {
    pub what: &'static str,
    pub result: String,
    pub is_fenced: bool,
    pub changed: bool,
}

/// An action found without an outcome by a process that took the thread over.
#[derive(Debug)]
pub struct Orphan {
    pub key: String,
    pub attempt: u32,
}

/// How the thread stood at last.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum End {
    #[default]
    Unknown,
    Done,
    /// It fails again whenever it is resumed, as its plan says it must.
    Doomed(String),
    /// It neither ended nor waited for anybody.
    Stuck(String),
}

/// The steps that a story without faults leaves.
#[derive(Clone, Debug, PartialEq)]
pub struct Reference {
    pub head: u64,
    pub hash: Option<[u8; 32]>,
    pub end: End,
}

/// A thread forked from the story's end.
#[derive(Debug)]
pub struct Forked {
    pub at: u64,
    /// The steps up to `at` as the source had them, as the fork has them, and as it has them at the very end.
    pub source: Vec<StepRow>,
    pub before: Vec<StepRow>,
    pub after: Vec<StepRow>,
    /// Head, newest hash and end of the fork once it was run on; `None` where it was not.
    pub end: Option<Reference>,
    /// Whether the fork continues with exactly what the source had before it.
    pub is_same_story: bool,
}

#[derive(Debug, Default)]
pub struct Record {
    pub plan: Option<Plan>,
    pub acks: Vec<Ack>,
    /// Heads that callers of the runner were told.
    pub acknowledged: Vec<u64>,
    /// A reading that came after an acknowledgement and did not see it: head read, step acknowledged.
    pub rewinds: Vec<(u64, u64)>,
    pub kept: Vec<Kept>,
    pub starts: Vec<Start>,
    pub sent: Vec<Sent>,
    pub asked_of_models: Vec<AskedOfModel>,
    pub answered_by_models: Vec<OfModel>,
    pub answers: Vec<Answered>,
    pub delivered: Vec<Delivered>,
    /// Place of a draw → everything that was drawn there.
    pub draws: HashMap<(u64, u32, usize), Vec<u64>>,
    pub stale: Vec<Stale>,
    pub orphans: Vec<Orphan>,
    /// Errors that no fault explains.
    pub surprises: Vec<String>,
    pub end: End,
    pub head: u64,
    /// Own and shared steps that are left, oldest first.
    pub steps: Vec<StepRow>,
    /// Steps up to this one were dropped.
    pub base: u64,
    pub effects: Vec<EffectRow>,
    pub reference: Option<Reference>,
    /// Step, the state the store restores, the state folded from the steps alone.
    pub states: Vec<(u64, Value, Value)>,
    pub replay: Option<ReplayReport>,
    pub fork: Option<Forked>,
    pub faults: HashMap<&'static str, u64>,
}
