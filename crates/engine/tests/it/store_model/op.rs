//! What can be asked of a store, with small numbers in the place of ids, and how it is drawn.

use perihelion_engine::checkpoint::{EffectStatus, RunStatus, ThreadStatus};
use proptest::prelude::*;

/// Threads that a story is about.
pub const THREADS: usize = 5;

/// A step in relation to the one that is due: the same, the one before, or one too far.
pub type Ahead = i8;

#[derive(Clone, Copy, Debug)]
pub struct Fence {
    pub thread: usize,
    /// How many claims ago the token was handed out.
    pub late: u64,
}

/// Names one effect of a thread.
#[derive(Clone, Copy, Debug)]
pub struct EffectName {
    pub ahead: Ahead,
    pub task: u32,
    pub what: u8,
    pub is_question: bool,
}

#[derive(Clone, Debug)]
pub enum Op {
    Create {
        thread: usize,
        root: Option<usize>,
    },
    Info {
        thread: usize,
    },
    Claim {
        thread: usize,
        owner: u8,
        is_long: bool,
        force: bool,
    },
    Renew {
        fence: Fence,
        is_long: bool,
    },
    BeginRun {
        fence: Fence,
        run: u8,
    },
    EndRun {
        fence: Fence,
        run: u8,
        run_status: RunStatus,
        status: ThreadStatus,
        error: bool,
    },
    Commit {
        fence: Fence,
        ahead: Ahead,
        body: u8,
        status: ThreadStatus,
        clears: bool,
    },
    Pending {
        fence: Fence,
        ahead: Ahead,
        task: u32,
        body: u8,
    },
    Load {
        thread: usize,
        at: Option<u64>,
    },
    History {
        thread: usize,
        before: Option<u64>,
        limit: u32,
    },
    Snapshot {
        thread: usize,
        seq: u64,
    },
    Record {
        fence: Fence,
        name: EffectName,
        status: EffectStatus,
        body: u8,
    },
    Settle {
        fence: Fence,
        name: EffectName,
        status: EffectStatus,
        body: Option<u8>,
        attempt: u32,
    },
    Effects {
        thread: usize,
        step: Option<u64>,
    },
    EffectsFrom {
        thread: usize,
        step: u64,
    },
    Open {
        thread: usize,
    },
    Answer {
        thread: usize,
        what: u8,
        body: u8,
    },
    Runs {
        thread: usize,
    },
    Fork {
        source: usize,
        at: u64,
        thread: usize,
    },
    List {
        status: Option<ThreadStatus>,
        with_children: bool,
        limit: Option<u32>,
    },
    Delete {
        thread: usize,
    },
    Truncate {
        thread: usize,
        seq: u64,
    },
    Export {
        thread: usize,
    },
    /// Takes the newest export of the thread back in.
    Import {
        thread: usize,
    },
    /// Opens the data again, as another process would.
    Reopen,
}

fn thread() -> impl Strategy<Value = usize> {
    prop_oneof![6 => Just(0), 3 => Just(1), 3 => 0..THREADS]
}

fn fence() -> impl Strategy<Value = Fence> {
    let late = prop_oneof![12 => Just(0), 2 => Just(1), 1 => 0..4_u64];
    (thread(), late).prop_map(|(thread, late)| Fence { thread, late })
}

fn ahead() -> impl Strategy<Value = Ahead> {
    prop_oneof![12 => Just(0), 1 => Just(-1), 1 => Just(1)]
}

fn status() -> impl Strategy<Value = ThreadStatus> {
    prop_oneof![
        4 => Just(ThreadStatus::Busy),
        1 => Just(ThreadStatus::Idle),
        1 => Just(ThreadStatus::Interrupted),
        1 => Just(ThreadStatus::Failed),
        1 => Just(ThreadStatus::Parked),
    ]
}

fn run_status() -> impl Strategy<Value = RunStatus> {
    prop_oneof![Just(RunStatus::Done), Just(RunStatus::Failed), Just(RunStatus::Interrupted)]
}

