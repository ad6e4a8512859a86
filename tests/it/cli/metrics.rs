//! What the program counts, as Prometheus and a collector get it.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use nix::sys::signal::Signal;
use opentelemetry_proto::tonic::collector::metrics::v1::ExportMetricsServiceRequest;
use opentelemetry_proto::tonic::metrics::v1::metric::Data;
use opentelemetry_proto::tonic::metrics::v1::number_data_point::Value;
use perihelion::metrics::DEFINITIONS;
use tokio::io::{AsyncBufReadExt as _, BufReader, Lines};
use tokio::process::{Child, ChildStderr};

use super::world::{World, reading, signal};
use crate::dispatch::processes::postgres;
use crate::support::proxy;
use crate::telemetry::metrics::prometheus;
use crate::telemetry::receiver::{Collector, Manner};

/// A process that serves metrics, and what it says.
pub(super) struct Served {
    child: Child,
    output: Lines<BufReader<ChildStderr>>,
    url: String,
}

impl Served {
    pub(super) async fn start(world: &World, args: &[&str]) -> Self {
        perihelion::config::tls::install();
        let mut child = world.start(args);
        let mut output = BufReader::new(child.stderr.take().unwrap()).lines();
        let url = loop {
            let line = output.next_line().await.unwrap().unwrap();
            if let Some(at) = line.find("http://") {
                let url = line[at..].split([';', ' ']).next().unwrap();
                break url.trim_end_matches("/metrics").to_owned();
            }
        };
        Self { child, output, url }
    }

    pub(super) async fn until(&mut self, words: &str) {
        while !self.output.next_line().await.unwrap().unwrap().contains(words) {}
    }

    pub(super) async fn status(&self, path: &str) -> u16 {
        reqwest::get(format!("{}{path}", self.url)).await.unwrap().status().as_u16()
    }

    async fn get(&self, path: &str) -> String {
        reqwest::get(format!("{}{path}", self.url)).await.unwrap().text().await.unwrap()
    }

    pub(super) async fn get_with_key(&self, path: &str, key: &str) -> (u16, String) {
        let url = format!("{}{path}", self.url);
        let answer = reqwest::Client::new().get(url).header("x-api-key", key).send().await.unwrap();
        (answer.status().as_u16(), answer.text().await.unwrap())
    }

    pub(super) async fn stop(mut self) {
        signal(&self.child, Signal::SIGTERM);
        assert!(self.child.wait().await.unwrap().success());
    }
}

