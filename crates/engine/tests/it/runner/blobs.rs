//! Long texts of a state: kept beside it, read when they are wanted, the same whatever crashes.

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;

use perihelion_engine::checkpoint::{Encoded, MemoryStore, Store, Transfer as _, read_blob};
use perihelion_engine::graph::{
    Blob, BlobName, Context, Dict, Graph, GraphBuilder, KEPT_ABOVE, Log, Node, NodeOutput, node_fn,
};
use perihelion_engine::ids::ThreadId;
use perihelion_engine::runner::{
    Durability, Error, RunOptions, RunOutcome, RunResult, Runner, Subgraph, compact,
};

use crate::store_suite::{on_every_store_sealed_too, stores::Fixture};

on_every_store_sealed_too!(
    blobs_of_nodes_are_named_by_the_state_and_read_on_demand,
    every_durability_reads_the_writes_of_the_previous_step,
    a_replay_and_a_fork_read_the_same,
    a_shortened_thread_travels_whole,
    however_a_run_is_cut_short_it_ends_the_same,
    an_edit_stores_its_texts_and_names_only_existing_ones,
    a_thread_with_texts_in_its_steps_is_read_and_replayed_and_continues,
);

perihelion_engine::graph_state! {
    /// What a library of long papers knows.
    pub struct Library, update LibraryUpdate, version 1, blobs [papers] {
        papers: Dict<Blob> => merge,
        lines: Log<String> => append,
    }
}

/// A paper of about twenty kilobytes.
fn paper(of: &str) -> String {
    format!("{of} was found on the shelf.\n").repeat(1_000)
}

fn keep(name: &str) -> LibraryUpdate {
    let papers = [(name.to_owned(), Blob::new(paper(name)))];
    LibraryUpdate::new().papers(papers.into()).lines(vec![format!("kept {name}")])
}

fn writer(name: &'static str) -> Arc<dyn Node<Library>> {
    node_fn(move |_: Context<Library>| async move { Ok(NodeOutput::update(keep(name))) })
}

/// Reads all papers there are, and says which.
fn reader() -> Arc<dyn Node<Library>> {
    node_fn(|ctx: Context<Library>| async move {
        let mut lines = Vec::new();
        for (name, blob) in ctx.state().papers.iter() {
            assert!(blob.text().is_none(), "{name} is held by the state");
            let text = ctx.read(blob, name).await?;
            lines.push(format!("read {name}: {}", *text == *paper(name)));
        }
        Ok(NodeOutput::update(LibraryUpdate::new().lines(lines)))
    })
}

/// Two write at the same time, a subgraph writes, and the last one reads.
fn library(store: &Arc<dyn Store>) -> Runner<Library> {
    let inner = GraphBuilder::new("inner")
        .node("deep", writer("deep"))
        .node("reads", reader())
        .entry("deep")
        .edge("deep", "reads")
        .build()
        .unwrap();
    let inner = Runner::new(inner, Arc::clone(store));
    let team = Subgraph::<Library, Library>::new(
        inner,
        |ctx| {
            let papers = ctx.state().papers.iter().map(|(name, blob)| (name.clone(), blob.clone()));
            Ok(LibraryUpdate::new().papers(papers.collect()))
        },
        |_, end| {
            let papers = end.papers.iter().map(|(name, blob)| (name.clone(), blob.clone()));
            Ok(NodeOutput::update(LibraryUpdate::new().papers(papers.collect())))
        },
    );
    let graph: Arc<Graph<Library>> = GraphBuilder::new("library")
        .node("one", writer("one"))
        .node("two", writer("two"))
        .node("team", Arc::new(team) as Arc<dyn Node<Library>>)
        .node("reads", reader())
        .entry("one")
        .entry("two")
        .edge("one", "team")
        .edge("team", "reads")
        .build()
        .unwrap();
    Runner::new(graph, Arc::clone(store))
}

fn input() -> LibraryUpdate {
    keep("given")
}

const LINES: [&str; 7] = [
    "kept given",
    "kept one",
    "kept two",
    "read deep: true",
    "read given: true",
    "read one: true",
    "read two: true",
];

