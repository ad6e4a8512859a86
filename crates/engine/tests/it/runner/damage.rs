//! Threads whose rows are edited behind the engine's back.

use std::str::FromStr;

use perihelion_engine::checkpoint::NewThread;
use perihelion_engine::graph::node_fn;
use perihelion_engine::ids::ThreadId;
use perihelion_engine::runner::Runner;
use sqlx::ConnectOptions;

use super::world::*;
use crate::store_suite::stores::{self, Fixture};

/// Runs SQL on the fixture's database, with the thread's id as `{thread}`.
pub async fn sql(on: &Fixture, thread: ThreadId, statement: &str) {
    let url = on.url.as_deref().unwrap();
    let changed = if url.starts_with("sqlite:") {
        let statement = statement.replace("{thread}", &format!("x'{}'", thread.0.simple()));
        let options = sqlx::sqlite::SqliteConnectOptions::from_str(url).unwrap();
        let mut connection = options.connect().await.unwrap();
        let done = sqlx::raw_sql(sqlx::AssertSqlSafe(statement)).execute(&mut connection).await;
        done.unwrap().rows_affected()
    } else {
        let statement = statement.replace("{thread}", &format!("'{thread}'"));
        let mut connection = stores::connect(url).await;
        let done = sqlx::raw_sql(sqlx::AssertSqlSafe(statement)).execute(&mut connection).await;
        done.unwrap().rows_affected()
    };
    assert!(changed > 0, "the statement should change something: {statement}");
}

pub async fn four_steps(on: &Fixture, long: bool) -> (Runner<Story>, ThreadId) {
    let world = World::default();
    let first =
        if long { node_fn(|_| async { Ok(say("x".repeat(100_000))) }) } else { world.speaker("a") };
    let graph = graph(|graph| {
        graph
            .node("a", first)
            .node("b", world.speaker("b"))
            .node("c", world.speaker("c"))
            .entry("a")
            .edge("a", "b")
            .edge("b", "c")
    });
    let runner = runner(&graph, &on.store);
    let thread = world.thread(&runner).await;
    start(&runner, thread).await;
    (runner, thread)
}

/// Makes the thread of a subgraph at a place below a thread.
pub async fn below(on: &Fixture, parent: ThreadId, namespace: &str) -> ThreadId {
    let parent = on.store.info(parent).await.unwrap();
    let child = NewThread {
        id: parent.id.child(namespace),
        root: Some(parent.top()),
        graph: parent.graph,
        title: None,
        namespace: namespace.to_owned(),
        tenant: parent.tenant,
    };
    on.store.create(child).await.unwrap().id
}
