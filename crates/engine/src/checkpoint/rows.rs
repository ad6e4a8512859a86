//! What a store keeps, row by row.

use std::borrow::Cow;
use std::time::Duration;

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

use super::{
    EffectKind, EffectStatus, Encoded, Error, RunStatus, StepKind, ThreadStatus, sealed::shown,
};
use crate::graph::{Frontier, StoredWrite};
use crate::ids::{InterruptId, RunId, ThreadId};

/// What is needed to make a thread.
#[derive(Clone, Debug)]
pub struct NewThread {
    pub id: ThreadId,
    /// Name of the graph that runs it.
    pub graph: String,
    pub title: Option<String>,
    /// For a subgraph's thread: the thread at the top.
    pub root: Option<ThreadId>,
    /// For a subgraph's thread: its place, such as `team:3:0`; empty at the top.
    pub namespace: String,
    pub tenant: String,
}

/// A thread as listed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ThreadInfo {
    pub id: ThreadId,
    pub graph: String,
    pub title: Option<String>,
    pub root: Option<ThreadId>,
    pub namespace: String,
    pub tenant: String,
    /// Number of the newest committed step; 0 when there is none.
    pub head: u64,
    pub status: ThreadStatus,
    /// Why the thread is failed or parked; of one that is idle, why its last run failed although it came to its end.
    pub error: Option<String>,
    /// Fencing token of the newest claim.
    pub fence: u64,
    /// Who holds the lease, while one is held.
    pub owner: Option<String>,
    pub lease_until: Option<DateTime<Utc>>,
    /// The thread and step this one was forked from; steps up to that one are shared, not copied.
    ///
    /// When that thread is deleted or truncated this becomes its own origin, or `None`.
    pub forked_from: Option<(ThreadId, u64)>,
    pub created_at: DateTime<Utc>,
    pub updated_at: DateTime<Utc>,
}

impl ThreadInfo {
    /// Returns how the thread stands for those who look at it: one at rest whose last run failed is failed.
    ///
    /// Lists and counts of stores go by this.
    pub fn overall_status(&self) -> ThreadStatus {
        match self.status {
            ThreadStatus::Idle if self.error.is_some() => ThreadStatus::Failed,
            status => status,
        }
    }

    /// Returns the title as people may see it: one that could not be decrypted says so.
    pub fn shown_title(&self) -> Option<Cow<'_, str>> {
        self.title.as_deref().map(shown)
    }

    /// Returns the error as people may see it.
    pub fn shown_error(&self) -> Option<Cow<'_, str>> {
        self.error.as_deref().map(shown)
    }

    /// Returns whether nothing happened to the thread since it was seen: no claim, no step, no answer.
    pub(super) fn is_as_seen(&self, seen: &Self) -> bool {
        let place = |info: &Self| (info.fence, info.head, info.status, info.updated_at);
        place(self) == place(seen)
    }

    /// Refuses a claim of the thread for as long as it is held.
    pub(super) fn busy(self) -> Error {
        Error::Busy {
            thread: self.id,
            owner: self.owner.unwrap_or_default(),
            until: self.lease_until.unwrap_or(self.updated_at),
        }
    }

    /// Returns how the thread stands once it is imported.
    ///
    /// A copy of a thread that was under way or queued waits for a person: its original may still run, and
    /// no worker is to do the same a second time.
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
    pub kind: StepKind,
    pub run: RunId,
    /// Version of the state's schema that `delta` was written with.
    pub schema_version: u32,
    /// What the step's tasks wrote: the encoded list of their updates in frontier order, with their nodes.
    pub delta: Encoded,
    /// Encoded next frontier: what runs after this step.
    #[serde(with = "super::dump::lines::verbatim")]
    pub frontier: Vec<u8>,
    /// BLAKE3 over the previous step's hash, the decoded delta and the frontier.
    #[serde(with = "super::hex")]
    pub hash: [u8; 32],
    /// Set by the store (database time).
    pub at: DateTime<Utc>,
}

impl StepRow {
    /// Reads what runs after the step.
    ///
    /// # Errors
    /// [`Error::Damaged`] that names the step.
    pub fn frontier(&self) -> Result<Frontier, Error> {
        serde_json::from_slice(&self.frontier).map_err(|error| self.damaged("frontier", error))
    }

    /// Reads what the step's tasks wrote, in the form in which it is stored; [`read_delta`](super::read_delta) reads it as a state's.
    ///
    /// # Errors
    /// [`Error::Damaged`] that names the step; what [`Encoded::to_json_bytes`](super::Encoded::to_json_bytes) says of a delta that cannot be decoded.
    pub fn written(&self) -> Result<Vec<StoredWrite>, Error> {
        let json = self.delta.to_json_bytes()?;
        serde_json::from_slice(&json).map_err(|error| self.damaged("delta", error))
    }

    fn damaged(&self, what: &str, error: serde_json::Error) -> Error {
        Error::Damaged(format!("the {what} of step {} cannot be read: {error}", self.seq))
    }
}

