//! MLflow, from version 3 on.

use serde_json::{Value, json};

use super::python;
use super::server::{Server, command, port};
use super::spans::{Span, Trace, filtered, micros, names, text};
use super::story::Backend;

const VERSION: &str = "3.17.2";

pub struct Mlflow {
    server: Server,
}

impl Mlflow {
    pub async fn start() -> Self {
        let home = tempfile::tempdir().unwrap();
        let port = port();
        let bin = python::programs("mlflow", VERSION);
        let mut command = command(&bin.join("mlflow"));
        command
            .args(["server", "--backend-store-uri", "sqlite:///mlflow.db", "--workers", "1"])
            .args(["--host", "127.0.0.1", "--port", &port.to_string()])
            .env("MLFLOW_SERVER_ENABLE_JOB_EXECUTION", "false")
            .env("MLFLOW_DISABLE_TELEMETRY", "true");
        // It starts its server by name.
        let path = std::env::var("PATH").unwrap_or_default();
        command.env("PATH", format!("{}:{path}", bin.display()));
        Self { server: Server::start(command, home, port, "/health").await }
    }

    async fn get(&self, id: &str) -> Value {
        self.server.get(&format!("/api/3.0/mlflow/traces/batchGet?trace_ids=tr-{id}")).await
    }
}

impl Backend for Mlflow {
    fn environment(&self) -> Vec<(&'static str, String)> {
        vec![
            ("OTEL_EXPORTER_OTLP_ENDPOINT", self.server.url.clone()),
            ("OTEL_EXPORTER_OTLP_HEADERS", "x-mlflow-experiment-id=0".to_owned()),
        ]
    }

    fn grpc(&self) -> Option<String> {
        None
    }

    fn output(&self) -> String {
        self.server.output()
    }

    async fn trace(&self, id: &str) -> Trace {
        let mut trace = Trace::default();
        let got = self.get(id).await;
        let Some(got) = got["traces"].get(0) else { return trace };
        let metadata = &got["trace_info"]["trace_metadata"];
        trace.session = text(&metadata["mlflow.trace.session"]);
        let usage = text(&metadata["mlflow.trace.tokenUsage"]);
        let usage: Value = serde_json::from_str(&usage).unwrap_or_default();
        trace.input_tokens = usage["input_tokens"].as_u64().unwrap_or_default();
        trace.output_tokens = usage["output_tokens"].as_u64().unwrap_or_default();
        for span in got["spans"].as_array().into_iter().flatten() {
            let code = text(&span["status"]["code"]).replace("STATUS_CODE_", "");
            let kept = Span {
                parent: span["parent_span_id"].as_str().map(hex).filter(|id| !id.is_empty()),
                name: text(&span["name"]),
                status: if code.is_empty() { "UNSET".to_owned() } else { code },
                message: text(&span["status"]["message"]),
                began: micros(&span["start_time_unix_nano"]),
                ended: micros(&span["end_time_unix_nano"]),
                events: names(&span["events"]),
                attributes: filtered(|name| {
                    let list = span["attributes"].as_array()?;
                    let found = list.iter().find(|one| one["key"] == name)?;
                    Some(text(&found["value"]["string_value"]))
                }),
            };
            trace.spans.insert(hex(&text(&span["span_id"])), kept);
        }
        trace
    }

    async fn texts(&self) -> String {
        let experiment = json!({ "experiment_id": "0" });
        let place = json!({ "type": "MLFLOW_EXPERIMENT", "mlflow_experiment": experiment });
        let body = json!({ "locations": [place], "max_results": 100 });
        let found = self.server.post("/api/3.0/mlflow/traces/search", &body).await;
        let mut texts = found.to_string();
        for trace in found["traces"].as_array().into_iter().flatten() {
            let id = text(&trace["trace_id"]);
            texts.push_str(&self.get(id.trim_start_matches("tr-")).await.to_string());
        }
        texts
    }
}

/// Turns an id in Base64 into hexadecimal digits.
fn hex(base64: &str) -> String {
    const DIGITS: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut bits = 0_u32;
    let mut guarded = 0;
    let mut out = String::new();
    for digit in base64.bytes().filter(|digit| *digit != b'=') {
        let value = DIGITS.iter().position(|one| *one == digit).unwrap();
        bits = bits << 6 | u32::try_from(value).unwrap();
        guarded += 6;
        if guarded >= 8 {
            guarded -= 8;
            out.push_str(&format!("{:02x}", bits >> guarded & 0xff));
        }
    }
    out
}
