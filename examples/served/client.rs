//! What the examples use as clients do: JSON over HTTP, on the routes of the Agent Server API.

use std::error::Error;

use perihelion::config::{Overrides, Settings};
use perihelion::{Graphs, Serving};
use serde_json::{Value, json};

pub type Result<T> = std::result::Result<T, Box<dyn Error>>;

/// A service of an example, in a directory of its own.
pub struct Client {
    http: reqwest::Client,
    serving: Serving,
    _directory: tempfile::TempDir,
}

impl Client {
    /// Serves graphs on a free port.
    pub async fn serve(graphs: Graphs, model_url: Option<&str>) -> Result<Self> {
        let directory = tempfile::tempdir()?;
        let servers = directory.path().join("mcp-servers.toml");
        std::fs::write(&servers, "")?;
        let overrides = Overrides {
            addr: Some("127.0.0.1:0".into()),
            database: Some(format!("sqlite:{}", directory.path().join("threads.db").display())),
            servers: Some(servers),
            model_url: model_url.map(str::to_owned),
            model: Some("scripted".into()),
            ..Overrides::default()
        };
        let settings = Settings::load(overrides, None, &|_| None)?;
        let serving = perihelion::serve(graphs, settings).await?;
        let http = reqwest::Client::builder().no_proxy().build()?;
        Ok(Self { http, serving, _directory: directory })
    }

    /// Sends a request and reads the answer as JSON.
    pub async fn post(&self, path: &str, body: Value) -> Result<Value> {
        Ok(serde_json::from_str(&self.text(path, &body).await?)?)
    }

    /// Reads JSON.
    pub async fn get(&self, path: &str) -> Result<Value> {
        let answer = self.http.get(format!("{}{path}", self.serving.url())).send().await?;
        Ok(serde_json::from_str(&answer.error_for_status()?.text().await?)?)
    }

    async fn text(&self, path: &str, body: &Value) -> Result<String> {
        let request = self.http.post(format!("{}{path}", self.serving.url()));
        let request = request.header("content-type", "application/json").body(body.to_string());
        let answer = request.send().await?;
        let status = answer.status();
        let text = answer.text().await?;
        if status.is_success() { Ok(text) } else { Err(format!("{path}: {status}: {text}").into()) }
    }

    /// Makes a thread, and returns its route.
    pub async fn thread(&self) -> Result<String> {
        let thread = self.post("/threads", json!({})).await?;
        Ok(format!("/threads/{}", thread["thread_id"].as_str().unwrap_or_default()))
    }

    /// Streams a run, and returns its events with their names.
    pub async fn stream(&self, thread: &str, body: Value) -> Result<Vec<(String, Value)>> {
        let text = self.text(&format!("{thread}/runs/stream"), &body).await?;
        let field = |event: &str, name: &str| {
            event.lines().find_map(|line| line.strip_prefix(name).map(str::to_owned))
        };
        let event = |event: &str| {
            let data = serde_json::from_str(&field(event, "data: ")?).ok()?;
            Some((field(event, "event: ")?, data))
        };
        Ok(text.replace('\r', "").split("\n\n").filter_map(event).collect())
    }

    /// Ends the service.
    pub async fn stop(self) -> Result<()> {
        Ok(self.serving.stop().await?)
    }
}
