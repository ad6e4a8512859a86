//! The read API of Jaeger over real runs: the shapes that its UI validates, searches, and what stays hidden.

use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::http::{Request, StatusCode};
use perihelion::api;
use perihelion::checkpoint::{Claim, Fence, RunEnd, RunStatus, ThreadStatus};
use perihelion::config::Settings;
use perihelion::ids::RunId;
use perihelion::runtime::trace_finder;
use perihelion::telemetry::TraceId;
use serde_json::{Value, json};
use tower_service::Service as _;

use super::{Demo, settings};

struct Viewer {
    router: axum::Router,
}

impl Viewer {
    fn on(demo: &Demo, settings: &Settings) -> Self {
        let finder = trace_finder(Arc::clone(demo.store()), settings);
        Self { router: api::loopback_only(api::jaeger::router(finder)) }
    }

    async fn ask(&self, host: &str, path: &str) -> (StatusCode, Value) {
        let path = path.replace('"', "%22").replace(' ', "%20").replace('→', "%E2%86%92");
        let path = path.replace('{', "%7B").replace('}', "%7D");
        let request = Request::get(&path).header("host", host).body(Body::empty()).unwrap();
        let answer = self.router.clone().call(request).await.unwrap();
        let status = answer.status();
        let body = axum::body::to_bytes(answer.into_body(), usize::MAX).await.unwrap();
        (status, serde_json::from_slice(&body).unwrap_or(Value::Null))
    }

    async fn get(&self, path: &str) -> Value {
        let (status, value) = self.ask("localhost:16686", path).await;
        assert_eq!(status, StatusCode::OK, "{path}: {value}");
        value
    }

    /// Returns how many traces a search of each generation finds.
    async fn found(&self, tags: &str, operation: &str) -> (usize, usize) {
        let count = |value: &Value| value.as_array().map_or(0, Vec::len);
        let range =
            "query.startTimeMin=2000-01-01T00:00:00.000Z&query.startTimeMax=2100-01-01T00:00:00Z";
        let v3 = format!(
            "/api/v3/trace-summaries?{range}&query.serviceName=perihelion&query.operationName={operation}&query.attributes={tags}"
        );
        let v1 =
            format!("/api/traces?service=perihelion&operation={operation}&tags={tags}&limit=20");
        (count(&self.get(&v3).await["summaries"]), count(&self.get(&v1).await["data"]))
    }
}

/// X7: The UI of Jaeger 2 checks these answers against a schema and draws nothing that does not fit.
#[tokio::test]
async fn services_operations_and_summaries_have_the_shapes_the_ui_validates() {
    let demo = Demo::open(settings(&[])).await;
    demo.ask(demo.runtime.run_options()).await;
    demo.ask(demo.runtime.run_options()).await;
    let viewer = Viewer::on(&demo, &demo.settings);
    assert_eq!(viewer.get("/api/v3/services").await, json!({ "services": ["perihelion"] }));
    let operations = viewer.get("/api/v3/operations?service=perihelion").await;
    let operations = operations["operations"].as_array().unwrap();
    let wanted = json!({ "name": "execute_tool query", "spanKind": "client" });
    assert!(operations.contains(&wanted), "{operations:?}");
    assert!(operations.iter().any(|one| one["spanKind"] == "internal"));
    assert_eq!(viewer.get("/api/v3/operations?service=other").await, json!({ "operations": [] }));

    let found = viewer.get("/api/v3/trace-summaries?query.searchDepth=1").await;
    let [summary] = &found["summaries"].as_array().unwrap()[..] else { panic!("{found}") };
    let trace = demo.trace(None).await;
    assert_eq!(summary["traceId"], trace.head.trace_id.to_string(), "the newest");
    assert_eq!(summary["rootOperationName"], "invoke_workflow swarm");
    assert_eq!(summary["spanCount"], trace.spans.len());
    assert_eq!(summary["errorSpanCount"], trace.spans.iter().filter(|one| one.failed()).count());
    assert_eq!(summary["orphanSpanCount"], 0);
    let nanos = |name: &str| summary[name].as_str().unwrap().parse::<i64>().unwrap();
    assert_eq!(nanos("minStartTimeUnixNano"), trace.spans[0].start.timestamp_nanos_opt().unwrap());
    assert!(nanos("maxEndTimeUnixNano") > nanos("minStartTimeUnixNano"));
    demo.runtime.close().await;
}

