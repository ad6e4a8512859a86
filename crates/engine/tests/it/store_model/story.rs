//! The model as a state machine, and what it says each operation must come to.

use perihelion_engine::checkpoint::ThreadInfo;
use perihelion_engine::ids::{RunId, ThreadId};
use proptest::prelude::*;
use proptest_state_machine::ReferenceStateMachine;
use serde_json::{Value, json};
use uuid::Uuid;

use super::model::Model;
use super::op::{Ahead, Op, THREADS, any_op};
use super::rows;
use super::view::{Names, effects};

/// Runs that a story is about.
pub const RUNS: u8 = 4;

#[derive(Clone)]
pub struct Story {
    pub model: Model,
    names: Names,
    /// Operations so far; tells effects apart.
    pub count: u32,
    /// What the newest operation must come to.
    pub expected: Value,
    /// Where its writer believed to be: the token, the step, the hash before it.
    pub aim: Aim,
}

/// What an operation that names a step or a token relatively means, absolutely.
#[derive(Clone, Copy, Debug, Default)]
pub struct Aim {
    pub fence: u64,
    pub step: u64,
    pub previous: [u8; 32],
}

/// A failing story is told by its operations; they begin with nothing.
impl std::fmt::Debug for Story {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Story")
    }
}

/// The ids that the model uses; each store gets fresh ones.
pub fn thread_id(thread: usize) -> ThreadId {
    rows::thread_id(thread, |thread| ThreadId(Uuid::from_u128(thread as u128 + 1)))
}

pub fn run_id(run: u8) -> RunId {
    RunId(Uuid::from_u128(u128::from(run) + 1))
}

/// A subgraph's thread names the thread at the top, which has none above it.
fn top(model: &Model, root: Option<usize>, thread: usize) -> Option<usize> {
    let is_top = |root: &usize| {
        *root != thread
            && model.threads.get(&thread_id(*root)).is_none_or(|one| one.info.root.is_none())
    };
    root.filter(is_top)
}

impl Story {
    fn aim(&self, op: &Op) -> Aim {
        let at = |thread: usize, late: u64, ahead: Ahead| {
            let id = thread_id(thread);
            let (head, previous) = self.model.tip(id);
            let fence = self.model.fence(id).saturating_sub(late);
            Aim { fence, step: (head + 1).saturating_add_signed(i64::from(ahead)), previous }
        };
        match op {
            Op::Renew { fence, .. } | Op::BeginRun { fence, .. } | Op::EndRun { fence, .. } => {
                at(fence.thread, fence.late, 0)
            }
            Op::Commit { fence, ahead, .. } | Op::Pending { fence, ahead, .. } => {
                at(fence.thread, fence.late, *ahead)
            }
            Op::Record { fence, name, .. } | Op::Settle { fence, name, .. } => {
                at(fence.thread, fence.late, name.ahead)
            }
            _ => Aim::default(),
        }
    }

    /// Everything there is to see of a thread: its export, and how it loads at each step.
    pub fn everything_of(&self, thread: usize) -> Value {
        let id = thread_id(thread);
        let names = &self.names;
        let dump = self.model.export(id);
        let mut all = vec![names.result(&dump, |dump| names.dump(dump))];
        for at in 0..=dump.map_or(0, |dump| dump.info.head) {
            all.push(names.result(&self.model.load(id, Some(at)), |it| names.loaded(it)));
        }
        json!(all)
    }