fn lines(state: &Library) -> Vec<&str> {
    state.lines.iter().map(String::as_str).collect()
}

async fn run(runner: &Runner<Library>, durability: Durability) -> RunOutcome<Library> {
    let thread = ThreadId::new();
    let options = RunOptions { durability, ..RunOptions::default() };
    let outcome = runner.start(thread, input(), options).await.unwrap();
    assert_eq!((&outcome.result, lines(&outcome.state)), (&RunResult::Done, LINES.to_vec()));
    outcome
}

/// X1
async fn blobs_of_nodes_are_named_by_the_state_and_read_on_demand(on: &Fixture) {
    let outcome = run(&library(&on.store), Durability::Sync).await;
    let store = on.another().await;
    let state = library(&store).state(outcome.thread, None).await.unwrap().state;
    assert!(Encoded::json(&*state, usize::MAX).unwrap().bytes.len() < 1_000);
    for name in ["given", "one", "two", "deep"] {
        let blob = state.papers.get(name).unwrap();
        assert_eq!(blob.kept(), Some(BlobName::of(&paper(name))));
        let text = read_blob(store.as_ref(), outcome.thread, blob, name).await.unwrap();
        assert_eq!(*text, *paper(name));
    }
    let dump = store.export(outcome.thread).await.unwrap();
    assert_eq!(dump.blobs.iter().map(|row| row.step).collect::<Vec<_>>(), [1, 2, 2, 3]);
}

async fn every_durability_reads_the_writes_of_the_previous_step(on: &Fixture) {
    let mut hashes = Vec::new();
    for durability in [Durability::Sync, Durability::Async, Durability::Exit] {
        let outcome = run(&library(&on.store), durability).await;
        let rows = on.store.history(outcome.thread, None, 9).await.unwrap();
        hashes.push(rows.iter().map(|row| row.hash).collect::<Vec<_>>());
    }
    assert!(hashes.iter().all(|own| *own == hashes[0]));
}

async fn a_replay_and_a_fork_read_the_same(on: &Fixture) {
    let runner = library(&on.store);
    let thread = run(&runner, Durability::Sync).await.thread;
    let report = runner.replay(thread, None).await.unwrap();
    assert_eq!((report.divergence, report.replayed), (None, 3));
    let fork = runner.fork(thread, 2, None).await.unwrap().id;
    on.store.delete(thread).await.unwrap();
    let outcome = runner.resume(fork, RunOptions::default()).await.unwrap();
    assert_eq!(lines(&outcome.state), LINES);
}

async fn a_shortened_thread_travels_whole(on: &Fixture) {
    let runner = library(&on.store);
    let thread = run(&runner, Durability::Sync).await.thread;
    let state = runner.state(thread, None).await.unwrap().state;
    compact::<Library>(on.store.as_ref(), thread, 1).await.unwrap();
    let dump = on.store.export(thread).await.unwrap();
    assert_eq!((dump.steps.len(), dump.blobs.len()), (1, 4));
    let elsewhere = MemoryStore::new();
    elsewhere.import(&dump).await.unwrap();
    for store in [on.store.as_ref(), &elsewhere] {
        for (name, blob) in state.papers.iter() {
            assert_eq!(*read_blob(store, thread, blob, name).await.unwrap(), *paper(name));
        }
    }
}

/// Polls a run so often and drops it there, as the end of a process would; says whether it ended before.
async fn cut_after<T>(polls: usize, run: impl Future<Output = T>) -> bool {
    let mut run = pin!(run);
    let mut left = polls;
    std::future::poll_fn(move |cx| {
        if left == 0 {
            return Poll::Ready(false);
        }
        left -= 1;
        run.as_mut().poll(cx).map(|_| true)
    })
    .await
}

