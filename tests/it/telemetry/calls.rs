//! What a server is told of the trace, and what the trace tells of the call.

use std::path::PathBuf;
use std::sync::Arc;

use perihelion::checkpoint::{MemoryStore, RunStatus};
use perihelion::ids::ThreadId;
use perihelion::llm::scripted::{Reply, Rule, Script, ScriptedModel, ScriptedServer};
use perihelion::llm::{OpenAiModel, Role};
use perihelion::mcp::{Pool, ServersFile};
use perihelion::runtime::{LOCAL_TENANT, Runtime, Trace};
use perihelion::swarm::Request;
use perihelion::telemetry::{About, TraceId};
use serde_json::{Value, json};

use super::receiver::{Collector, Manner, attribute};
use super::{pool, settings};

/// Finds the fixture whose `echo` answers with what it was sent.
fn echoing() -> PathBuf {
    let test = std::env::current_exe().unwrap();
    test.ancestors().nth(2).unwrap().join("examples/hostile_mcp_server")
}

fn script() -> Script {
    let decide = |agents: &[&str]| {
        Reply::json(json!({
            "thought_process": "", "plan": [], "selected_agents": agents,
            "tasks": [], "clarification": null,
        }))
    };
    let verdict = json!({ "status": "APPROVED", "refined_output": null, "feedback": null });
    Script::new()
        .rule(Rule::new(decide(&["qa"])).role(Role::Supervisor).contains("it-echoed"))
        .rule(Rule::new(decide(&["mcp_agent_x"])).role(Role::Supervisor))
        .rule(
            Rule::new(Reply::call("echo", json!({ "path": "a" })))
                .role(Role::Agent)
                .after_tool_results(0),
        )
        .rule(Rule::new(Reply::text("it-echoed")).role(Role::Agent))
        .rule(Rule::new(Reply::json(verdict)).role(Role::Reflector))
        .rule(Rule::new(Reply::text("done")).role(Role::Qa))
}

/// A team of one agent, whose server echoes.
struct Echoing {
    runtime: Runtime,
    model: ScriptedServer,
}

impl Echoing {
    async fn open(endpoint: Option<String>) -> Self {
        let model = ScriptedModel::start(script()).await.unwrap();
        let mut settings = settings(&[]);
        settings.models = settings.models.at(model.url(), "scripted");
        settings.traces.otlp_endpoint = endpoint;
        let file = format!(
            "[mcp_servers.x]\ncommand = {:?}\nargs = [\"plain\"]\nopen_world = false\n",
            echoing()
        );
        let file = ServersFile::parse("(test)".as_ref(), &file, &|_| None).unwrap();
        let openai = Arc::new(OpenAiModel::new(&settings.models).unwrap());
        let servers = Pool::new(file, pool());
        let store = Arc::new(MemoryStore::default());
        let builder = Runtime::builder(settings, perihelion::agents::kinds())
            .with_model(openai)
            .with_pool(servers);
        let runtime = builder.with_store(store).open().await.unwrap();
        Self { runtime, model }
    }

    /// Asserts that the server was told the span that the trace of this run has for the call.
    async fn assert_traced(&self, thread: ThreadId, run: u32) -> Trace {
        let trace = self.runtime.traces().read(thread, Some(run)).await.unwrap();
        let span = trace.spans.iter().find(|span| span.name == "execute_tool echo").unwrap();
        let About::Tool { result: Some(result), .. } = &span.about else { panic!("{span:?}") };
        let echoed: Value = serde_json::from_str(result).unwrap();
        let expected = format!("00-{}-{}-01", trace.head.trace_id, span.span_id);
        assert_eq!(echoed["meta"]["traceparent"], expected);
        trace
    }

    async fn close(self) {
        self.runtime.close().await;
        self.model.stop().await;
    }
}

fn request() -> Request {
    Request { question: "echo".into(), ..Request::default() }
}

/// S1.12
#[tokio::test]
async fn a_server_receives_the_parent_span_for_its_spans() {
    let (collector, url) = Collector::start(Manner::default()).await;
    let team = Echoing::open(Some(url)).await;
    let runtime = &team.runtime;
    let thread = ThreadId::new();
    // The second turn opens a trace of its own.
    for turn in 1..=2 {
        let report = runtime.ask(thread, None, request(), runtime.run_options()).await.unwrap();
        assert_eq!(report.answer.as_deref(), Some("done"), "{report:?}");
        team.assert_traced(thread, turn).await;
    }
    team.close().await;
    let spans = collector.spans();
    let call = spans.iter().find(|span| span.name == "execute_tool echo").unwrap();
    let words = |name| attribute(&call.attributes, name).unwrap();
    assert_eq!(words("mcp.method.name"), "tools/call");
    assert_eq!(words("mcp.protocol.version"), "2025-11-25");
    assert_eq!(words("network.transport"), "pipe");
    assert!(!words("jsonrpc.request.id").is_empty());
    assert_eq!(attribute(&call.attributes, "mcp.session.id"), None, "stdio has no sessions");
}

/// S1.12
#[tokio::test]
async fn a_run_left_to_the_workers_and_the_workers_own_are_one_trace() {
    let team = Echoing::open(None).await;
    let runtime = &team.runtime;
    let thread = ThreadId::new();
    // The second turn opens a trace of its own here as well.
    for first in [1, 3] {
        runtime.submit(LOCAL_TENANT, thread, None, request()).await.unwrap();
        let report = runtime.wake(thread, runtime.run_options()).await.unwrap().unwrap();
        assert_eq!(report.answer.as_deref(), Some("done"), "{report:?}");
        let trace = team.assert_traced(thread, first + 1).await;
        assert_eq!(trace.head.trace_id, TraceId::of_run(thread, first));
        let About::Workflow { runs, .. } = &trace.spans[0].about else { panic!() };
        let reported: Vec<_> = runs.iter().map(|run| (run.number, run.status)).collect();
        assert_eq!(reported, [(first, RunStatus::Queued), (first + 1, RunStatus::Done)]);
    }
    team.close().await;
}