#[tokio::test]
async fn a_trace_is_read_by_its_id_with_its_tree_its_tags_and_its_errors() {
    let demo = Demo::open(settings(&[])).await;
    demo.ask(demo.runtime.run_options()).await;
    demo.ask(demo.runtime.run_options()).await;
    // Nothing was searched before, so the id is found by computing.
    let viewer = Viewer::on(&demo, &demo.settings);
    let id = TraceId::of_run(demo.thread, 1);
    let answer = viewer.get(&format!("/api/traces/{id}")).await;
    let shown = &answer["data"][0];
    let trace = demo.trace(Some(1)).await;
    assert_eq!(shown["traceID"], id.to_string());
    let spans = shown["spans"].as_array().unwrap();
    assert_eq!(spans.len(), trace.spans.len());
    for (shown, span) in spans.iter().zip(&trace.spans) {
        assert_eq!(shown["spanID"], span.span_id.to_string());
        assert_eq!(shown["operationName"], span.name);
        assert_eq!(shown["startTime"], span.start.timestamp_micros());
        assert_eq!(shown["processID"], "p1");
        let parent =
            shown["references"].as_array().unwrap().iter().find(|one| one["refType"] == "CHILD_OF");
        assert_eq!(
            parent.map(|one| one["spanID"].clone()),
            span.parent.map(|id| id.to_string().into())
        );
        let tag = |name: &str| {
            shown["tags"].as_array().unwrap().iter().find(|one| one["key"] == name).cloned()
        };
        assert_eq!(tag("error").is_some(), span.failed());
        assert_eq!(tag("session.id").unwrap()["value"], demo.thread.to_string());
    }
    assert_eq!(shown["processes"]["p1"]["serviceName"], "perihelion");
    let judged = spans.iter().find(|span| span["operationName"] == "reflect").unwrap();
    assert!(judged["references"].to_string().contains("FOLLOWS_FROM"));
    assert_eq!(judged["logs"][0]["fields"][0]["value"], "gen_ai.evaluation.result");

    let v3 = viewer.get(&format!("/api/v3/traces/{id}")).await;
    let first = &v3["result"]["resourceSpans"][0]["scopeSpans"][0]["spans"][0];
    assert_eq!(first["traceId"], id.to_string());
    // The thread's own id stands for its newest trace.
    let newest = viewer.get(&format!("/api/traces/{}", demo.thread)).await;
    assert_eq!(newest["data"][0]["traceID"], TraceId::of_run(demo.thread, 2).to_string());

    for (path, status) in [
        ("/api/traces/00000000000000000000000000000001", 404),
        ("/api/traces/nonsense", 400),
        ("/api/traces?minDuration=long", 400),
        ("/api/traces?tag=x", 400),
        ("/api/metrics/calls", 404),
    ] {
        let (code, answer) = viewer.ask("127.0.0.1", path).await;
        assert_eq!(
            (code.as_u16(), &answer["errors"][0]["code"]),
            (status, &json!(status)),
            "{path}"
        );
    }
    let (code, answer) = viewer.ask("[::1]:1", "/api/v3/traces/nonsense").await;
    assert_eq!((code.as_u16(), &answer["error"]["httpCode"]), (400, &json!(400)));
    demo.runtime.close().await;
}

