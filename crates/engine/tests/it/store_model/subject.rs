//! A store under test: does what an operation says and reports it in the model's terms.

use std::cell::RefCell;
use std::collections::HashMap;
use std::marker::PhantomData;
use std::sync::Arc;
use std::time::Duration;

use perihelion_engine::checkpoint::{self, Claim, Fence, RunEnd, Store, ThreadDump, ThreadFilter};
use perihelion_engine::ids::{RunId, ThreadId};
use proptest_state_machine::StateMachineTest;
use serde_json::{Value, json};

use super::op::{Op, THREADS};
use super::rows;
use super::story::{RUNS, Story, effective_root, listing, thread_id};
use super::view::{Names, effects};

/// The store of the test that runs on this thread.
pub struct Setup {
    pub runtime: tokio::runtime::Runtime,
    pub store: Arc<dyn Store>,
    /// Where it can be opened again; `None` for memory.
    pub url: Option<String>,
}

thread_local! {
    pub static SETUP: RefCell<Option<Setup>> = const { RefCell::new(None) };
}

fn with_setup<T>(work: impl FnOnce(&mut Setup) -> T) -> T {
    SETUP.with_borrow_mut(|setup| work(setup.as_mut().unwrap()))
}

/// One story's threads in the store.
pub struct Subject {
    threads: Vec<ThreadId>,
    runs: Vec<RunId>,
    names: Names,
    dumps: HashMap<usize, ThreadDump>,
}

pub struct StoreTest(PhantomData<()>);

impl StateMachineTest for StoreTest {
    type SystemUnderTest = Subject;
    type Reference = Story;

    fn init_test(_: &Story) -> Subject {
        with_setup(|setup| {
            setup.runtime.block_on(clear(setup.store.as_ref()));
        });
        let tops: Vec<ThreadId> = (0..THREADS).map(|_| ThreadId::new()).collect();
        let threads = (0..THREADS).map(|thread| rows::thread_id(thread, |top| tops[top]));
        let threads: Vec<ThreadId> = threads.collect();
        let runs: Vec<RunId> = (0..RUNS).map(|_| RunId::new()).collect();
        let names = Names {
            threads: threads.iter().copied().zip(0..).collect(),
            runs: runs.iter().copied().zip(0..).collect(),
        };
        Subject { threads, runs, names, dumps: HashMap::new() }
    }

    fn apply(mut subject: Subject, story: &Story, op: Op) -> Subject {
        let seen = with_setup(|setup| {
            if matches!(op, Op::Reopen) {
                if let Some(url) = &setup.url {
                    setup.runtime.block_on(setup.store.close());
                    setup.store = setup.runtime.block_on(checkpoint::open(url)).unwrap();
                }
                return Value::Null;
            }
            setup.runtime.block_on(subject.run(setup.store.as_ref(), story, &op))
        });
        assert_eq!(seen, story.expected, "{op:?}");
        subject
    }

    /// At the end everything there is to see is looked at.
    fn teardown(subject: Subject, story: Story) {
        with_setup(|setup| setup.runtime.block_on(subject.compare(setup.store.as_ref(), &story)));
    }
}

/// Leaves nothing of an earlier story, however it ended.
async fn clear(store: &dyn Store) {
    let all = ThreadFilter { with_children: true, ..ThreadFilter::default() };
    for info in store.list(&all).await.unwrap() {
        // A subgraph's thread went with the one above it.
        let _ = store.delete(info.id).await;
    }
}

/// Returns the thread at the top of one, and the step of it that is under way.
fn top(story: &Story, thread: usize, step: u64) -> (usize, u64) {
    let (top, step) = story.model.top(thread_id(thread), step);
    let place = (0..THREADS).find(|place| thread_id(*place) == top).unwrap_or(thread);
    (place, step)
}

impl Subject {
    async fn compare(&self, store: &dyn Store, story: &Story) {
        for (thread, id) in self.threads.iter().enumerate() {
            let expected = story.everything_of(thread);
            let dump = store.export(*id).await;
            let mut seen = vec![self.names.result(&dump, |dump| self.names.dump(dump))];
            let head = dump.map_or(0, |dump| dump.info.head);
            for at in 0..=head {
                let loaded = store.load(*id, Some(at)).await;
                seen.push(self.names.result(&loaded, |loaded| self.names.loaded(loaded)));
            }
            assert_eq!(json!(seen), expected, "thread {thread} at the end");
        }
    }

