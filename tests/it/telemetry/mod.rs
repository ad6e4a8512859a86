//! Traces of real runs: the demo's star on its bundled servers, projected, sent and drawn.

mod calls;
mod clocks;
mod collectors;
mod jaeger;
mod kept;
mod langfuse;
pub mod metrics;
mod nested;
mod reading;
pub mod receiver;
mod secrets;
mod sent;
mod whole;

use std::path::Path;
use std::sync::Arc;

use perihelion::checkpoint::{MemoryStore, Store, ThreadDump};
use perihelion::config::{Overrides, Settings};
use perihelion::demo;
use perihelion::ids::ThreadId;
use perihelion::mcp::PoolOptions;
use perihelion::runner::RunOptions;
use perihelion::runtime::{RunReport, Runtime, Trace, Traces};
use perihelion::swarm::{GraphState, Request};
use perihelion::telemetry::{About, Rows, Span};

fn settings(env: &'static [(&'static str, &str)]) -> Settings {
    let env =
        |name: &str| env.iter().find(|(key, _)| *key == name).map(|(_, value)| (*value).to_owned());
    Settings::load(Overrides::default(), None, &env).unwrap()
}

fn pool() -> PoolOptions {
    PoolOptions {
        executable: Some(env!("CARGO_BIN_EXE_perihelion").into()),
        ..PoolOptions::default()
    }
}

async fn open(settings: Settings, home: &Path, store: Arc<dyn Store>) -> Runtime {
    let options = demo::Options { home: home.to_owned(), pool: pool(), ..Default::default() };
    let stage = demo::set(&options).await.unwrap();
    let kinds = perihelion::agents::kinds();
    let builder = Runtime::builder(settings, kinds).on_stage(stage).with_store(store);
    let runtime = builder.open().await.unwrap();
    assert!(runtime.agents().problems().is_empty(), "{:?}", runtime.agents().problems());
    runtime
}

/// The demo on a store in memory.
struct Demo {
    runtime: Runtime,
    settings: Settings,
    thread: ThreadId,
    _home: tempfile::TempDir,
}

impl Demo {
    async fn open(settings: Settings) -> Self {
        let home = tempfile::tempdir().unwrap();
        let runtime = open(settings.clone(), home.path(), Arc::new(MemoryStore::default())).await;
        Self { runtime, settings, thread: ThreadId::new(), _home: home }
    }

    fn store(&self) -> &Arc<dyn Store> {
        self.runtime.store()
    }

    async fn ask(&self, options: RunOptions<GraphState>) -> RunReport {
        let request = Request { question: demo::QUESTION.into(), ..Request::default() };
        self.runtime.ask(self.thread, None, request, options).await.unwrap()
    }

    async fn trace(&self, run: Option<u32>) -> Trace {
        Traces::of(self.store(), &self.settings).read(self.thread, run).await.unwrap()
    }
}

/// Returns the rows of a whole thread.
fn rows_of(dump: ThreadDump) -> Rows {
    let ThreadDump { info, runs, steps, effects, children, .. } = dump;
    Rows { info, runs, steps, effects, children: children.into_iter().map(rows_of).collect() }
}

/// Writes a trace's tree without what differs from run to run: ids, times, the model's address.
fn shape(spans: &[Span]) -> String {
    fn below(spans: &[Span], parent: &Span, depth: usize, out: &mut String) {
        for span in spans.iter().filter(|span| span.parent == Some(parent.span_id)) {
            out.push_str(&format!("{}{}\n", "  ".repeat(depth), words(span)));
            below(spans, span, depth + 1, out);
        }
    }
    let mut out = format!("{}\n", words(&spans[0]));
    below(spans, &spans[0], 1, &mut out);
    out
}

fn words(span: &Span) -> String {
    let name = &span.name;
    let status = if span.failed() { " !" } else { "" };
    let about = match &span.about {
        About::Workflow { usage, tools, .. } => {
            let tools: Vec<String> =
                tools.iter().map(|one| format!("{}:{}", one.tool, one.calls)).collect();
            assert!(usage.input_tokens > 0);
            format!("[{}]", tools.join(", "))
        }
        About::Transition { reason, candidates, thought, .. } => {
            format!("({}) {candidates:?} {}", reason.as_str(), thought.as_deref().unwrap_or("-"))
        }
        About::Chat { role, agent, .. } => format!("{role} {}", agent.as_deref().unwrap_or("-")),
        About::Agent { reflection_status, attempts, .. } => {
            format!("{} {attempts:?}", reflection_status.as_deref().unwrap_or("-"))
        }
        About::Stage { agent, stage, .. } => format!("{agent} {stage}"),
        About::Tool { server, call_id, .. } => {
            format!("on {server}{}", if call_id.is_some() { "" } else { ", no call id" })
        }
        About::Reflection { verdict, attempt, of, .. } => {
            format!("{} {attempt} of {of:?}", verdict.as_deref().unwrap_or("-"))
        }
        About::Question { interrupt_kind, .. } => interrupt_kind.clone(),
    };
    format!("{name}{status} · {about}")
}

/// Asserts what holds of every trace: one root, no orphan, no id twice, children within the root.
fn assert_whole(spans: &[Span]) {
    let mut ids = std::collections::HashSet::new();
    for span in spans {
        assert!(span.start <= span.end, "{span:?}");
        assert!(spans[0].start <= span.start && span.end <= spans[0].end, "{span:?}");
        assert_eq!(span.trace_id, spans[0].trace_id);
        match span.parent {
            None => assert!(ids.is_empty(), "a second root: {span:?}"),
            Some(parent) => assert!(ids.contains(&parent), "an orphan: {span:?}"),
        }
        assert!(ids.insert(span.span_id), "an id twice: {span:?}");
    }
}
