//! What a server is told of the trace, and what the trace tells of the call.

use std::path::PathBuf;
use std::sync::Arc;

use perihelion::checkpoint::MemoryStore;
use perihelion::ids::ThreadId;
use perihelion::llm::scripted::{Reply, Rule, Script, ScriptedModel};
use perihelion::llm::{OpenAiModel, Role};
use perihelion::mcp::{Pool, ServersFile};
use perihelion::runtime::Runtime;
use perihelion::swarm::Request;
use perihelion::telemetry::About;
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

/// S1.12
#[tokio::test]
async fn a_server_is_told_the_span_under_which_its_own_belong() {
    let (collector, url) = Collector::start(Manner::default()).await;
    let model = ScriptedModel::start(script()).await.unwrap();
    let mut settings = settings(&[]);
    settings.models = settings.models.at(model.url(), "scripted");
    settings.traces.otlp_endpoint = Some(url);
    let file = format!("[mcp_servers.x]\ncommand = {:?}\nargs = [\"plain\"]\n", echoing());
    let file = ServersFile::parse("(test)".as_ref(), &file, &|_| None).unwrap();
    let openai = Arc::new(OpenAiModel::new(&settings.models).unwrap());
    let store = Arc::new(MemoryStore::default());
    let servers = Pool::new(file, pool());
    let runtime = Runtime::with_pool(settings.clone(), openai, servers, store).await.unwrap();
    let thread = ThreadId::new();
    // The second turn opens a trace of its own.
    for turn in 1..=2 {
        let request = Request { question: "echo".into(), ..Request::default() };
        let report = runtime.ask(thread, None, request, runtime.run_options()).await.unwrap();
        assert_eq!(report.answer.as_deref(), Some("done"), "{report:?}");
        let store = runtime.store().as_ref();
        let trace = perihelion::runtime::trace(store, &settings, thread, Some(turn)).await.unwrap();
        let span = trace.spans.iter().find(|span| span.name == "execute_tool echo").unwrap();
        let About::Tool { result: Some(result), .. } = &span.about else { panic!("{span:?}") };
        let echoed: Value = serde_json::from_str(result).unwrap();
        let expected = format!("00-{}-{}-01", trace.trace_id, span.span_id);
        assert_eq!(echoed["meta"]["traceparent"], expected);
    }
    runtime.close().await;
    model.stop().await;
    let spans = collector.spans();
    let call = spans.iter().find(|span| span.name == "execute_tool echo").unwrap();
    let said = |name| attribute(&call.attributes, name).unwrap();
    assert_eq!(said("mcp.method.name"), "tools/call");
    assert_eq!(said("mcp.protocol.version"), "2025-11-25");
    assert_eq!(said("network.transport"), "pipe");
    assert!(!said("jsonrpc.request.id").is_empty());
    assert_eq!(attribute(&call.attributes, "mcp.session.id"), None, "stdio has no sessions");
}
