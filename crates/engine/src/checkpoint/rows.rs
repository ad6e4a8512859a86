//! What a store keeps, row by row.

use std::borrow::Cow;
use std::time::Duration;

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

use super::{Encoded, Error, sealed::shown};
use crate::ids::{InterruptId, RunId, ThreadId};

/// Makes an enum that is stored as its snake_case name and refuses unknown names.
macro_rules! stored_enum {
    ($(#[$doc:meta])* $name:ident { $($(#[$vdoc:meta])* $variant:ident = $text:literal),+ $(,)? }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
        pub enum $name { $($(#[$vdoc])* #[serde(rename = $text)] $variant),+ }

        impl $name {
            /// Returns the name as stored.
            pub fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $text),+ }
            }

            /// Reads a stored name.
            pub fn from_name(text: &str) -> Option<Self> {
                match text { $($text => Some(Self::$variant),)+ _ => None }
            }
        }
    };
}

stored_enum! {
    /// Where a thread stands between and during runs.
    ThreadStatus {
        /// Never run, or its last run is done.
        Idle = "idle",
        /// A run is under way, or was when its process died (then the lease has run out).
        Busy = "busy",
        /// Handed to the workers: anyone who claims it first continues with it.
        Queued = "queued",
        /// Waits for a person's answer.
        Interrupted = "interrupted",
        /// The last run failed; a resume tries the failed step again.
        Failed = "failed",
        /// The next node does not exist in this graph; a resume continues once it is back.
        Parked = "parked",
    }
}

stored_enum! {
    /// How a run stands.
    RunStatus {
        Running = "running",
        /// It ended for another to continue: submitted to the workers, or handed over by one that stopped.
        Queued = "queued",
        Done = "done",
        Interrupted = "interrupted",
        Failed = "failed",
        Cancelled = "cancelled",
    }
}

stored_enum! {
    /// What made a step.
    StepKind {
        /// A new input to the thread.
        Input = "input",
        /// A super-step of the graph.
        Loop = "loop",
        /// An edit of the state, as if a node had written it.
        Edit = "edit",
        /// A return to an earlier step of the same thread: the state is that step's, and so is what runs next.
        Fork = "fork",
    }
}

stored_enum! {
    /// What kind of outside thing an effect touched.
    EffectKind {
        Model = "model",
        Tool = "tool",
        Clock = "clock",
        Random = "random",
        /// A question to a person; its key is the [`InterruptId`].
        Interrupt = "interrupt",
        /// What a node observed; only a replay reads it back.
        Observed = "observed",
    }
}

stored_enum! {
    /// How an effect stands.
    EffectStatus {
        /// Recorded before it was sent (a tool call), or asked and not yet answered (an interrupt).
        Started = "started",
        /// The outcome is recorded.
        Done = "done",
        /// It failed in a way that is part of the record.
        Failed = "failed",
    }
}

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
    #[serde(with = "super::hex::digest")]
    pub hash: [u8; 32],
    /// Set by the store (database time).
    pub at: DateTime<Utc>,
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
    #[serde(with = "super::hex::key")]
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
pub struct Wanted {
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
