//! Phoenix, by Arize.

use serde_json::Value;

use super::python;
use super::server::{Server, command, port};
use super::spans::{Span, Trace, filtered, moment, names, text};
use super::story::Backend;

const VERSION: &str = "20.26.1";

pub struct Phoenix {
    server: Server,
    grpc: u16,
}

impl Phoenix {
    pub async fn start() -> Self {
        let home = tempfile::tempdir().unwrap();
        let http = port();
        let grpc = port();
        let mut command = command(&python::programs("arize-phoenix", VERSION).join("phoenix"));
        command
            .arg("serve")
            .env("PHOENIX_WORKING_DIR", home.path())
            .env("PHOENIX_HOST", "127.0.0.1")
            .env("PHOENIX_PORT", http.to_string())
            .env("PHOENIX_GRPC_PORT", grpc.to_string())
            .env("PHOENIX_TELEMETRY_ENABLED", "false")
            .env("PHOENIX_DISABLE_AGENT_ASSISTANT", "true");
        Self { server: Server::start(command, home, http, "/healthz").await, grpc }
    }

    /// Reads a list of the project's, page by page.
    async fn all(&self, what: &str) -> Vec<Value> {
        let mut all = Vec::new();
        let mut cursor = String::new();
        loop {
            let path = format!("/v1/projects/perihelion/{what}?limit=100{cursor}");
            let page = self.server.get(&path).await;
            all.extend(page["data"].as_array().unwrap().iter().cloned());
            let Some(next) = page["next_cursor"].as_str() else { return all };
            cursor = format!("&cursor={next}");
        }
    }

    async fn has_project(&self) -> bool {
        let projects = self.server.get("/v1/projects").await;
        projects["data"].as_array().unwrap().iter().any(|one| one["name"] == "perihelion")
    }
}

impl Backend for Phoenix {
    fn environment(&self) -> Vec<(&'static str, String)> {
        vec![("OTEL_EXPORTER_OTLP_ENDPOINT", self.server.url.clone())]
    }

    fn grpc(&self) -> Option<String> {
        Some(format!("http://127.0.0.1:{}", self.grpc))
    }

    fn output(&self) -> String {
        self.server.output()
    }

    async fn trace(&self, id: &str) -> Trace {
        let mut trace = Trace::default();
        // The project is the resource attribute `openinference.project.name`, made by the first span.
        if !self.has_project().await {
            return trace;
        }
        let spans = self.all("spans").await;
        for span in spans.iter().filter(|span| span["context"]["trace_id"] == id) {
            let kept = Span {
                parent: span["parent_id"].as_str().map(str::to_owned),
                name: text(&span["name"]),
                status: text(&span["status_code"]),
                message: text(&span["status_message"]),
                began: moment(&span["start_time"]),
                ended: moment(&span["end_time"]),
                events: names(&span["events"]),
                attributes: filtered(|name| Some(text(span["attributes"].get(name)?))),
            };
            trace.spans.insert(text(&span["context"]["span_id"]), kept);
        }
        let traces = self.all("traces").await;
        if let Some(one) = traces.iter().find(|one| one["trace_id"] == id) {
            trace.input_tokens = one["token_count_prompt"].as_u64().unwrap();
            trace.output_tokens = one["token_count_completion"].as_u64().unwrap();
        }
        let contains = |session: &&Value| {
            session["traces"].as_array().unwrap().iter().any(|one| one["trace_id"] == id)
        };
        if let Some(session) = self.all("sessions").await.iter().find(contains) {
            trace.session = text(&session["session_id"]);
        }
        trace
    }

    async fn texts(&self) -> String {
        Value::from(self.all("spans").await).to_string()
    }
}