fn effect_status() -> impl Strategy<Value = EffectStatus> {
    prop_oneof![
        4 => Just(EffectStatus::Started),
        2 => Just(EffectStatus::Done),
        1 => Just(EffectStatus::Failed),
    ]
}

fn name() -> impl Strategy<Value = EffectName> {
    (ahead(), 0..3_u32, 0..3_u8, any::<bool>())
        .prop_map(|(ahead, task, what, is_question)| EffectName { ahead, task, what, is_question })
}

fn step() -> impl Strategy<Value = u64> {
    0..9_u64
}

/// Draws one; those that move a thread on come most often.
pub fn any_op() -> BoxedStrategy<Op> {
    let option = proptest::option::of::<std::ops::Range<u64>>;
    prop_oneof![
        4 => (0..THREADS, proptest::option::weighted(0.3, 0..THREADS))
            .prop_map(|(thread, root)| Op::Create { thread, root }),
        1 => thread().prop_map(|thread| Op::Info { thread }),
        6 => (thread(), 0..3_u8, any::<bool>(), any::<bool>()).prop_map(
            |(thread, owner, is_long, force)| Op::Claim { thread, owner, is_long, force }),
        1 => (fence(), any::<bool>()).prop_map(|(fence, is_long)| Op::Renew { fence, is_long }),
        2 => (fence(), 0..4_u8).prop_map(|(fence, run)| Op::BeginRun { fence, run }),
        2 => (fence(), 0..4_u8, run_status(), status(), any::<bool>()).prop_map(
            |(fence, run, run_status, status, error)| {
                Op::EndRun { fence, run, run_status, status, error }
            }),
        14 => (fence(), ahead(), any::<u8>(), status(), any::<bool>()).prop_map(
            |(fence, ahead, body, status, clears)| {
                Op::Commit { fence, ahead, body, status, clears }
            }),
        4 => (fence(), ahead(), 0..3_u32, any::<u8>()).prop_map(
            |(fence, ahead, task, body)| Op::Pending { fence, ahead, task, body }),
        3 => (thread(), option(0..9)).prop_map(|(thread, at)| Op::Load { thread, at }),
        2 => (thread(), option(0..9), 0..6_u32).prop_map(
            |(thread, before, limit)| Op::History { thread, before, limit }),
        4 => (thread(), step()).prop_map(|(thread, seq)| Op::Snapshot { thread, seq }),
        6 => (fence(), name(), effect_status(), any::<u8>()).prop_map(
            |(fence, name, status, body)| Op::Record { fence, name, status, body }),
        5 => (fence(), name(), effect_status(), proptest::option::of(0..2_u8), 1..4_u32).prop_map(
            |(fence, name, status, body, attempt)| {
                Op::Settle { fence, name, status, body, attempt }
            }),
        1 => (thread(), option(0..9)).prop_map(|(thread, step)| Op::Effects { thread, step }),
        1 => (thread(), step()).prop_map(|(thread, step)| Op::EffectsFrom { thread, step }),
        2 => thread().prop_map(|thread| Op::Open { thread }),
        3 => (thread(), 0..3_u8, any::<u8>()).prop_map(
            |(thread, what, body)| Op::Answer { thread, what, body }),
        1 => thread().prop_map(|thread| Op::Runs { thread }),
        4 => (thread(), step(), 0..THREADS).prop_map(
            |(source, at, thread)| Op::Fork { source, at, thread }),
        1 => (proptest::option::of(status()), any::<bool>(), proptest::option::of(0..4_u32))
            .prop_map(|(status, with_children, limit)| Op::List { status, with_children, limit }),
        2 => thread().prop_map(|thread| Op::Delete { thread }),
        3 => (thread(), step()).prop_map(|(thread, seq)| Op::Truncate { thread, seq }),
        3 => thread().prop_map(|thread| Op::Export { thread }),
        3 => thread().prop_map(|thread| Op::Import { thread }),
        1 => Just(Op::Reopen),
    ]
    .boxed()
}