    fn run(&mut self, op: &Op) -> Value {
        let Self { model, names, count, aim, .. } = self;
        let Aim { fence: token, step, previous } = *aim;
        let done = |_: &()| json!(null);
        let info = |info: &ThreadInfo| names.info(info);
        match op {
            Op::Create { thread, root } => {
                let root = top(model, *root, *thread).map(thread_id);
                names.result(
                    &model.create(rows::new_thread(*thread, thread_id(*thread), root)),
                    info,
                )
            }
            Op::Info { thread } => names.result(&model.info(thread_id(*thread)), info),
            Op::Claim { thread, owner, is_long, force } => {
                let owner = format!("owner {owner}");
                names.result(&model.claim(thread_id(*thread), &owner, *is_long, *force), info)
            }
            Op::Renew { fence, is_long } => {
                names.result(&model.renew(thread_id(fence.thread), token, *is_long), done)
            }
            Op::BeginRun { fence, run } => {
                let number = model.begin_run(thread_id(fence.thread), token, run_id(*run));
                names.result(&number, |number| json!(number))
            }
            Op::EndRun { fence, run, run_status, status, error } => {
                let own = (thread_id(fence.thread), token, run_id(*run));
                let error = error.then_some("it failed");
                names.result(&model.end_run(own, (*run_status, *status), error), done)
            }
            Op::Commit { fence, body, status, clears, .. } => {
                let own = (thread_id(fence.thread), token, run_id(0));
                let top = model.top(own.0, step);
                let commit = rows::commit(own, (step, previous), (*body, *status, *clears), top);
                names.result(&model.commit(&commit), done)
            }
            Op::Pending { fence, task, body, .. } => {
                let row = rows::pending(step, *task, *body);
                names.result(&model.save_pending(thread_id(fence.thread), token, row), done)
            }
            Op::Load { thread, at } => {
                names.result(&model.load(thread_id(*thread), *at), |it| names.loaded(it))
            }
            Op::History { thread, before, limit } => {
                let steps = model.history(thread_id(*thread), *before, *limit);
                names.result(&steps, |steps| names.steps(steps))
            }
            Op::Snapshot { thread, seq } => {
                names.result(&model.put_snapshot(thread_id(*thread), rows::snapshot(*seq)), done)
            }
            Op::Record { fence, name, status, body } => {
                let thread = thread_id(fence.thread);
                let row = rows::effect(thread, step, *name, (*status, *body, *count));
                names.result(&model.record(thread, token, row), done)
            }
            Op::Settle { fence, name, status, body, attempt } => {
                let thread = thread_id(fence.thread);
                let end = rows::settlement(thread, step, *name, (*status, *body, *attempt));
                names.result(&model.settle(thread, token, &end), done)
            }
            Op::Effects { thread, step } => {
                names.result(&model.effects(thread_id(*thread), *step), |rows| effects(rows))
            }
            Op::EffectsFrom { thread, step } => {
                names.result(&model.effects_from(thread_id(*thread), *step), |rows| effects(rows))
            }
            Op::Open { thread } => {
                let open = model.open_interrupts(thread_id(*thread));
                names.result(&open, |open| names.open(open))
            }
            Op::Answer { thread, what, body } => {
                let id = rows::question_id(thread_id(*thread), *what);
                names.result(&model.answer(id, rows::encoded(&json!(body))), done)
            }
            Op::Runs { thread } => {
                names.result(&model.runs(thread_id(*thread)), |runs| names.runs(runs))
            }
            Op::Fork { source, at, thread } => {
                let new = rows::new_thread(*thread, thread_id(*thread), None);
                names.result(&model.fork(thread_id(*source), *at, new), info)
            }
            Op::List { status, with_children, limit } => {
                let infos = model.threads.values().map(|one| &one.info);
                let listed = infos
                    .filter(|info| status.is_none_or(|status| info.overall_status() == status))
                    .filter(|info| *with_children || info.root.is_none());
                listing(listed.map(|info| names.info(info)).collect(), *limit)
            }
            Op::Delete { thread } => names.result(&model.delete(thread_id(*thread)), done),
            Op::Truncate { thread, seq } => {
                names.result(&model.truncate(thread_id(*thread), *seq), done)
            }
            Op::Export { thread } => {
                let dump = model.export(thread_id(*thread));
                let seen = names.result(&dump, |dump| names.dump(dump));
                if let Ok(dump) = dump {
                    model.dumps.insert(*thread, dump);
                }
                seen
            }
            Op::Import { thread } => match model.dumps.get(thread).cloned() {
                Some(dump) => names.result(&model.import(&dump), done),
                None => Value::Null,
            },
            Op::Reopen => Value::Null,
        }
    }
}

/// A list in an order both sides share; of a shortened one only the length is known.
pub fn listing(mut infos: Vec<Value>, limit: Option<u32>) -> Value {
    infos.sort_by_key(|info| info["id"].as_u64());
    match limit {
        Some(limit) => json!(infos.len().min(limit as usize)),
        None => json!(infos),
    }
}

/// Returns the root as the model takes it: what is asked for may be no thread at the top.
pub fn effective_root(story: &Story, root: Option<usize>, thread: usize) -> Option<usize> {
    top(&story.model, root, thread)
}

impl ReferenceStateMachine for Story {
    type State = Self;
    type Transition = Op;

    fn init_state() -> BoxedStrategy<Self> {
        let names = Names {
            threads: (0..THREADS).map(|thread| (thread_id(thread), thread)).collect(),
            runs: (0..RUNS).map(|run| (run_id(run), run)).collect(),
        };
        let model = Model::default();
        let expected = Value::Null;
        let aim = Aim::default();
        Just(Self { model, names, count: 0, expected, aim }).boxed()
    }

    fn transitions(_: &Self) -> BoxedStrategy<Op> {
        any_op()
    }

    fn apply(mut state: Self, op: &Op) -> Self {
        state.count += 1;
        state.aim = state.aim(op);
        state.expected = state.run(op);
        state
    }
}