#[tokio::test]
async fn traces_are_found_by_operation_tags_duration_and_time() {
    let demo = Demo::open(settings(&[])).await;
    demo.ask(demo.runtime.run_options()).await;
    let mut settings = demo.settings.clone();
    settings.traces.user = Some("ada".to_owned());
    let viewer = Viewer::on(&demo, &settings);
    let one = (1, 1);
    assert_eq!(viewer.found(r#"{"user.id":"ada"}"#, "reflect").await, one, "labels are on all");
    assert_eq!(
        viewer.found(r#"{"agent_name":"mcp_agent_sql","reflection_status":"APPROVED"}"#, "").await,
        one
    );
    assert_eq!(viewer.found(r#"{"error":"true"}"#, "execute_tool query").await, one);
    assert_eq!(viewer.found(r#"{"error":"true"}"#, "execute_tool read").await, (0, 0));
    assert_eq!(viewer.found(r#"{"agent_name":"nobody"}"#, "").await, (0, 0));
    assert_eq!(viewer.found("{}", "reflect").await, one);
    let start = demo.trace(None).await.spans[0].start.timestamp_micros();
    for (query, expected) in [
        ("service=perihelion&limit=0".to_owned(), 0),
        ("service=other".to_owned(), 0),
        ("tag=agent_name:mcp_agent_sql".to_owned(), 1),
        ("minDuration=1h".to_owned(), 0),
        ("maxDuration=1h&minDuration=1ns".to_owned(), 1),
        (format!("end={}", start - 1), 0),
        (format!("start={start}&end={start}"), 1),
        (format!("start={}", start + 3_600_000_000), 0),
        (format!("traceID={}", TraceId::of_run(demo.thread, 1)), 1),
    ] {
        let answer = viewer.get(&format!("/api/traces?{query}")).await;
        assert_eq!(answer["data"].as_array().unwrap().len(), expected, "{query}");
    }
    let names = viewer.get("/api/services/perihelion/operations").await;
    assert!(names["data"].as_array().unwrap().contains(&json!("reflect")), "{names}");
    let calls = viewer.get("/api/operations?service=perihelion&spanKind=client").await;
    assert!(calls["data"].as_array().unwrap().iter().all(|one| one["spanKind"] == "client"));
    demo.runtime.close().await;
}

/// S1.12: content is for other eyes only where it is captured.
#[tokio::test]
async fn content_is_shown_only_if_it_is_captured_and_only_to_loopback_names() {
    let demo = Demo::open(settings(&[])).await;
    demo.ask(demo.runtime.run_options()).await;
    let path = format!("/api/traces/{}", TraceId::of_run(demo.thread, 1));
    let hidden = Viewer::on(&demo, &demo.settings);
    assert!(!hidden.get(&path).await.to_string().contains("SELECT"));
    let mut open = demo.settings.clone();
    open.traces.content = true;
    assert!(Viewer::on(&demo, &open).get(&path).await.to_string().contains("SELECT"));
    // A name of somebody else's that points here.
    assert_eq!(hidden.ask("rebound.example", &path).await.0, StatusCode::FORBIDDEN);
    demo.runtime.close().await;
}

#[tokio::test]
async fn if_a_trace_is_a_thread_its_runs_are_one() {
    let demo = Demo::open(settings(&[])).await;
    demo.ask(demo.runtime.run_options()).await;
    demo.ask(demo.runtime.run_options()).await;
    let mut settings = demo.settings.clone();
    settings.traces.scope = perihelion::config::TraceScope::Thread;
    let viewer = Viewer::on(&demo, &settings);
    let id = demo.thread.0.simple().to_string();
    let found = viewer.get("/api/v3/trace-summaries").await;
    let count = demo.trace(Some(1)).await.spans.len() + demo.trace(Some(2)).await.spans.len();
    assert_eq!(found["summaries"].as_array().unwrap().len(), 1);
    assert_eq!(
        (&found["summaries"][0]["traceId"], &found["summaries"][0]["spanCount"]),
        (&json!(id), &json!(count))
    );
    let trace = viewer.get(&format!("/api/traces/{id}")).await;
    assert_eq!(trace["data"][0]["spans"].as_array().unwrap().len(), count);
    demo.runtime.close().await;
}

/// X7: a process that continues a thread finds it finished by another one.
#[tokio::test]
async fn a_run_without_a_step_hides_no_older_trace() {
    let demo = Demo::open(settings(&[])).await;
    demo.ask(demo.runtime.run_options()).await;
    let store = demo.store();
    let claim = Claim::new(demo.thread, "another", Duration::ZERO).forced();
    let fence = Fence::new(demo.thread, store.claim(claim).await.unwrap().fence);
    let run = RunId::new();
    store.begin_run(fence, run, false).await.unwrap();
    store.end_run(fence, run, RunEnd::new(RunStatus::Done, ThreadStatus::Idle)).await.unwrap();
    let viewer = Viewer::on(&demo, &demo.settings);
    let found = viewer.get("/api/v3/trace-summaries").await;
    assert_eq!(found["summaries"].as_array().unwrap().len(), 1, "{found}");
    demo.runtime.close().await;
}

/// X7: an imported thread says itself how often it was claimed.
#[tokio::test]
async fn an_unknown_trace_is_looked_for_in_bounded_time() {
    let demo = Demo::open(settings(&[])).await;
    demo.ask(demo.runtime.run_options()).await;
    let store = demo.store();
    let mut dump = store.export(demo.thread).await.unwrap();
    store.delete(demo.thread).await.unwrap();
    dump.info.fence = 1 << 40;
    store.import(&dump).await.unwrap();
    let viewer = Viewer::on(&demo, &demo.settings);
    let unknown = TraceId::of_run(demo.thread, 1 << 31);
    let (status, _) = viewer.ask("localhost", &format!("/api/traces/{unknown}")).await;
    assert_eq!(status, StatusCode::NOT_FOUND);
}
