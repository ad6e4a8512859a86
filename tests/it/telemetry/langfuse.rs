//! What Langfuse reads, exactly.

use std::collections::BTreeMap;

use opentelemetry_proto::tonic::common::v1::any_value::Value;
use opentelemetry_proto::tonic::trace::v1::Span;
use perihelion::demo;
use perihelion::swarm::Request;

use super::receiver::{Collector, Manner, attribute};
use super::{Demo, settings};

fn named<'a>(spans: &'a [Span], name: &str) -> &'a Span {
    spans.iter().find(|span| span.name == name).unwrap_or_else(|| panic!("{name}"))
}

fn words(span: &Span, name: &str) -> Option<String> {
    attribute(&span.attributes, &format!("langfuse.{name}"))
}

fn tags(span: &Span) -> Vec<String> {
    let tags = span.attributes.iter().find(|one| one.key == "langfuse.trace.tags").unwrap();
    let Some(Value::ArrayValue(list)) = tags.value.clone().unwrap().value else { panic!() };
    let texts = list.values.into_iter().filter_map(|one| match one.value {
        Some(Value::StringValue(text)) => Some(text),
        _ => None,
    });
    texts.collect()
}

/// Runs the demo with labels from the settings and from the request; returns the thread and the spans.
async fn sent(content: bool) -> (String, Vec<Span>) {
    let (collector, url) = Collector::start(Manner::default()).await;
    let mut settings = settings(&[
        ("PERIHELION_TRACES_USER", "operator"),
        ("PERIHELION_TRACES_TAGS", "nightly, demo"),
        ("PERIHELION_TRACES_ENVIRONMENT", "staging"),
    ]);
    settings.traces.otlp_endpoint = Some(url);
    settings.traces.content = content;
    let demo = Demo::open(settings).await;
    let context =
        [("trace.user", "ada"), ("trace.tags", "demo,urgent"), ("other", "canary-context")];
    let context: BTreeMap<String, String> =
        context.map(|(key, value)| (key.to_owned(), value.to_owned())).into();
    let request = Request { question: demo::QUESTION.into(), context, ..Request::default() };
    let options = demo.runtime.run_options();
    demo.runtime.ask(demo.thread, None, request, options).await.unwrap();
    let thread = demo.thread.to_string();
    demo.runtime.close().await;
    (thread, collector.spans())
}

/// X7
#[tokio::test]
async fn user_session_tags_and_environment_are_on_every_span() {
    let (thread, spans) = sent(false).await;
    for span in &spans {
        assert_eq!(words(span, "session.id").as_ref(), Some(&thread));
        assert_eq!(
            words(span, "user.id").as_deref(),
            Some("ada"),
            "the request goes before the settings"
        );
        assert_eq!(words(span, "environment").as_deref(), Some("staging"));
        assert_eq!(tags(span), ["demo", "urgent", "nightly"]);
        assert_eq!(attribute(&span.attributes, "user.id").as_deref(), Some("ada"));
        assert!(!format!("{span:?}").contains("canary-context"), "other context is content");
        assert!(thread.len() <= 200, "a longer session would be dropped");
        assert_eq!(words(span, "trace.name").as_deref(), Some("swarm"));
    }
}

/// X7
#[tokio::test]
async fn observations_have_their_types_metadata_and_graph_places() {
    let (_, spans) = sent(false).await;
    let types = [
        ("invoke_workflow swarm", "chain"),
        ("invoke_agent mcp_agent_sql", "agent"),
        ("execute_tool list_tables", "tool"),
        ("chat scripted", "generation"),
        ("reflect", "evaluator"),
    ];
    let prefix = |name: &str| spans.iter().find(|span| span.name.starts_with(name)).unwrap();
    for (name, kind) in types {
        let name = if name.starts_with("chat") { "chat" } else { name };
        assert_eq!(words(prefix(name), "observation.type").as_deref(), Some(kind), "{name}");
    }
    let agent = named(&spans, "invoke_agent mcp_agent_sql");
    let metadata = |name: &str| words(agent, &format!("observation.metadata.{name}")).unwrap();
    assert_eq!(metadata("agent_name"), "mcp_agent_sql");
    assert_eq!(metadata("reflection_status"), "APPROVED");
    assert_eq!(metadata("tool_usage"), "sql.list_tables:1, sql.query:3");
    assert_eq!(
        (metadata("langgraph_node"), metadata("langgraph_step")),
        ("mcp_agent_sql".into(), "4".into())
    );
    // The graph view draws a node as the span that bears its name: one for each turn, whatever happened in it.
    let place = |span: &Span| {
        let node = words(span, "observation.metadata.langgraph_node")?;
        let step = words(span, "observation.metadata.langgraph_step").unwrap();
        Some((step.parse::<u64>().unwrap(), node, words(span, "observation.type").unwrap()))
    };
    let mut nodes: Vec<_> = spans.iter().filter_map(place).collect();
    nodes.sort();
    let nodes: Vec<_> =
        nodes.iter().map(|(step, node, kind)| (*step, node.as_str(), kind.as_str())).collect();
    assert_eq!(
        nodes,
        [
            (2, "preprocess", "chain"),
            (3, "supervisor", "chain"),
            (4, "mcp_agent_files", "agent"),
            (4, "mcp_agent_sql", "agent"),
            (5, "supervisor", "chain"),
            (6, "qa", "agent"),
        ]
    );
    let levels: Vec<_> = spans.iter().filter_map(|span| words(span, "observation.level")).collect();
    assert_eq!(levels, ["ERROR", "WARNING"], "a failed query, and a result that was sent back");
    let chat = prefix("chat");
    let usage: serde_json::Value =
        serde_json::from_str(&words(chat, "observation.usage_details").unwrap()).unwrap();
    assert!(usage["input"].as_u64().unwrap() > 0 && usage["output"].is_u64(), "{usage}");
    let root = named(&spans, "invoke_workflow swarm");
    assert_eq!(words(root, "trace.name").as_deref(), Some("swarm"));
    assert_eq!((words(root, "trace.input"), words(root, "trace.output")), (None, None));
}

/// X7
#[tokio::test]
async fn with_content_the_root_carries_the_input_and_output_of_the_trace() {
    let (_, spans) = sent(true).await;
    let root = named(&spans, "invoke_workflow swarm");
    assert_eq!(words(root, "trace.input").as_deref(), Some(demo::QUESTION));
    assert!(words(root, "trace.output").is_some_and(|answer| !answer.is_empty()));
    let chats = || spans.iter().filter(|span| span.name.starts_with("chat"));
    let read = |span: &Span, name: &str| -> serde_json::Value {
        serde_json::from_str(&words(span, name).unwrap()).unwrap()
    };
    for chat in chats() {
        let messages = read(chat, "observation.input");
        assert_eq!(messages[0]["role"], "system");
        assert!(messages.as_array().unwrap().iter().all(|one| one["content"].is_string()));
    }
    let calling = chats().map(|chat| read(chat, "observation.output"));
    let called: Vec<String> = calling
        .filter_map(|answer| Some(answer["tool_calls"][0]["function"]["name"].as_str()?.to_owned()))
        .collect();
    assert_eq!(called.len(), 5, "as Chat Completions have it: {called:?}");
    let bytes = attribute(&root.attributes, "input.value.bytes").unwrap();
    assert_eq!(bytes, demo::QUESTION.len().to_string());
    assert_eq!(attribute(&root.attributes, "input.value.sha256").unwrap().len(), 64);
}
