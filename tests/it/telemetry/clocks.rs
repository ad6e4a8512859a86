//! Machines whose clocks disagree: what they write into one thread is dated by the database's.

use std::sync::Arc;

use perihelion::checkpoint::{PostgresStore, Store};
use perihelion::clock;
use perihelion::graph::{Context, node_fn};
use perihelion::runner::RunOptions;
use perihelion::telemetry::{About, View, Which, project, read};
use perihelion_test_database::TestDatabase;
use serde_json::json;
use sqlx::{Connection, Executor};

use crate::runner::world::*;
use crate::support::postgres::server;

/// Puts a database's clock an hour ahead of this machine's; to be called before its tables are made.
async fn an_hour_ahead(database: &TestDatabase) {
    let mut connection = database.connect_as_owner().await;
    let statements = [
        "CREATE SCHEMA ahead".to_owned(),
        "CREATE FUNCTION ahead.now() RETURNS timestamptz STABLE LANGUAGE sql \
         RETURN pg_catalog.now() + interval '1 hour'"
            .to_owned(),
        format!("ALTER DATABASE {} SET search_path = ahead, public, pg_catalog", database.name),
    ];
    for statement in statements {
        connection.execute(sqlx::AssertSqlSafe(statement)).await.unwrap();
    }
    connection.close().await.unwrap();
}

#[tokio::test]
async fn writes_of_a_process_with_a_wrong_clock_are_dated_by_the_database() {
    let database = server().await.fresh().await;
    an_hour_ahead(&database).await;
    let store: Arc<dyn Store> = Arc::new(PostgresStore::open(&database.url).await.unwrap());
    let world = World::default();
    let node = {
        let world = world.clone();
        node_fn(move |ctx: Context<Story>| {
            let world = world.clone();
            async move {
                let begun = ctx.now().await?;
                world.ask_model(&ctx, "before").await?;
                let answer = ctx.interrupt("clarification", json!({})).await?;
                world.ask_model(&ctx, "after").await?;
                world.call_tool(&ctx, true, || Ok(json!("written"))).await?;
                Ok(say(format!("{answer} {}", begun.timestamp())))
            }
        })
    };
    let graph = graph(|graph| graph.node("a", node).entry("a"));
    let runner = runner(&graph, &store);
    let thread = world.thread(&runner).await;
    let asked = start(&runner, thread).await;
    runner.answer(thread, interrupts(&asked)[0].id, &json!("yes")).await.unwrap();
    let outcome = runner.resume(thread, RunOptions::default()).await.unwrap();

    let off = chrono::TimeDelta::minutes(30);
    let reported: i64 = lines(&outcome.state)[1].rsplit(' ').next().unwrap().parse().unwrap();
    assert!(reported > (clock::now() + off).timestamp(), "a node is told the database's time");
    assert!(store.now().await.unwrap() > clock::now() + off, "approvals are decided by it");
    for run in store.runs(thread).await.unwrap() {
        // Where the time limit of a turn counts from.
        let begun = run.started_at.timestamp_micros() - run.id.started_micros();
        assert!((0..60_000_000).contains(&begun), "{begun}");
    }
    for effect in store.effects(thread, None).await.unwrap() {
        assert!(effect.started_at > clock::now() + off, "{} at {}", effect.name, effect.started_at);
        assert!(effect.ended_at.is_none_or(|end| end >= effect.started_at), "{}", effect.name);
    }
    // Each call stands in the trace of the run that made it, though both were made in one step.
    let mut calls = Vec::new();
    for run in [1, 2] {
        let (rows, number) = read(store.as_ref(), thread, Which::Number(run)).await.unwrap();
        let spans = project(&rows, number, View::default()).unwrap();
        let is_call = |about: &About| matches!(about, About::Chat { .. } | About::Tool { .. });
        calls.push(spans.iter().filter(|span| is_call(&span.about)).count());
    }
    assert_eq!(calls, [1, 2]);
    store.close().await;
}
