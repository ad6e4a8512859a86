//! A run of more super-steps than are searched for its input, which another process continues (X5).

use std::path::Path;
use std::sync::Arc;

use perihelion::config::{Overrides, Settings};
use perihelion::graph::{Context, GraphBuilder, NodeError, NodeOutput, Target, node_fn};
use perihelion::{GraphParts, Graphs, OwnGraph, Serving};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::sync::Notify;

/// The step at which the first process is to end.
const LONG: u64 = 1_100;

perihelion::graph_state! {
    pub struct Walk, update WalkUpdate, version 1 {
        goals: Vec<String> => append,
        steps: u64 => overwrite,
    }
}

#[derive(Deserialize, JsonSchema)]
struct NewWalk {
    goal: String,
}

/// Serves a graph that takes many steps; `far` is notified when it came far, and does not continue then.
async fn serve(database: &str, servers: &Path, far: Option<Arc<Notify>>) -> Serving {
    let step = move |ctx: Context<Walk>| {
        let far = far.clone();
        async move {
            let steps = ctx.state().steps + 1;
            if let Some(far) = far.filter(|_| steps == LONG) {
                far.notify_one();
                ctx.port().until_cancelled().await;
                return Err(NodeError::Cancelled);
            }
            Ok(NodeOutput::<Walk>::update(WalkUpdate::new().steps(steps)))
        }
    };
    let graph = move |_: &GraphParts| {
        GraphBuilder::new("walk")
            .node("step", node_fn(step.clone()))
            .entry("step")
            .route("step", |walk: &Walk| {
                vec![if walk.steps < LONG { Target::node("step") } else { Target::End }]
            })
            .build()
    };
    let walk = OwnGraph::built("walk", graph)
        .input(|asked: NewWalk| WalkUpdate::new().goals(vec![asked.goal]));
    let overrides = Overrides {
        addr: Some("127.0.0.1:0".into()),
        database: Some(database.to_owned()),
        servers: Some(servers.to_owned()),
        model_url: Some("http://127.0.0.1:9".into()),
        model: Some("none".into()),
        ..Overrides::default()
    };
    let environment =
        |name: &str| (name == "PERIHELION_LIMITS_MAX_STEPS").then(|| "3000".to_owned());
    let settings = Settings::load(overrides, None, &environment).unwrap();
    perihelion::serve(Graphs::new().with(walk), settings).await.unwrap()
}

async fn the_input_of_a_long_run_is_taken_once(database: &str) {
    perihelion::config::tls::install();
    let http = reqwest::Client::builder().no_proxy().build().unwrap();
    let post = async |url: String, body: Value| -> Value {
        let asked = http.post(url).header("content-type", "application/json");
        let answer = asked.body(body.to_string()).send().await.unwrap();
        serde_json::from_str(&answer.text().await.unwrap()).unwrap()
    };
    let servers = tempfile::NamedTempFile::new().unwrap();
    let far = Arc::new(Notify::new());
    let first = serve(database, servers.path(), Some(Arc::clone(&far))).await;
    let thread = post(format!("{}/threads", first.url()), json!({})).await["thread_id"].clone();
    let runs = format!("/threads/{}/runs", thread.as_str().unwrap());
    let walk = json!({ "assistant_id": "walk", "input": { "goal": "Rome" } });
    let run = post(format!("{}{runs}", first.url()), walk).await["run_id"].clone();
    far.notified().await;
    first.stop().await.unwrap();
    let second = serve(database, servers.path(), None).await;
    let join = format!("{}{runs}/{}/join", second.url(), run.as_str().unwrap());
    let text = http.get(join).send().await.unwrap().text().await.unwrap();
    let walked: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(walked, json!({ "goals": ["Rome"], "steps": LONG }));
    second.stop().await.unwrap();
}

/// X5
#[tokio::test]
async fn the_input_of_a_long_run_is_taken_once_on_sqlite() {
    let home = tempfile::tempdir().unwrap();
    let database = format!("sqlite:{}", home.path().join("t.db").display());
    the_input_of_a_long_run_is_taken_once(&database).await;
}

/// X5
#[tokio::test]
async fn the_input_of_a_long_run_is_taken_once_on_postgres() {
    let database = super::postgres::server().await.fresh().await;
    the_input_of_a_long_run_is_taken_once(&database.url).await;
}