/// A step to be committed.
#[derive(Clone, Debug)]
pub struct Commit {
    pub thread: ThreadId,
    /// Fencing token from the claim.
    pub fence: u64,
    /// `seq` must be head + 1; `at` is ignored.
    pub step: StepRow,
    /// Thread status after the step.
    pub status: ThreadStatus,
    /// Whether pending writes for this step exist and are to be deleted with the commit.
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
    pub seq: u64,
    pub schema_version: u32,
    pub state: Encoded,
    /// The names of the texts that the state names, as a JSON list; none where there are none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub blobs: Option<Encoded>,
}

/// What one finished task wrote in a step that is not committed yet.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PendingRow {
    /// The step it belongs to (head + 1).
    pub step: u64,
    /// Index of the task in the frontier.
    pub task: u32,
    pub body: Encoded,
}

/// Everything needed to restore a thread at a step.
#[derive(Clone, Debug)]
pub struct Loaded {
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
    #[serde(with = "super::hex")]
    pub key: Vec<u8>,
    /// Order within the task, from 0.
    pub number: u32,
    pub kind: EffectKind,
    pub status: EffectStatus,
    /// Model role, `server.tool`, or interrupt kind.
    pub name: String,
    pub request: Encoded,
    pub outcome: Option<Encoded>,
    /// How many times it was sent.
    pub attempt: u32,
    pub started_at: DateTime<Utc>,
    pub ended_at: Option<DateTime<Utc>>,
}

/// The recorded end, or the next attempt, of a started effect.
#[derive(Clone, Debug)]
pub struct EffectSettlement {
    pub step: u64,
    pub task: u32,
    pub key: Vec<u8>,
    pub status: EffectStatus,
    pub outcome: Option<Encoded>,
    pub attempt: u32,
}

/// A question that waits for a person.
#[derive(Clone, Debug, PartialEq)]
pub struct OpenInterrupt {
    pub id: InterruptId,
    /// The thread that asks; a subgraph's own where a subgraph asks.
    pub thread: ThreadId,
    pub step: u64,
    pub task: u32,
    /// `clarification`, `approval`, `outcome_unknown`, `elicitation`, or a graph's own.
    pub kind: String,
    pub payload: Encoded,
    pub asked_at: DateTime<Utc>,
}

/// One run of a thread.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunRow {
    pub id: RunId,
    /// Number within the thread, from 1.
    pub number: u32,
    pub status: RunStatus,
    /// Why it ended, in a word of its graph's; absent while it lasts and where an older version ended it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub finish_reason: Option<String>,
    pub started_at: DateTime<Utc>,
    pub ended_at: Option<DateTime<Utc>>,
}

/// How a run ends and leaves its thread.
#[derive(Clone, Copy, Debug)]
pub struct RunEnd<'a> {
    pub run: RunStatus,
    pub thread: ThreadStatus,
    /// Why the thread is failed or parked, or why the run failed that left it at rest.
    pub error: Option<&'a str>,
    /// Why the run ended, in a word of its graph's.
    pub finish_reason: Option<&'a str>,
}

impl RunEnd<'_> {
    /// Says that a run and its thread stand so, and no more.
    pub fn new(run: RunStatus, thread: ThreadStatus) -> Self {
        Self { run, thread, error: None, finish_reason: None }
    }
}

/// Which threads to list.
#[derive(Clone, Debug, Default)]
pub struct ThreadFilter {
    /// Only those that stand so, by [`ThreadInfo::overall_status`].
    pub status: Option<ThreadStatus>,
    /// Also list subgraphs' threads.
    pub with_children: bool,
    /// Only the subgraphs' threads under this one, which is at the top.
    pub root: Option<ThreadId>,
    /// Only threads not updated since.
    pub updated_before: Option<DateTime<Utc>>,
    /// At most this many, newest update first.
    pub limit: Option<u32>,
}

/// Which threads a worker looks for.
#[derive(Clone, Debug)]
pub struct WorkFilter {
    /// Name of the graph that it runs.
    pub graph: String,
    /// A tenant whose threads are none of its business.
    pub except_tenant: Option<String>,
    /// How the names of holders on its own machine are marked; of these it knows whether they live.
    pub machine: String,
    /// Only threads that have been queued for so long.
    pub queued_for: Duration,
    /// At most this many, longest waiting first.
    pub limit: u32,
    /// After so many of them, which were looked at already.
    pub skip: u32,
}

/// A thread that may continue, by what the store knows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Waiting {
    pub thread: ThreadId,
    /// Who holds it under a lease that has not run out: it continues only if that one is dead.
    pub holder: Option<String>,
}

/// A batch of events of one run.
#[derive(Clone, Debug, PartialEq)]
pub struct EventRow {
    /// Id of its first event; ids begin at 1 in each thread and have no gap.
    pub first: u64,
    /// How many events it holds, at least one.
    pub count: u32,
    pub run: RunId,
    /// Newest step whose end has been told when the batch ends.
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
    /// Id of the newest event; 0 when there was none.
    pub last: u64,
    /// Newest step whose end has been told; 0 when there was none.
    pub step: u64,
}

/// Runs of a thread whose traces are to be delivered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PendingExport {
    pub thread: ThreadId,
    /// Number of the first run that was not delivered.
    pub from_run: u32,
    /// Number of the last run that is due.
    pub to_run: u32,
    pub since: DateTime<Utc>,
}