/// S1.12
#[tokio::test]
async fn a_worker_exports_its_work_and_the_thread_states_to_prometheus() {
    let world = World::new(reading()).await;
    // What the servers offer is known from here on.
    world.run(&["agents"]).await.code(0);
    world.run(&["run", "What is it?", "--thread", "t", "--detach", "-q"]).await.code(0);
    let mut worker = Served::start(&world, &["worker", "--metrics", "127.0.0.1:0"]).await;
    worker.until(": done;").await;
    assert_eq!(worker.get("/healthz").await, "ok\n");
    let text = worker.get("/metrics").await;
    for line in [
        r#"perihelion_runs_started_total{perihelion_graph="swarm"} 1"#,
        r#"perihelion_runs_ended_total{perihelion_graph="swarm",perihelion_status="done"} 1"#,
        r#"perihelion_runs_active{perihelion_graph="swarm"} 0"#,
        r#"perihelion_effects_recorded_total{perihelion_effect_kind="model"} 6"#,
        r#"perihelion_effects_recorded_total{perihelion_effect_kind="tool"} 1"#,
        r#"perihelion_reflections_total{gen_ai_agent_name="mcp_agent_files",perihelion_verdict="APPROVED"} 1"#,
        r#"gen_ai_execute_tool_duration_seconds_count{gen_ai_tool_name="read",mcp_server_name="files"} 1"#,
        r#"gen_ai_invoke_agent_duration_seconds_count{gen_ai_agent_name="mcp_agent_files"} 1"#,
        r#"perihelion_threads{perihelion_status="idle"} 1"#,
        r#"perihelion_threads{perihelion_status="queued"} 0"#,
        "perihelion_traces_pending 0",
        r#"perihelion_mcp_server_up{mcp_server_name="files"} 1"#,
    ] {
        assert!(text.lines().any(|one| one == line), "missing: {line}\n{text}");
    }
    assert!(
        !text.contains(r#"mcp_server_name="notes""#),
        "nobody needed it, so it was not started"
    );
    let names = text.lines().filter_map(|line| line.strip_prefix("# TYPE ")?.split(' ').next());
    let known: Vec<String> = DEFINITIONS.iter().map(prometheus).collect();
    for name in names.filter(|name| *name != "target_info") {
        assert!(known.contains(&name.to_owned()), "{name} is not documented");
    }
    worker.stop().await;
}

/// X5: what runs for long outlives its database, and says that it is away.
#[tokio::test]
async fn a_worker_without_its_database_is_not_ready_and_continues_when_it_is_back() {
    let mut site = postgres(reading()).await;
    let is_away = Arc::new(AtomicBool::new(false));
    let away = Arc::clone(&is_away);
    let url = proxy::before(site.database().unwrap(), move |_| away.load(Ordering::SeqCst)).await;
    site.world.set("DATABASE_URL", &url);
    let worker = Served::start(&site.world, &["worker", "--metrics", "127.0.0.1:0"]).await;
    assert_eq!(worker.status("/readyz").await, 200);
    is_away.store(true, Ordering::SeqCst);
    assert_eq!(worker.status("/readyz").await, 503);
    assert_eq!(worker.status("/healthz").await, 200);
    is_away.store(false, Ordering::SeqCst);
    site.submit("late").await;
    site.until("late", "done").await;
    assert_eq!(worker.status("/readyz").await, 200);
    worker.stop().await;
}

#[tokio::test]
async fn an_occupied_port_is_reported_before_any_work_starts() {
    let taken = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = taken.local_addr().unwrap().port().to_string();
    let world = World::new(reading()).await;
    let refused = world.run(&["worker", "--metrics", &port]).await.code(1);
    refused.says(&format!("cannot serve metrics on 127.0.0.1:{port}"));
    world.run(&["worker", "--metrics", "nowhere"]).await.code(2).says("127.0.0.1:9464");
}

#[tokio::test]
async fn the_trace_server_also_serves_thread_states() {
    let world = World::new(reading()).await;
    world.run(&["run", "What is it?", "-q"]).await.code(0);
    let server = Served::start(&world, &["trace", "serve", "--addr", "127.0.0.1:0"]).await;
    let text = server.get("/metrics").await;
    assert!(text.contains(r#"perihelion_threads{perihelion_status="idle"} 1"#), "{text}");
    server.stop().await;
}

/// Adds up the counters of a delivery by name.
fn sums(request: &ExportMetricsServiceRequest) -> BTreeMap<String, u64> {
    let resources = request.resource_metrics.iter();
    let metrics = resources.flat_map(|one| &one.scope_metrics).flat_map(|scope| &scope.metrics);
    metrics
        .filter_map(|metric| match metric.data.as_ref()? {
            Data::Sum(sum) => {
                let points = sum.data_points.iter().map(|point| match point.value {
                    Some(Value::AsInt(number)) => u64::try_from(number).unwrap(),
                    _ => 0,
                });
                Some((metric.name.clone(), points.sum()))
            }
            _ => None,
        })
        .collect()
}

/// S1.12
#[tokio::test]
async fn a_short_run_delivers_its_numbers_at_its_end() {
    for protocol in ["http/protobuf", "grpc"] {
        let (collector, url) = match protocol {
            "grpc" => Collector::start_grpc(Manner::default()).await,
            _ => Collector::start(Manner::default()).await,
        };
        let mut world = World::new(reading()).await;
        world.set("OTEL_EXPORTER_OTLP_ENDPOINT", &url);
        world.set("OTEL_EXPORTER_OTLP_PROTOCOL", protocol);
        let run = world.run(&["run", "What is it?", "--json", "-q"]).await.code(0);
        let report = run.json();
        let deliveries = collector.metrics();
        assert_eq!(deliveries.len(), 1, "{protocol}: {run:?}");
        let sums = sums(&deliveries[0]);
        assert_eq!(
            Some(sums["gen_ai.client.inference.usage.input_tokens"]),
            report["usage"]["input_tokens"].as_u64()
        );
        assert_eq!(
            Some(sums["perihelion.steps.committed"]),
            report["steps"].as_u64().map(|n| n + 1)
        );
        assert_eq!((sums["perihelion.runs.started"], sums["perihelion.runs.ended"]), (1, 1));
        assert_eq!(sums["perihelion.export.deliveries"], 1, "the trace, which was sent before");
        let output: Vec<&str> = deliveries[0].resource_metrics[0]
            .resource
            .iter()
            .flat_map(|resource| resource.attributes.iter().map(|one| one.key.as_str()))
            .collect();
        assert!(output.contains(&"service.instance.id"), "{output:?}");
    }
}

#[tokio::test]
async fn metrics_follow_the_environment_variables_including_off() {
    let (collector, url) = Collector::start(Manner::default()).await;
    let mut world = World::new(reading()).await;
    world.set("OTEL_EXPORTER_OTLP_ENDPOINT", &url);
    world.set("OTEL_METRICS_EXPORTER", "none");
    world.run(&["run", "What is it?", "-q"]).await.code(0);
    assert_eq!((collector.metrics().len(), collector.headers().len()), (0, 1));

    world.set("OTEL_METRICS_EXPORTER", "otlp");
    world.set("OTEL_TRACES_EXPORTER", "none");
    world.set("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:9");
    world.set("OTEL_EXPORTER_OTLP_METRICS_ENDPOINT", &format!("{url}/numbers"));
    world.run(&["run", "What is it?", "-q"]).await.code(0);
    assert_eq!((collector.metrics().len(), collector.headers().len()), (1, 1));
}

#[tokio::test]
async fn a_collector_without_metrics_is_accepted_and_an_absent_one_causes_a_warning() {
    let (_collector, url) = Collector::start(Manner::default()).await;
    let mut world = World::new(reading()).await;
    world.set("OTEL_TRACES_EXPORTER", "none");
    world.set("OTEL_EXPORTER_OTLP_METRICS_ENDPOINT", &format!("{url}/nothing-there"));
    let quiet = world.run(&["run", "What is it?", "-q"]).await.code(0);
    assert_eq!((quiet.stdout.as_str(), quiet.stderr.as_str()), ("It is 42 [1].\n", ""));
    world.set("OTEL_EXPORTER_OTLP_METRICS_ENDPOINT", "http://127.0.0.1:9/v1/metrics");
    let warned = world.run(&["run", "What is it?", "-q"]).await.code(0);
    assert_eq!(warned.stderr.matches("metrics were not delivered").count(), 1, "{warned:?}");
}