    async fn run(&mut self, store: &dyn Store, story: &Story, op: &Op) -> Value {
        let Self { threads, runs, names, dumps } = self;
        let id = |thread: usize| threads[thread];
        let done = |_: &()| json!(null);
        let ttl = |is_long: bool| Duration::from_secs(if is_long { 3600 } else { 0 });
        let aim = story.aim;
        match op {
            Op::Create { thread, root } => {
                let root = effective_root(story, *root, *thread).map(id);
                let made = store.create(rows::new_thread(*thread, id(*thread), root)).await;
                names.result(&made, |info| names.info(info))
            }
            Op::Info { thread } => {
                names.result(&store.info(id(*thread)).await, |info| names.info(info))
            }
            Op::Claim { thread, owner, is_long, force } => {
                let owner = format!("owner {owner}");
                let claimed = store
                    .claim(Claim {
                        force: *force,
                        ..Claim::new(id(*thread), &owner, ttl(*is_long))
                    })
                    .await;
                names.result(&claimed, |info| names.info(info))
            }
            Op::Renew { fence, is_long } => names.result(
                &store.renew(Fence::new(id(fence.thread), aim.fence), ttl(*is_long)).await,
                done,
            ),
            Op::BeginRun { fence, run } => {
                let run = runs[usize::from(*run)];
                let begun =
                    store.begin_run(Fence::new(id(fence.thread), aim.fence), run, false).await;
                let number = begun.map(|run| run.number);
                names.result(&number, |number| json!(number))
            }
            Op::EndRun { fence, run, run_status, status, error } => {
                let thread = id(fence.thread);
                let run = runs[usize::from(*run)];
                let error = error.then_some("it failed");
                let ended = store
                    .end_run(
                        Fence::new(thread, aim.fence),
                        run,
                        RunEnd { error, ..RunEnd::new(*run_status, *status) },
                    )
                    .await;
                names.result(&ended, done)
            }
            Op::Commit { fence, body, status, clears, .. } => {
                let token = (id(fence.thread), aim.fence, runs[0]);
                let tip = (aim.step, aim.previous);
                let top = top(story, fence.thread, aim.step);
                let top = (id(top.0), top.1);
                let commit = rows::commit(token, tip, (*body, *status, *clears), top);
                names.result(&store.commit(&commit).await, done)
            }
            Op::Pending { fence, task, body, .. } => {
                let row = rows::pending(aim.step, *task, *body);
                let top = top(story, fence.thread, aim.step);
                let blobs = rows::blobs(*body, (id(top.0), top.1));
                names.result(
                    &store
                        .save_pending(Fence::new(id(fence.thread), aim.fence), &row, &blobs)
                        .await,
                    done,
                )
            }
            Op::Load { thread, at } => {
                names.result(&store.load(id(*thread), *at).await, |it| names.loaded(it))
            }
            Op::History { thread, before, limit } => {
                let steps = store.history(id(*thread), *before, *limit).await;
                names.result(&steps, |steps| names.steps(steps))
            }
            Op::Snapshot { thread, seq } => {
                let kept = store.put_snapshot(id(*thread), &rows::snapshot(*seq)).await;
                names.result(&kept, done)
            }
            Op::Record { fence, name, status, body } => {
                let thread = id(fence.thread);
                let row = rows::effect(thread, aim.step, *name, (*status, *body, story.count));
                names.result(
                    &store
                        .record_effects(Fence::new(thread, aim.fence), std::slice::from_ref(&row))
                        .await,
                    done,
                )
            }
            Op::Settle { fence, name, status, body, attempt } => {
                let thread = id(fence.thread);
                let end = rows::settlement(thread, aim.step, *name, (*status, *body, *attempt));
                names.result(&store.settle_effect(Fence::new(thread, aim.fence), &end).await, done)
            }
            Op::Effects { thread, step } => {
                names.result(&store.effects(id(*thread), *step).await, |rows| effects(rows))
            }
            Op::EffectsFrom { thread, step } => {
                names.result(&store.effects_from(id(*thread), *step).await, |rows| effects(rows))
            }
            Op::Open { thread } => {
                names.result(&store.open_interrupts(id(*thread)).await, |open| names.open(open))
            }
            Op::Answer { thread, what, body } => {
                let question = rows::question_id(id(*thread), *what);
                names.result(&store.answer(question, &rows::encoded(&json!(body))).await, done)
            }
            Op::Runs { thread } => {
                names.result(&store.runs(id(*thread)).await, |runs| names.runs(runs))
            }
            Op::Fork { source, at, thread } => {
                let new = rows::new_thread(*thread, id(*thread), None);
                names.result(&store.fork(id(*source), *at, new).await, |info| names.info(info))
            }
            Op::List { status, with_children, limit } => {
                let filter = ThreadFilter {
                    status: *status,
                    with_children: *with_children,
                    limit: *limit,
                    ..ThreadFilter::default()
                };
                let listed = store.list(&filter).await.unwrap();
                listing(listed.iter().map(|info| names.info(info)).collect(), *limit)
            }
            Op::Delete { thread } => names.result(&store.delete(id(*thread)).await, done),
            Op::Truncate { thread, seq } => {
                names.result(&store.truncate(id(*thread), *seq).await, done)
            }
            Op::Export { thread } => {
                let dump = store.export(id(*thread)).await;
                let seen = names.result(&dump, |dump| names.dump(dump));
                if let Ok(dump) = dump {
                    dumps.insert(*thread, dump);
                }
                seen
            }
            Op::Import { thread } => match dumps.get(thread) {
                Some(dump) => names.result(&store.import(dump).await, done),
                None => Value::Null,
            },
            Op::Reopen => Value::Null,
        }
    }
}
