//! The rows of a store.

use std::borrow::Cow;

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

use super::{
    EffectKind, EffectStatus, Encoded, Error, Result, RunStatus, StepKind, ThreadStatus,
    sealed::shown,
};
use crate::graph::{Frontier, StoredWrite};
use crate::ids::{InterruptId, RunId, ThreadId};

/// The data of a new thread.
#[derive(Clone, Debug)]
pub struct NewThread {
    /// The ID.
    pub id: ThreadId,
    /// Name of the graph that runs it.
    pub graph: String,
    /// The title.
    pub title: Option<String>,
    /// For a subgraph's thread: the thread at the top.
    pub root: Option<ThreadId>,
    /// For a subgraph's thread: its place, such as `team:3:0`; empty at the top.
    pub namespace: String,
    /// The tenant that owns the thread.
    pub tenant: String,
}

/// A thread as listed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ThreadInfo {
    /// The ID.
    pub id: ThreadId,
    /// Name of the graph that runs it.
    pub graph: String,
    /// The title.
    pub title: Option<String>,
    /// The thread at the top, if this is the thread of a subgraph.
    pub root: Option<ThreadId>,
    /// The place of a subgraph, such as `team:3:0`; empty at the top.
    pub namespace: String,
    /// The tenant that owns the thread.
    pub tenant: String,
    /// Number of the newest committed step; 0 without steps.
    pub head: u64,
    /// The status.
    pub status: ThreadStatus,
    /// Why the thread is failed or parked; for an idle thread, why its last run failed although it reached the end of
    /// the graph.
    pub error: Option<String>,
    /// Fencing token of the newest claim.
    pub fence: u64,
    /// The holder of the lease, if there is one.
    pub owner: Option<String>,
    /// End of the lease, by the clock of the database.
    pub lease_until: Option<DateTime<Utc>>,
    /// The thread and step this one was forked from; steps up to that one are shared, not copied.
    ///
    /// When that thread is deleted or truncated this becomes its own origin, or `None`.
    pub forked_from: Option<(ThreadId, u64)>,
    /// When it was created, by the clock of the database.
    pub created_at: DateTime<Utc>,
    /// When it last changed, by the clock of the database.
    pub updated_at: DateTime<Utc>,
    /// The file to which it was moved, if it is archived.
    #[serde(skip)]
    pub archived: Option<String>,
}

impl ThreadInfo {
    /// Returns the status for display: an idle thread whose last run failed is failed.
    ///
    /// Lists and counts of stores go by this.
    pub fn overall_status(&self) -> ThreadStatus {
        match self.status {
            ThreadStatus::Idle if self.error.is_some() => ThreadStatus::Failed,
            status => status,
        }
    }

    /// Returns the thread at the top: its own id, or that of the thread whose subgraph it is.
    pub fn top(&self) -> ThreadId {
        self.root.unwrap_or(self.id)
    }

    /// Returns the title for display: a title that could not be decrypted is replaced by a note.
    pub fn shown_title(&self) -> Option<Cow<'_, str>> {
        self.title.as_deref().map(shown)
    }

    /// Returns the error as people may see it.
    pub fn shown_error(&self) -> Option<Cow<'_, str>> {
        self.error.as_deref().map(shown)
    }

    /// Returns whether the thread is unchanged since it was read: no claim, no step, no answer.
    pub(super) fn is_as_seen(&self, seen: &Self) -> bool {
        let place = |info: &Self| (info.fence, info.head, info.status, info.updated_at);
        place(self) == place(seen)
    }

    /// Rejects a claim of the thread while it has a holder.
    pub(super) fn busy(self) -> Error {
        Error::Busy {
            thread: self.id,
            owner: self.owner.unwrap_or_default(),
            until: self.lease_until.unwrap_or(self.updated_at),
        }
    }

    /// Returns the status of the thread after an import.
    ///
    /// A copy of a busy or queued thread waits for a person: its original may still run, and a worker must not repeat
    /// its effects.
    pub(super) fn imported(&self) -> (ThreadStatus, Option<&str>) {
        match self.status {
            ThreadStatus::Busy | ThreadStatus::Queued => (
                ThreadStatus::Failed,
                Some("it was exported in the middle of its run; resume it to continue from there"),
            ),
            status => (status, self.error.as_deref()),
        }
    }
}

