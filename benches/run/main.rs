//! Measures what whole runs cost beside the model and the tools: a model that answers at once (a process of its own,
//! over HTTP), two real stdio servers, three decisions, two agents with a call each, and an answer.
//!
//! `--runs N` runs one after the other, `--threads N` left to a worker that drains them, short ones (a decision and an answer) and then
//! whole ones, `--database URL` on Postgres, SQLite in a directory of its own by default. Prints JSON lines: wall and processor time a
//! run and a super-step, threads a second, the bytes of prompts by role, and the tokens (four characters each) of six tasks of one plan.
//!
//! `--workers N` on Postgres leaves 64 short threads for each of N worker processes, which drive 64 at a time, and measures nothing else.
#![expect(clippy::unwrap_used, clippy::print_stdout, reason = "a tool that is only run by hand")]
#![expect(clippy::disallowed_methods, reason = "it measures itself")]

mod model;
mod processor;
#[path = "../program.rs"]
mod program;
mod workers;

use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use perihelion::config::{Overrides, Settings};
use perihelion::ids::ThreadId;
use perihelion::llm::Usage;
use perihelion::runtime::{LOCAL_TENANT, Runtime};
use perihelion::swarm::Request;
use perihelion::worker::Worker;
use serde_json::json;
use tokio::runtime::Builder;
use tokio_util::sync::CancellationToken;

/// That of the program.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// A question that takes two agents.
const WHOLE: &str = "What is the answer?";

fn argument(name: &str) -> Option<String> {
    std::env::args().skip_while(|one| one != name).nth(1)
}

fn number(name: &str, otherwise: usize) -> usize {
    argument(name).map_or(otherwise, |text| text.parse().unwrap())
}

fn main() {
    // `cargo test --benches` has nothing to measure.
    if !std::env::args().any(|one| one == "--bench") {
        return;
    }
    perihelion::config::tls::install();
    if std::env::args().any(|one| one == model::PLAYS) {
        return on_many_threads(model::play());
    }
    let mut model = model::Model::start();
    let url = model.url.clone();
    if let Some(count) = argument("--workers") {
        let database = argument("--database").unwrap();
        return on_many_threads(async {
            let home = tempfile::tempdir().unwrap();
            let runtime = open(home.path(), &url).await;
            workers::measure(&runtime, count.parse().unwrap(), &database, &url).await;
        });
    }
    // Each on the threads that the program gives it: one for `run`, one for each processor for `worker`.
    let alone = Builder::new_current_thread().enable_all().build().unwrap();
    alone.block_on(async {
        let home = tempfile::tempdir().unwrap();
        let runtime = open(home.path(), &url).await;
        measure(&runtime, &mut model).await;
        Arc::into_inner(runtime).unwrap().close().await;
    });
    on_many_threads(async {
        let home = tempfile::tempdir().unwrap();
        let runtime = open(home.path(), &url).await;
        let threads = number("--threads", 500);
        drain(&runtime, "short", model::SHORT, threads).await;
        drain(&runtime, "whole", WHOLE, threads).await;
        Arc::into_inner(runtime).unwrap().close().await;
    });
}

fn on_many_threads(work: impl Future<Output = ()>) {
    Builder::new_multi_thread().enable_all().build().unwrap().block_on(work);
}

/// The database that is measured.
fn store() -> &'static str {
    if argument("--database").is_some() { "postgres" } else { "sqlite" }
}

