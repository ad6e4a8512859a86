//! What is sent to a collector by real processes, and when they end all the same.

use nix::sys::signal::Signal;
use perihelion::llm::Role;
use perihelion::llm::scripted::{Reply, Rule};
use tonic::transport::Identity;

use super::world::{World, ended, first, reading, signal};
use crate::telemetry::receiver::{Collector, Manner, attribute};

const KEY: &str = "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f";

/// As OpenTelemetry has it: an address for one signal is complete, one for all is a base.
#[tokio::test]
async fn an_address_for_traces_alone_is_used_as_it_is() {
    let (collector, url) = Collector::start(Manner::default()).await;
    let mut world = World::new(reading()).await;
    world.set("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", &format!("{url}/exact"));
    world.run(&["run", "What is it?", "-q"]).await.code(0);
    assert!(collector.spans().iter().any(|span| span.name == "invoke_workflow swarm"));
    assert!(collector.metrics().is_empty(), "it is none for metrics");
}

/// X7: a collector that takes a request and never answers holds nobody up, and misses nothing.
#[tokio::test]
async fn a_run_that_is_stopped_ends_although_the_collector_stalls_and_is_delivered_later() {
    let (collector, url) = Collector::start(Manner { stalls: true, ..Manner::default() }).await;
    let hanging = Rule::new(Reply::hang()).role(Role::Qa).contains("What is it?").nth(1);
    let mut world = World::new(first(hanging, reading())).await;
    world.set("OTEL_EXPORTER_OTLP_ENDPOINT", &url);
    let run = world.start(&["run", "What is it?", "--thread", "t"]);
    // The sixth is QA's, which hangs.
    world.model.wait_for_requests(6).await;
    signal(&run, Signal::SIGTERM);
    ended(run).await.code(1).says("the next process sends them again");

    collector.behave(Manner::default());
    let before_export = world.run(&["doctor"]).await.code(0);
    assert!(before_export.stdout.contains("1 thread has unsent traces"), "{before_export:?}");
    world.run(&["resume", "t", "-q"]).await.code(0);
    let paid = world.run(&["doctor"]).await.code(0);
    assert!(!paid.stdout.contains("did not arrive yet"), "{paid:?}");
    let trace = world.run(&["trace", "t", "--json"]).await.code(0).json();
    let sent: Vec<String> = collector.spans().into_iter().map(|span| hex(&span.span_id)).collect();
    for span in trace["spans"].as_array().unwrap() {
        assert!(sent.iter().any(|id| span["span_id"] == *id), "{span}");
    }
}

#[tokio::test]
async fn an_encrypted_thread_stores_and_delivers_its_trace_like_any_other() {
    let (collector, url) =
        Collector::start(Manner { status: Some(403), ..Manner::default() }).await;
    let mut world = World::new(reading()).await;
    world.write("one.key", &format!("{KEY}\n"));
    world.write("perihelion.toml", "[encryption]\nkeys = [\"one=file:one.key\"]\n");
    world.set("OTEL_EXPORTER_OTLP_ENDPOINT", &url);
    world.run(&["run", "What is it?", "--thread", "t", "-q"]).await.code(0);
    assert!(collector.spans().is_empty());
    collector.behave(Manner::default());
    world.run(&["run", "What is it?", "--thread", "u", "-q"]).await.code(0);
    let roots = collector.spans().into_iter().filter(|span| span.parent_span_id.is_empty());
    let mut threads: Vec<String> =
        roots.map(|span| attribute(&span.attributes, "thread.id").unwrap()).collect();
    threads.sort();
    let mut both = Vec::new();
    for name in ["t", "u"] {
        let show = world.run(&["threads", "show", name, "--json"]).await.code(0).json();
        both.push(show["thread_id"].as_str().unwrap().to_owned());
    }
    both.sort();
    assert_eq!(threads, both);
}

#[tokio::test]
async fn a_collector_over_tls_is_trusted_by_the_certificate_that_is_named_and_not_without_it() {
    let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
    let certificate = made.cert.pem();
    let key = made.signing_key.serialize_pem();
    perihelion::config::tls::install();
    let (collector, url) =
        Collector::start_grpc_tls(Identity::from_pem(certificate.clone(), key)).await;
    let mut world = World::new(reading()).await;
    world.write("collector.pem", &certificate);
    world.set("OTEL_EXPORTER_OTLP_ENDPOINT", &url);
    world.set("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc");
    world.set("OTEL_METRICS_EXPORTER", "none");
    world.set("NO_PROXY", "localhost");
    world.run(&["run", "What is it?", "-q"]).await.code(0).says("a trace was not exported");
    assert!(collector.spans().is_empty());
    world.set("OTEL_EXPORTER_OTLP_CERTIFICATE", "collector.pem");
    let run = world.run(&["run", "What is it?", "-q"]).await.code(0);
    assert!(!run.stderr.contains("not exported"), "{run:?}");
    assert!(collector.spans().iter().any(|span| span.name == "invoke_workflow swarm"));
    world.set("OTEL_EXPORTER_OTLP_CERTIFICATE", "nowhere.pem");
    world.run(&["run", "What is it?", "-q"]).await.code(2).says("nowhere.pem");
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