/// One committed step.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StepRow {
    /// Position in the thread, from 1, without gaps.
    pub seq: u64,
    /// Its origin.
    pub kind: StepKind,
    /// ID of the run.
    pub run: RunId,
    /// Version of the state's schema that `delta` was written with.
    pub schema_version: u32,
    /// The writes of the step's tasks: the encoded list of their updates in frontier order, with their nodes.
    pub delta: Encoded,
    /// Encoded next frontier: the tasks of the next step.
    #[serde(with = "super::dump::lines::verbatim")]
    pub frontier: Vec<u8>,
    /// BLAKE3 over the previous step's hash, the decoded delta and the frontier.
    #[serde(with = "hex::serde")]
    pub hash: [u8; 32],
    /// Set by the store (database time).
    pub at: DateTime<Utc>,
}

impl StepRow {
    /// Reads what runs after the step.
    ///
    /// # Errors
    /// [`Error::Damaged`] that names the step.
    pub fn frontier(&self) -> Result<Frontier> {
        serde_json::from_slice(&self.frontier).map_err(|error| self.damaged("frontier", error))
    }

    /// Reads the writes of the step's tasks in their stored form; [`read_delta`](super::read_delta) reads them for a
    /// state.
    ///
    /// # Errors
    /// [`Error::Damaged`] with the step, and the errors of [`Encoded::to_json_bytes`](super::Encoded::to_json_bytes)
    /// for a delta that cannot be decoded.
    pub fn written(&self) -> Result<Vec<StoredWrite>> {
        let json = self.delta.to_json_bytes()?;
        serde_json::from_slice(&json).map_err(|error| self.damaged("delta", error))
    }

    pub(crate) const FILLER: &[u8] = b"[]";

    /// Returns whether it is an empty edit, which has the number of a step that a crash lost.
    pub fn is_filler(&self) -> bool {
        self.delta.bytes == Self::FILLER
    }

    fn damaged(&self, what: &str, error: serde_json::Error) -> Error {
        Error::damaged(format!("the {what} of step {} cannot be read: {error}", self.seq))
    }
}

/// A step to be committed.
#[derive(Clone, Debug)]
pub struct Commit {
    /// The thread.
    pub thread: ThreadId,
    /// Fencing token from the claim.
    pub fence: u64,
    /// `seq` must be head + 1; `at` is ignored.
    pub step: StepRow,
    /// Thread status after the step.
    pub status: ThreadStatus,
    /// Whether pending writes for this step exist, which the commit deletes.
    pub clears_pending: bool,
    /// The texts that the step names and that are not kept yet.
    pub blobs: Vec<BlobRow>,
}

/// A text that the states of a thread and of its subgraphs' threads name, and do not hold.
#[derive(Clone, Debug, PartialEq)]
pub struct BlobRow {
    /// The thread at the top, whose text it is.
    pub owner: ThreadId,
    /// The first step of that thread that names it.
    pub step: u64,
    /// BLAKE3 of the text.
    pub hash: [u8; 32],
    /// The text as a JSON string.
    pub body: Encoded,
}

/// The whole state at a step.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SnapshotRow {
    /// The step that it belongs to.
    pub seq: u64,
    /// Version of the state’s schema that it was written with.
    pub schema_version: u32,
    /// The encoded state.
    pub state: Encoded,
    /// The names of the texts that the state references, as a JSON list; `None` without texts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub blobs: Option<Encoded>,
}

/// The write of a finished task in a step that is not committed yet.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PendingRow {
    /// The step it belongs to (head + 1).
    pub step: u64,
    /// Index of the task in the frontier.
    pub task: u32,
    /// The encoded value.
    pub body: Encoded,
}

/// Everything needed to restore a thread at a step.
#[derive(Clone, Debug)]
pub struct Loaded {
    /// The thread.
    pub info: ThreadInfo,
    /// The newest snapshot at or before the wanted step, own or shared.
    pub snapshot: Option<SnapshotRow>,
    /// Steps after the snapshot, oldest first, up to the wanted step.
    pub steps: Vec<StepRow>,
    /// Pending writes of step head + 1; empty when an older step was asked for.
    pub pending: Vec<PendingRow>,
}

