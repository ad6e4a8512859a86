//! Named points at which a test can stop a process: before and after every send, commit and acknowledgement.
//!
//! Enter at [`wrap`]. The points have no effect unless the feature `failpoints` is on and [`arm`] was called. Only
//! tests, examples and benchmarks switch the feature on. The function passed to [`arm`] decides what happens at a
//! point: the torture harness counts each point, and kills, stops or delays its process.

use std::sync::OnceLock;

/// The side of the work: before or after it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// Before the work starts.
    Before,
    /// After the work ended.
    After,
}

macro_rules! points {
    ($($(#[$doc:meta])* $point:ident = $name:literal,)+) => {
        /// A piece of work whose outcome a crash, a pause or a broken connection can leave in doubt.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Point { $($(#[$doc])* $point,)+ }

        impl Point {
            /// Every point.
            pub const ALL: &'static [Self] = &[$(Self::$point,)+];

            /// Returns the name of one side of the point.
            pub const fn name(self, side: Side) -> &'static str {
                match (self, side) {
                    $((Self::$point, Side::Before) => concat!($name, ".before"),
                    (Self::$point, Side::After) => concat!($name, ".after"),)+
                }
            }
        }
    };
}

points! {
    /// A thread is made.
    ThreadCreate = "thread.create",
    /// The lease is claimed and the fencing token raised.
    Claim = "claim",
    /// The same, from a holder that is known to be dead.
    Takeover = "takeover",
    /// The lease is extended.
    Renew = "renew",
    /// A run begins under the claim.
    RunBegin = "run.begin",
    /// A run ends and the lease is given back.
    RunEnd = "run.end",
    /// An input is committed.
    InputCommit = "input.commit",
    /// A step is committed.
    StepCommit = "step.commit",
    /// The store reads whether a commit whose reply was lost is there: an ambiguous commit.
    CommitReread = "commit.reread",
    /// The write of a finished task is stored while other tasks of its step still run.
    PendingSave = "pending.save",
    /// A snapshot is written.
    SnapshotWrite = "snapshot.write",
    /// A model is asked.
    ModelSend = "model.send",
    /// Its answer is recorded.
    ModelCommit = "model.outcome.commit",
    /// The intent of a tool call is recorded.
    ToolIntent = "tool.intent.commit",
    /// A further attempt at a tool call is recorded.
    ToolAttempt = "tool.attempt.commit",
    /// A tool call is sent.
    ToolSend = "tool.send",
    /// The outcome of a tool call is recorded.
    ToolCommit = "tool.outcome.commit",
    /// The time or a random number is drawn and recorded.
    DrawCommit = "draw.commit",
    /// The observations of a node since its last effect are recorded separately, because the node passes them on or
    /// ends.
    NoteCommit = "note.commit",
    /// A question to a person is recorded.
    QuestionCommit = "question.commit",
    /// A person's answer is recorded.
    AnswerCommit = "answer.commit",
    /// A wake-up call is removed from the queue in the database.
    QueueTake = "queue.take",
    /// Events for listeners in other processes are stored.
    EventCommit = "event.commit",
    /// A trace is sent.
    TraceSend = "trace.send",
    /// It is noted that a trace arrived.
    TracePaid = "trace.paid",
    /// A listener receives the event of a committed step.
    Ack = "ack",
    /// The file of a thread at rest is written.
    ArchiveWrite = "archive.write",
    /// The rows of that thread are deleted.
    ArchiveCommit = "archive.commit",
    /// The rows of an archived thread are written again.
    ArchiveReturn = "archive.return",
    /// Its file is removed.
    ArchiveRemove = "archive.remove",
    /// A write is refused because its fencing token is stale; there is only an after.
    Fenced = "write.fenced",
    /// A call's outcome is unknown: before it is decided upon, as a crash left it; after, as its server left it.
    CallUnknown = "call.unknown",
}

type Act = Box<dyn Fn(Point, Side) + Send + Sync>;

static ACT: OnceLock<Act> = OnceLock::new();

/// Passes one side of a point.
#[inline]
pub fn reach(point: Point, side: Side) {
    if cfg!(feature = "failpoints")
        && let Some(act) = ACT.get()
    {
        act(point, side);
    }
}

/// Does a piece of work between the two sides of its point.
#[inline]
pub async fn wrap<T>(point: Point, work: impl Future<Output = T>) -> T {
    reach(point, Side::Before);
    let result = work.await;
    reach(point, Side::After);
    result
}

/// Calls `act` at every point from now on; returns false if it was called before, or if the feature is off.
pub fn arm(act: impl Fn(Point, Side) + Send + Sync + 'static) -> bool {
    cfg!(feature = "failpoints") && ACT.set(Box::new(act)).is_ok()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_side_of_every_point_has_a_unique_name() {
        let names = |side| Point::ALL.iter().map(move |point| point.name(side));
        let all: BTreeSet<&str> = names(Side::Before).chain(names(Side::After)).collect();
        assert_eq!(all.len(), 2 * Point::ALL.len());
    }
}
