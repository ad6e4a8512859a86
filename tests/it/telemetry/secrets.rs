//! What must not leave the process, and what leaves it only when asked for.

use std::sync::Arc;

use perihelion::checkpoint::MemoryStore;
use perihelion::ids::ThreadId;
use perihelion::llm::scripted::{Reply, Rule, Script, ScriptedModel};
use perihelion::llm::{OpenAiModel, Role};
use perihelion::mcp::{Pool, ServersFile};
use perihelion::runtime::Runtime;
use perihelion::swarm::Request;
use serde_json::json;

use super::receiver::{Collector, Manner};
use super::{pool, settings};

const AGENT: &str = "mcp_agent_notes";

fn script() -> Script {
    let decide = |agents: &[&str]| {
        Reply::json(json!({
            "thought_process": "canary-thought", "plan": ["canary-plan"], "selected_agents": agents,
            "tasks": [], "clarification": null,
        }))
    };
    let verdict = json!({ "status": "FIXED", "refined_output": "canary-output", "feedback": "canary-feedback" });
    Script::new()
        .rule(Rule::new(decide(&["qa"])).role(Role::Supervisor).contains("canary-output"))
        .rule(Rule::new(decide(&[AGENT])).role(Role::Supervisor))
        .rule(
            Rule::new(Reply::call("append_note", json!({ "text": "canary-argument" })))
                .role(Role::Agent)
                .after_tool_results(0),
        )
        .rule(
            Rule::new(Reply::call("list_notes", json!({}))).role(Role::Agent).after_tool_results(1),
        )
        .rule(
            Rule::new(Reply::call(
                "canary-tool-that-is-not-there",
                json!({ "x": "canary-unsent" }),
            ))
            .role(Role::Agent)
            .after_tool_results(2),
        )
        .rule(Rule::new(Reply::text("canary-output")).role(Role::Agent))
        .rule(Rule::new(Reply::json(verdict)).role(Role::Reflector))
        .rule(Rule::new(Reply::text("canary-answer")).role(Role::Qa))
}

/// Runs a thread full of canaries and returns what a collector got.
async fn sent(content: bool) -> String {
    let directory = tempfile::tempdir().unwrap();
    let (collector, url) = Collector::start(Manner::default()).await;
    let model = ScriptedModel::start(script()).await.unwrap();
    let mut settings = settings(&[]);
    settings.models = settings.models.at(model.url(), "scripted");
    settings.traces.otlp_endpoint = Some(url);
    settings.traces.content = content;
    settings.traces.transport.headers =
        vec![("authorization".into(), "canary-header".to_owned().into())];
    let file = format!(
        "[mcp_servers.notes]\ncommand = \"perihelion\"\nargs = [\"mcp\", \"notes\", \"--file\", {:?}]\n\
         env = {{ NOTES_TOKEN = \"canary-environment\" }}\n",
        directory.path().join("notes")
    );
    let file = ServersFile::parse("(test)".as_ref(), &file, &|_| None).unwrap();
    let openai = Arc::new(OpenAiModel::new(&settings.models).unwrap());
    let store = Arc::new(MemoryStore::default());
    let servers = Pool::new(file, pool());
    let builder = Runtime::builder(settings, perihelion::agents::kinds())
        .with_model(openai)
        .with_pool(servers);
    let runtime = builder.with_store(store).open().await.unwrap();
    let request = Request { question: "canary-question".into(), ..Request::default() };
    let report = runtime.ask(ThreadId::new(), None, request, runtime.run_options()).await.unwrap();
    assert_eq!(report.answer.as_deref(), Some("canary-answer"), "{report:?}");
    runtime.close().await;
    model.stop().await;
    assert!(collector.spans().iter().any(|span| span.name == "execute_tool append_note"));
    String::from_utf8_lossy(&collector.bytes()).into_owned()
}

fn canaries(text: &str) -> Vec<&str> {
    let found = regex::Regex::new("canary-[a-z]+(-[a-z]+)*").unwrap();
    let mut found: Vec<&str> = found.find_iter(text).map(|one| one.as_str()).collect();
    found.sort_unstable();
    found.dedup();
    found
}

/// S1.12: content capture is off by default.
#[tokio::test]
async fn texts_of_people_models_and_tools_are_not_sent_by_default() {
    assert_eq!(canaries(&sent(false).await), Vec::<&str>::new());
}

#[tokio::test]
async fn with_content_texts_are_sent_and_secrets_still_are_not() {
    let text = sent(true).await;
    let found = canaries(&text);
    for wanted in ["canary-argument", "canary-thought", "canary-question", "canary-answer"] {
        assert!(found.contains(&wanted), "{found:?}");
    }
    assert!(
        !found.contains(&"canary-environment") && !found.contains(&"canary-header"),
        "{found:?}"
    );
}
