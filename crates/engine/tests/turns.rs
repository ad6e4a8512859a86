//! The reads of a turn do not grow with the age of its thread, and cached states are never stale.
#![expect(clippy::unwrap_used, reason = "a test ends at what it did not expect")]

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use perihelion_engine::checkpoint::{
    Keyring, MemoryStore, PostgresStore, SealedStore, SqliteStore, Store,
};
use perihelion_engine::graph::{Context, END, GraphBuilder, Log, NodeError, NodeOutput, node_fn};
use perihelion_engine::ids::ThreadId;
use perihelion_engine::observer::{self, Observer};
use perihelion_engine::runner::{INPUT, RunOptions, Runner, compact};
use perihelion_test_database::TestDatabase;
use serde_json::json;

perihelion_engine::graph_state! {
    pub struct Talk, update TalkUpdate, version 1 {
        lines: Log<String> => append,
        newest: String => overwrite,
    }
}

/// Rows that were read to restore threads: steps, and bytes of snapshots.
static READ: Mutex<Option<HashMap<ThreadId, (usize, usize)>>> = Mutex::new(None);

struct Reads;

impl Reads {
    fn add(thread: ThreadId, steps: usize, bytes: usize) {
        let mut read = READ.lock().unwrap_or_else(PoisonError::into_inner);
        let of_thread = read.get_or_insert_default().entry(thread).or_default();
        *of_thread = (of_thread.0 + steps, of_thread.1 + bytes);
    }

    /// Returns the reads of a thread since the last call.
    fn taken(thread: ThreadId) -> (usize, usize) {
        let mut read = READ.lock().unwrap_or_else(PoisonError::into_inner);
        read.get_or_insert_default().remove(&thread).unwrap_or_default()
    }
}

impl Observer for Reads {
    fn steps_folded(&self, thread: ThreadId, steps: usize) {
        Self::add(thread, steps, 0);
    }

    fn snapshot_read(&self, thread: ThreadId, bytes: usize) {
        Self::add(thread, 0, bytes);
    }
}

async fn answer(ctx: Context<Talk>) -> Result<NodeOutput<Talk>, NodeError> {
    let line = format!("{} {}", ctx.state().lines.len(), "answer ".repeat(300));
    Ok(TalkUpdate::new().lines(vec![line]).newest("answer".into()).into())
}

fn runner(store: &Arc<dyn Store>) -> Runner<Talk> {
    let graph = GraphBuilder::new("talk").node("answer", node_fn(answer)).entry("answer");
    Runner::new(graph.edge("answer", END).build().unwrap(), Arc::clone(store))
}

async fn ask(runner: &Runner<Talk>, thread: ThreadId, turn: usize) {
    let input = TalkUpdate::new().lines(vec![format!("question {turn}")]).newest("question".into());
    runner.start(thread, input, RunOptions::default()).await.unwrap();
}

/// A database file in a separate directory, removed with this value.
struct Place(PathBuf);

impl Place {
    fn make() -> Self {
        let place = std::env::temp_dir().join(format!("turns-{}", uuid::Uuid::new_v4()));
        std::fs::create_dir(&place).unwrap();
        Self(place)
    }

