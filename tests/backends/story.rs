//! What the program does under a backend's eyes, and what must then be found there.

use std::time::Duration;

use perihelion::clock;
use perihelion::llm::Role;
use perihelion::llm::scripted::{Reply, Rule, Script};

use super::spans::{Trace, printed};
use super::world::{World, approved, select};

/// What the second thread's person asks; content that is sent for that thread only.
const QUESTION: &str = "What is the answer to everything?";

/// How long a backend may take to show what it took.
const PATIENCE: Duration = Duration::from_secs(60);

/// A running backend.
pub trait Backend {
    /// What names it as the collector.
    fn environment(&self) -> Vec<(&'static str, String)>;

    /// Its address over gRPC, where it has one.
    fn grpc(&self) -> Option<String>;

    /// Reads one trace; without spans while it has none.
    async fn trace(&self, id: &str) -> Trace;

    /// Returns everything it has, as text.
    async fn texts(&self) -> String;

    /// Returns the end of its log.
    fn output(&self) -> String;
}

/// Two questions on one thread: the files agent reads for the first, the second is answered at once.
fn script() -> Script {
    Script::new()
        .rule(Rule::new(select(&["mcp_agent_files"])).role(Role::Supervisor).nth(1))
        .rule(Rule::new(select(&["qa"])).role(Role::Supervisor))
        .rule(
            Rule::new(Reply::call("read", serde_json::json!({ "path": "a.txt" })))
                .role(Role::Agent)
                .after_tool_results(0),
        )
        .rule(Rule::new(Reply::text("a.txt says 42")).role(Role::Agent))
        .rule(approved())
        .rule(Rule::new(Reply::text("It is 42 [1].")).role(Role::Qa))
}

/// Runs the demo, one that is killed and resumed, and a thread with two runs, and looks for each.
pub async fn tell(backend: &impl Backend) {
    let mut world = World::new(script()).await;
    for (name, value) in backend.environment() {
        world.set(name, &value);
    }
    // The model and the servers of this machine are no concern of the backend's.
    let doctor = world.run(&["doctor"]).await;
    assert!(doctor.stdout.contains("✓ traces"), "{doctor:#?}\n{}", backend.output());

    let report = world.run(&["demo", "--quiet", "--json"]).await.code(0).json();
    let demo = report["thread_id"].as_str().unwrap().to_owned();
    shown(&world, backend, &demo, 1).await;

    let killed = world.run(&["demo", "--quiet", "--crash"]).await;
    assert_eq!(killed.status.code(), None, "{killed:?}");
    let list = world.run(&["threads", "--status", "busy", "--json"]).await.code(0).json();
    let thread = list[0]["thread_id"].as_str().unwrap().to_owned();
    world.run(&["resume", &thread, "--quiet"]).await.code(0);
    shown(&world, backend, &thread, 2).await;
    let texts = backend.texts().await;
    for content in ["Casablanca", "SELECT", "Ramadan"] {
        assert!(!texts.contains(content), "content was not asked for: {content}");
    }

    // What was sent is sent again; the ids are the same, so nothing is there twice.
    let again = world.run(&["trace", "export", &demo, &thread]).await.code(0);
    assert!(again.stdout.contains("arrived"), "{again:?}");
    shown(&world, backend, &demo, 1).await;
    shown(&world, backend, &thread, 1).await;

    world.set("PERIHELION_TRACES_CONTENT", "true");
    if let Some(address) = backend.grpc() {
        world.set("OTEL_EXPORTER_OTLP_ENDPOINT", &address);
        world.set("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc");
    }
    world.run(&["run", QUESTION, "--thread", "talk", "--quiet"]).await.code(0);
    world.run(&["run", QUESTION, "--thread", "talk", "--quiet"]).await.code(0);
    let first = shown(&world, backend, "talk", 1).await;
    let second = shown(&world, backend, "talk", 2).await;
    assert_eq!(first.session, second.session, "one session, two traces");
    assert!(first.spans.keys().all(|id| !second.spans.contains_key(id)));
    assert!(backend.texts().await.contains(QUESTION), "content was asked for");
}

/// Asserts that a backend has the trace of a run as the program prints it, and returns it.
async fn shown(world: &World, backend: &impl Backend, thread: &str, run: u32) -> Trace {
    let run = run.to_string();
    let json = world.run(&["trace", thread, "--run", &run, "--json"]).await.code(0).json();
    let otlp = world.run(&["trace", thread, "--run", &run, "--otlp"]).await.code(0).json();
    let (id, wanted) = printed(&json, &otlp);
    let until = clock::now() + PATIENCE;
    let mut kept = backend.trace(&id).await;
    while kept != wanted && clock::now() < until {
        clock::sleep(Duration::from_millis(200)).await;
        kept = backend.trace(&id).await;
    }
    // Span by span first: a whole trace is long.
    for (id, span) in &wanted.spans {
        assert_eq!(kept.spans.get(id), Some(span), "{id}\n{}", backend.output());
    }
    assert_eq!(kept, wanted, "{}", backend.output());
    let Trace { spans, session, input_tokens, output_tokens } = &kept;
    let tokens = format!("{input_tokens} → {output_tokens} tokens");
    eprintln!("session {session}, run {run}: {} spans, {tokens}, alike", spans.len());
    kept
}