/// One recorded effect.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct EffectRow {
    /// The step during which it happened (head + 1 at that time).
    pub step: u64,
    /// Index of the task in the frontier.
    pub task: u32,
    /// BLAKE3 key for effects (32 bytes), the id for interrupts (16 bytes).
    #[serde(with = "hex::serde")]
    pub key: Vec<u8>,
    /// Order within the task, from 0.
    pub number: u32,
    /// Its origin.
    pub kind: EffectKind,
    /// The status.
    pub status: EffectStatus,
    /// Model role, `server.tool`, or interrupt kind.
    pub name: String,
    /// The encoded request; its hash is part of the key.
    pub request: Encoded,
    /// The encoded outcome, once there is one.
    pub outcome: Option<Encoded>,
    /// How many times it was sent.
    pub attempt: u32,
    /// When it started, by the clock of the database.
    pub started_at: DateTime<Utc>,
    /// When it ended, by the clock of the database.
    pub ended_at: Option<DateTime<Utc>>,
}

/// The recorded end, or the next attempt, of a started effect.
#[derive(Clone, Debug)]
pub struct EffectSettlement {
    /// The step during which it happened.
    pub step: u64,
    /// Index of the task in the frontier.
    pub task: u32,
    /// Key of the effect, as in [`EffectRow::key`].
    pub key: Vec<u8>,
    /// The status.
    pub status: EffectStatus,
    /// The encoded outcome, once there is one.
    pub outcome: Option<Encoded>,
    /// How many times it was sent.
    pub attempt: u32,
}

/// A question that waits for a person.
#[derive(Clone, Debug, PartialEq)]
pub struct OpenInterrupt {
    /// The ID.
    pub id: InterruptId,
    /// The thread that asks, which can be the thread of a subgraph.
    pub thread: ThreadId,
    /// The step during which it happened.
    pub step: u64,
    /// Index of the task in the frontier.
    pub task: u32,
    /// `clarification`, `approval`, `outcome_unknown`, `elicitation`, or a graph's own.
    pub kind: String,
    /// The encoded question.
    pub payload: Encoded,
    /// When it was asked, by the clock of the database.
    pub asked_at: DateTime<Utc>,
}

/// One run of a thread.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunRow {
    /// The ID.
    pub id: RunId,
    /// Number within the thread, from 1.
    pub number: u32,
    /// The status.
    pub status: RunStatus,
    /// Why it ended, in a word of its graph; `None` during the run, and for runs that an older version ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub finish_reason: Option<String>,
    /// When it started, by the clock of the database.
    pub started_at: DateTime<Utc>,
    /// When it ended, by the clock of the database.
    pub ended_at: Option<DateTime<Utc>>,
}

/// How a run ends and leaves its thread.
#[derive(Clone, Copy, Debug)]
pub struct RunEnd<'a> {
    /// ID of the run.
    pub run: RunStatus,
    /// The thread.
    pub thread: ThreadStatus,
    /// Why the thread is failed or parked, or why the run failed that left it at rest.
    pub error: Option<&'a str>,
    /// Why the run ended, in a word of its graph's.
    pub finish_reason: Option<&'a str>,
}

impl RunEnd<'_> {
    /// Makes an end with the statuses of a run and its thread alone.
    pub fn new(run: RunStatus, thread: ThreadStatus) -> Self {
        Self { run, thread, error: None, finish_reason: None }
    }
}

/// A batch of events of one run.
#[derive(Clone, Debug, PartialEq)]
pub struct EventRow {
    /// Id of its first event; ids begin at 1 in each thread and have no gap.
    pub first: u64,
    /// How many events it holds, at least one.
    pub count: u32,
    /// ID of the run.
    pub run: RunId,
    /// Newest step whose end is published by the end of the batch.
    pub step: u64,
    /// The encoded list of the events.
    pub body: Encoded,
    /// Set by the store (database time).
    pub at: DateTime<Utc>,
}

impl EventRow {
    /// Returns the id of its last event.
    pub fn last(&self) -> u64 {
        (self.first + u64::from(self.count)).saturating_sub(1)
    }
}

/// How far a thread's log of events reaches.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EventPosition {
    /// ID of the newest event; 0 without events.
    pub last: u64,
    /// Newest step whose end was published; 0 without one.
    pub step: u64,
}

/// Runs of a thread whose traces must be exported.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PendingExport {
    /// The thread.
    pub thread: ThreadId,
    /// Number of the first run that was not delivered.
    pub from_run: u32,
    /// Number of the last run that is due.
    pub to_run: u32,
    /// When the export became due.
    pub since: DateTime<Utc>,
}
