//! Ten thousand threads that wait for people, and a restart of everything.

use std::sync::Arc;

use futures::stream::{self, StreamExt};
use perihelion::checkpoint::{self, Store, ThreadFilter, ThreadStatus};
use perihelion::dispatch::{self, Scope};
use perihelion::graph::{Context, Graph, node_fn};
use perihelion::ids::ThreadId;
use perihelion::runner::{RunOptions, RunResult};
use serde_json::json;

use crate::runner::world::*;

const THREADS: usize = 10_000;

fn asking() -> Arc<Graph<Story>> {
    graph(|graph| {
        let ask = node_fn(|ctx: Context<Story>| async move {
            let answer = ctx.interrupt("clarification", json!({ "question": "which?" })).await?;
            Ok(say(answer.as_str().unwrap_or("?")))
        });
        graph.node("a", ask).entry("a")
    })
}

async fn park(store: &Arc<dyn Store>) -> Vec<ThreadId> {
    let (runner, world) = (runner(&asking(), store), World::default());
    stream::iter(0..THREADS)
        .map(|_| async {
            let thread = world.thread(&runner).await;
            start(&runner, thread).await;
            thread
        })
        .buffer_unordered(16)
        .collect()
        .await
}

async fn answer_and_finish(url: &str, threads: &[ThreadId]) {
    let store = checkpoint::open(url).await.unwrap();
    let filter = ThreadFilter { status: Some(ThreadStatus::Interrupted), ..Default::default() };
    assert_eq!(store.list(&filter).await.unwrap().len(), THREADS);
    let scope = Scope { graph: "story".to_owned(), except_tenant: None, thorough: true };
    let dispatcher = dispatch::open(url, Arc::clone(&store), scope).await.unwrap();
    assert!(dispatcher.next().await.unwrap().is_none(), "nobody is called to a thread that waits");

    let runner = runner(&asking(), &store);
    for thread in threads {
        let open = runner.open_interrupts(*thread).await.unwrap();
        runner.answer(*thread, open[0].id, &json!("this one")).await.unwrap();
    }
    let mut finished = 0;
    while let Some(wake) = dispatcher.next().await.unwrap() {
        let outcome = runner.wake(wake.thread, RunOptions::default()).await.unwrap().unwrap();
        assert_eq!((outcome.result, said(&outcome.state)[1]), (RunResult::Done, "this one"));
        finished += 1;
    }
    assert_eq!(finished, threads.len());
    assert_eq!(store.list(&filter).await.unwrap().len(), THREADS - threads.len());
    dispatcher.close().await;
    store.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ten_thousand_threads_in_a_file_survive_and_wait_for_nobody_but_people() {
    let directory = tempfile::tempdir().unwrap();
    let url = format!("sqlite:{}", directory.path().join("threads.db").display());
    let store = checkpoint::open(&url).await.unwrap();
    let threads = park(&store).await;
    store.close().await;
    drop(store);
    answer_and_finish(&url, &threads[..500]).await;
}