    async fn open(&self) -> Arc<dyn Store> {
        Arc::new(SqliteStore::open(self.0.join("t.db").to_str().unwrap()).await.unwrap())
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn sealed(store: Arc<dyn Store>) -> Arc<dyn Store> {
    Arc::new(SealedStore::new(store, Keyring::new([("k".to_owned(), [7; 32])]).unwrap()))
}

/// Asks a number of questions, each followed by the reads of a client, and compares the reads of each turn.
async fn reads_stay_flat(store: Arc<dyn Store>, turns: usize) {
    observer::install(Reads);
    let runner = runner(&store);
    let thread = ThreadId::new();
    let mut base = 0;
    for turn in 1..=turns {
        ask(&runner, thread, turn).await;
        for at in [None, Some(base), None] {
            runner.state(thread, at).await.unwrap();
        }
        let head = runner.state(thread, None).await.unwrap().seq;
        let read = Reads::taken(thread);
        // The input and the answer, once as the turn begins and once after it; and no snapshot, however large it is.
        assert!(read.0 <= 4 && read.1 == 0, "turn {turn} read {read:?}");
        base = head;
    }
    let state = runner.state(thread, None).await.unwrap().state;
    assert_eq!(state.lines.len(), 2 * turns);
    store.close().await;
}

/// 37 B7
#[tokio::test]
async fn a_turn_on_an_old_thread_in_sqlite_reads_as_little_as_on_a_young_one() {
    let place = Place::make();
    reads_stay_flat(place.open().await, 120).await;
    reads_stay_flat(sealed(place.open().await), 60).await;
    reads_stay_flat(Arc::new(MemoryStore::new()), 120).await;
}

/// 37 B7
#[tokio::test]
async fn a_turn_on_an_old_thread_in_postgres_reads_as_little_as_on_a_young_one() {
    let Some(database) = TestDatabase::make().await else { return };
    let open = async || Arc::new(PostgresStore::open(&database.url).await.unwrap());
    reads_stay_flat(open().await, 120).await;
    reads_stay_flat(sealed(open().await), 60).await;
}

/// Reads a thread with this process's cache, and without it.
async fn same_for_all(known: &Runner<Talk>, fresh: Arc<dyn Store>, thread: ThreadId) {
    let unknowing = runner(&fresh);
    for at in [None, Some(2), None] {
        let views = [known.state(thread, at).await, unknowing.state(thread, at).await];
        let views = views.map(|view| match view {
            Ok(view) => json!([view.seq, view.next, *view.state]),
            Err(error) => json!(error.to_string()),
        });
        let [known, unknowing] = views;
        assert_eq!(known, unknowing, "at {at:?}");
    }
    fresh.close().await;
}

async fn is_never_stale(open: impl AsyncFn() -> Arc<dyn Store>) {
    let store = open().await;
    let other = open().await;
    let known = runner(&store);
    let another = runner(&other);
    let thread = ThreadId::new();
    let check = async || same_for_all(&known, open().await, thread).await;
    for turn in 1..=3 {
        ask(&another, thread, turn).await;
        check().await;
    }
    another.go_back(thread, 2).await.unwrap();
    check().await;
    let edit = TalkUpdate::new().newest("edited".into());
    another.update_state(thread, edit, END).await.unwrap();
    check().await;
    ask(&known, thread, 4).await;
    check().await;
    ask(&another, thread, 5).await;
    let dump = other.export(thread).await.unwrap();
    compact::<Talk>(other.as_ref(), thread, 1).await.unwrap();
    check().await;
    // The same thread again, up to the same number of steps, with others in them.
    other.delete(thread).await.unwrap();
    check().await;
    for turn in 0..u32::try_from(dump.info.head).unwrap().div_ceil(2) {
        ask(&another, thread, 100 + turn as usize).await;
    }
    check().await;
    // And as it was before.
    other.delete(thread).await.unwrap();
    other.import(&dump).await.unwrap();
    check().await;
    let input = TalkUpdate::new().newest("once more".into());
    another.update_state(thread, input, INPUT).await.unwrap();
    check().await;
    known.resume(thread, RunOptions::default()).await.unwrap();
    check().await;
    store.close().await;
    other.close().await;
}

/// 37 B7
#[tokio::test]
async fn the_cached_state_of_a_thread_is_never_stale_after_writes_by_other_processes() {
    let place = Place::make();
    is_never_stale(async || place.open().await).await;
    let place = Place::make();
    is_never_stale(async || sealed(place.open().await)).await;
}

/// 37 B7
#[tokio::test]
async fn the_cached_state_of_a_thread_in_postgres_is_never_stale() {
    let Some(database) = TestDatabase::make().await else { return };
    let open =
        async || Arc::new(PostgresStore::open(&database.url).await.unwrap()) as Arc<dyn Store>;
    is_never_stale(open).await;
}

/// Returns the processor time of this process so far, in hundredths of a second.
fn ticks() -> u64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap();
    let fields = stat.rsplit_once(')').unwrap().1.split_whitespace();
    fields.skip(11).take(2).map(|field| field.parse::<u64>().unwrap()).sum()
}

#[tokio::test]
#[ignore = "a measurement: make bench-turns"]
async fn the_processor_time_of_forty_turns_by_the_age_of_their_thread() {
    let place = Place::make();
    let store = place.open().await;
    let runner = runner(&store);
    let thread = ThreadId::new();
    let mut began = ticks();
    for turn in 1..=400 {
        ask(&runner, thread, turn).await;
        for _ in 0..4 {
            runner.state(thread, None).await.unwrap();
        }
        if turn % 40 == 0 {
            let now = ticks();
            println!("turns {} to {turn}: {} ms each", turn - 39, (now - began) as f64 / 4.0);
            began = now;
        }
    }
    store.close().await;
}
