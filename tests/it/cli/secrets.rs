//! What the configuration keeps secret, looked for in every place that the program writes to.

use std::path::Path;

use super::world::{KEY, World, noting};
use crate::telemetry::receiver::{Collector, Manner};

/// Secrets as an operator configures them: what a server's environment, its headers and token and the
/// collector's headers hold. [`KEY`] is the model's.
const CANARIES: [&str; 6] = [
    "canary-server-environment",
    "canary-inherited-environment",
    "canary-bearer-token",
    "canary-http-header",
    "canary-collector-header",
    KEY,
];

const SERVERS: &str = r#"
[mcp_servers.notes]
command = "perihelion"
args = ["mcp", "notes", "--file", "notes.jsonl"]
env = { NOTES_TOKEN = "canary-server-environment" }
env_vars = ["INHERITED_TOKEN"]

[mcp_servers.away]
url = "http://127.0.0.1:9/mcp"
bearer_token_env_var = "BEARER_TOKEN"
http_headers = { X-Token = "canary-http-header" }
"#;

/// Returns the secrets that stand in some bytes, as they are or as hexadecimal digits.
fn found(bytes: &[u8]) -> Vec<&'static str> {
    let holds = |wanted: &[u8]| bytes.windows(wanted.len()).any(|window| window == wanted);
    let hex = |text: &str| text.bytes().map(|byte| format!("{byte:02x}")).collect::<String>();
    let leaked = |canary: &&str| holds(canary.as_bytes()) || holds(hex(canary).as_bytes());
    CANARIES.into_iter().filter(leaked).collect()
}

fn files(directory: &Path, out: &mut Vec<(String, Vec<u8>)>) {
    for entry in std::fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        match path.is_dir() {
            true => files(&path, out),
            false => out.push((path.display().to_string(), std::fs::read(&path).unwrap())),
        }
    }
}

/// Runs a thread with every kind of secret configured and returns what was written, by place.
async fn sinks(grpc: bool) -> Vec<(String, Vec<u8>)> {
    let (collector, url) = match grpc {
        true => Collector::start_grpc(Manner::default()).await,
        false => Collector::start(Manner::default()).await,
    };
    let mut world = World::new(noting()).await;
    world.write("mcp-servers.toml", SERVERS);
    world.set("INHERITED_TOKEN", "canary-inherited-environment");
    world.set("BEARER_TOKEN", "canary-bearer-token");
    world.set("OTEL_EXPORTER_OTLP_ENDPOINT", &url);
    world.set("OTEL_EXPORTER_OTLP_PROTOCOL", if grpc { "grpc" } else { "http/protobuf" });
    world.set("OTEL_EXPORTER_OTLP_TRACES_HEADERS", "x-token=canary%2Dcollector%2Dheader");
    world.set("PERIHELION_TRACES_CONTENT", "true");
    world.set("PERIHELION_LOG_FORMAT", "json");
    let mut sinks = Vec::new();
    for (args, code) in [
        (&["run", "Take a note", "--thread", "t", "--log", "trace,rmcp=trace"][..], 0),
        (&["trace", "t", "--json"], 0),
        (&["trace", "t", "--otlp"], 0),
        (&["threads", "export", "t"], 0),
        (&["threads", "state", "t"], 0),
        (&["agents", "list"], 0),
        (&["doctor", "--log", "trace"], 1),
        (&["resume", "t", "--log", "trace"], 2),
    ] {
        let ended = world.run(args).await.code(code);
        sinks.push((format!("the output of {args:?}"), ended.stdout.into_bytes()));
        sinks.push((format!("the log of {args:?}"), ended.stderr.into_bytes()));
    }
    let headers = collector.headers();
    assert!(headers.iter().all(|one| one["x-token"] == "canary-collector-header"), "{headers:?}");
    assert!(collector.spans().iter().any(|span| span.name == "execute_tool append_note"));
    sinks.push(("what the collector got".into(), collector.bytes()));
    let mut written = Vec::new();
    files(&world.path("data"), &mut written);
    files(&world.path("documents"), &mut written);
    assert!(!written.is_empty());
    sinks.extend(written);
    sinks
}

/// S1.12, X6
#[tokio::test]
async fn no_sink_shows_a_configured_secret() {
    for grpc in [false, true] {
        for (place, bytes) in sinks(grpc).await {
            assert_eq!(found(&bytes), Vec::<&str>::new(), "{place}, over gRPC: {grpc}");
        }
    }
}