async fn measure(runtime: &Runtime, model: &mut model::Model) {
    // Warm: servers, connections, compiled statements.
    for _ in 0..5 {
        ask(runtime, WHOLE).await;
    }
    model.prompts();
    let runs = number("--runs", 100);
    let began = Instant::now();
    let before = processor_ms();
    let mut last = ThreadId::new();
    for _ in 0..runs {
        last = ask(runtime, WHOLE).await.0;
    }
    let wall = began.elapsed().as_secs_f64() * 1e3;
    let processor = processor_ms() - before;
    let steps = runtime.store().history(last, None, u32::MAX).await.unwrap().len();
    let round = |value: f64| (value * 100.0).round() / 100.0;
    let each = |total: f64| round(total / runs as f64);
    println!(
        "{}",
        json!({
            "bench": "run", "store": store(), "runs": runs, "super_steps": steps, "run_ms": each(wall),
            "super_step_ms": round(wall / (runs * steps) as f64), "run_processor_ms": each(processor),
            "is_optimised": !cfg!(debug_assertions),
        })
    );
    for (role, [calls, messages, tools]) in model.prompts() {
        println!(
            "{}",
            json!({
                "bench": "prompts", "role": role, "calls_a_run": each(calls as f64),
                "message_bytes_a_call": messages / calls, "tool_bytes_a_call": tools / calls,
                "bytes_a_run": (messages + tools) / runs,
            })
        );
    }
    let (_, usage) = ask(runtime, model::SIX).await;
    let input = usage.input_tokens;
    let output = usage.output_tokens;
    println!("{}", json!({ "bench": "six_tasks", "input_tokens": input, "output_tokens": output }));
}

/// Leaves threads to a worker of this process, and measures it alone.
async fn drain(runtime: &Arc<Runtime>, kind: &str, question: &str, threads: usize) {
    for _ in 0..threads {
        runtime.submit(LOCAL_TENANT, ThreadId::new(), None, request(question)).await.unwrap();
    }
    let worker = Worker::new(runtime.clone(), true, Arc::new(|_| {}));
    let began = Instant::now();
    let before = processor_ms();
    let driven = worker.run(CancellationToken::new()).await.unwrap().driven;
    let seconds = began.elapsed().as_secs_f64();
    println!(
        "{}",
        json!({
            "bench": "drain", "store": store(), "kind": kind, "threads": driven,
            "threads_per_s": (driven as f64 / seconds * 10.0).round() / 10.0,
            "thread_processor_ms": (processor_ms() - before) / driven as f64,
        })
    );
}

async fn open(home: &Path, model: &str) -> Arc<Runtime> {
    let program = program::path();
    let mut servers = String::new();
    for name in ["atlas", "ledger"] {
        let root = home.join(name);
        std::fs::create_dir(&root).unwrap();
        std::fs::write(root.join("a.txt"), "The answer is 42.\n").unwrap();
        servers += &format!(
            "[mcp_servers.{name}]\ncommand = {program:?}\nargs = [\"mcp\", \"files\", \"--root\", {root:?}]\n"
        );
    }
    let file = home.join("mcp-servers.toml");
    std::fs::write(&file, servers).unwrap();
    let database = argument("--database");
    let database = database.unwrap_or_else(|| format!("sqlite://{}/db", home.display()));
    let env = |name: &str| match name {
        "OPENAI_BASE_URL" => Some(model.to_owned()),
        "OPENAI_API_KEY" => Some("none".to_owned()),
        "PERIHELION_MODELS_PROTOCOL" => Some("full".to_owned()),
        "PATH" => std::env::var(name).ok(),
        _ => None,
    };
    let overrides =
        Overrides { servers: Some(file), database: Some(database), ..Overrides::default() };
    let settings = Settings::load(overrides, None, &env).unwrap();
    let builder =
        Runtime::builder(settings, perihelion::agents::kinds()).environment(&env).for_workers();
    Arc::new(builder.open().await.unwrap())
}

fn request(question: &str) -> Request {
    Request { question: question.to_owned(), ..Request::default() }
}

async fn ask(runtime: &Runtime, question: &str) -> (ThreadId, Usage) {
    let thread = ThreadId::new();
    let request = request(question);
    let report = runtime.ask(thread, None, request, runtime.run_options()).await.unwrap();
    assert_eq!(report.answer.as_deref(), Some("It is 42 [1]."), "{report:?}");
    (thread, report.usage)
}

fn processor_ms() -> f64 {
    processor::processor_ms(std::process::id())
}