/// X2
async fn however_a_run_is_cut_short_it_ends_the_same(on: &Fixture) {
    let runner = library(&on.store);
    for polls in 1.. {
        let thread = ThreadId::new();
        runner.create(thread, None).await.unwrap();
        let is_whole = cut_after(polls, runner.start(thread, input(), RunOptions::default())).await;
        let outcome = match runner.resume(thread, RunOptions::default()).await {
            Err(Error::Finished { .. } | Error::NeverAsked { .. })
                if on.store.info(thread).await.unwrap().head == 0 =>
            {
                runner.start(thread, input(), RunOptions::default()).await.unwrap().state
            }
            Err(Error::Finished { .. }) => runner.state(thread, None).await.unwrap().state,
            outcome => outcome.unwrap().state,
        };
        assert_eq!(lines(&outcome), LINES, "cut after {polls} polls");
        let dump = on.store.export(thread).await.unwrap();
        assert_eq!(dump.blobs.len(), 4, "cut after {polls} polls");
        on.store.delete(thread).await.unwrap();
        if is_whole {
            break;
        }
    }
}

async fn an_edit_stores_its_texts_and_names_only_existing_ones(on: &Fixture) {
    let runner = library(&on.store);
    let thread = run(&runner, Durability::Sync).await.thread;
    let edited = runner.update_state(thread, keep("edited"), "reads").await.unwrap();
    let blob = edited.state.papers.get("edited").unwrap();
    let text = read_blob(on.store.as_ref(), thread, blob, "it").await.unwrap();
    assert_eq!(*text, *paper("edited"));
    // One that is kept may be named again; another thread's, or one that nobody wrote, may not.
    let named =
        |blob: &Blob| LibraryUpdate::new().papers([("again".to_owned(), blob.clone())].into());
    runner.update_state(thread, named(blob), "reads").await.unwrap();
    let other = run(&runner, Durability::Sync).await.thread;
    for refused in [
        runner.update_state(other, named(blob), "reads").await.err(),
        runner.start(other, named(blob), RunOptions::default()).await.err(),
    ] {
        let refused = refused.unwrap().to_string();
        assert!(refused.contains("names a text that the thread does not keep"), "{refused}");
    }
    let short =
        LibraryUpdate::new().papers([("s".to_owned(), "x".repeat(KEPT_ABOVE).into())].into());
    let edited = runner.update_state(thread, short, "reads").await.unwrap();
    assert_eq!(edited.state.papers.get("s").unwrap().kept(), None, "a short one stays");
}

/// The same library, as a version wrote it that kept no texts beside states.
mod before {
    use std::collections::BTreeMap;

    use perihelion_engine::graph::{Dict, GraphBuilder, Log, NodeOutput, node_fn};
    use perihelion_engine::runner::Runner;

    perihelion_engine::graph_state! {
        pub struct Library, update LibraryUpdate, version 1 {
            papers: Dict<String> => merge,
            lines: Log<String> => append,
        }
    }

    pub fn keep(name: &str) -> LibraryUpdate {
        let papers = BTreeMap::from([(name.to_owned(), super::paper(name))]);
        LibraryUpdate::new().papers(papers).lines(vec![format!("kept {name}")])
    }

    pub fn library(store: &std::sync::Arc<dyn super::Store>) -> Runner<Library> {
        let one = node_fn(|_| async { Ok(NodeOutput::update(keep("one"))) });
        let graph = GraphBuilder::new("old").node("one", one).entry("one").build().unwrap();
        Runner::new(graph, std::sync::Arc::clone(store))
    }
}

async fn a_thread_with_texts_in_its_steps_is_read_and_replayed_and_continues(on: &Fixture) {
    let old = before::library(&on.store).run_new(before::keep("given")).await.unwrap();
    let graph = GraphBuilder::new("old").node("one", writer("one")).entry("one").build().unwrap();
    let runner = Runner::new(graph, Arc::clone(&on.store));
    let report = runner.replay(old.thread, None).await.unwrap();
    assert_eq!((report.divergence, report.replayed), (None, 1));
    let state = runner.state(old.thread, None).await.unwrap().state;
    let given = state.papers.get("given").unwrap();
    assert_eq!(given.text().map(AsRef::as_ref), Some(&*paper("given")));
    // What is written from now on is kept beside it.
    let next = runner.start(old.thread, keep("new"), RunOptions::default()).await.unwrap();
    assert!(next.state.papers.get("new").unwrap().kept().is_some());
    assert!(next.state.papers.get("given").unwrap().kept().is_none());
    assert_eq!(on.store.export(old.thread).await.unwrap().blobs.len(), 2);
}
