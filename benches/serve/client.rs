//! The client: the same for every server of the interface.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use futures::StreamExt as _;
use serde_json::{Value, json};

use super::model::{SLOWLY, now};

#[derive(Clone)]
pub struct Client {
    http: reqwest::Client,
    url: String,
    assistant: String,
}

impl Client {
    pub fn new(url: String, assistant: String) -> Self {
        let http = reqwest::Client::builder().no_proxy().pool_max_idle_per_host(4_096);
        Self { http: http.build().unwrap(), url, assistant }
    }

    async fn post(&self, path: &str, body: &Value) -> reqwest::Response {
        let asked = self.http.post(format!("{}{path}", self.url));
        let asked = asked.header("content-type", "application/json").body(body.to_string());
        let answer = asked.send().await.unwrap();
        assert!(answer.status().is_success(), "{path}: {}", answer.status());
        answer
    }

    async fn thread(&self) -> String {
        let thread = self.post("/threads", &json!({})).await.text().await.unwrap();
        let thread: Value = serde_json::from_str(&thread).unwrap();
        thread["thread_id"].as_str().unwrap().to_owned()
    }

    fn run(&self) -> Value {
        self.saying("hello", "updates")
    }

    fn saying(&self, text: &str, mode: &str) -> Value {
        json!({
            "assistant_id": self.assistant, "stream_mode": [mode],
            "input": { "messages": [{ "role": "user", "content": text }] },
        })
    }

    /// Makes threads and runs each once to its end, so many at a time.
    pub async fn runs(&self, runs: usize, at_once: usize) {
        let left = Arc::new(AtomicUsize::new(runs));
        let workers = (0..at_once).map(|_| {
            let client = self.clone();
            let left = Arc::clone(&left);
            tokio::spawn(async move {
                while left
                    .fetch_update(Ordering::AcqRel, Ordering::Acquire, |n| n.checked_sub(1))
                    .is_ok()
                {
                    let thread = client.thread().await;
                    let path = format!("/threads/{thread}/runs/wait");
                    client.post(&path, &client.run()).await.bytes().await.unwrap();
                }
            })
        });
        for worker in workers.collect::<Vec<_>>() {
            worker.await.unwrap();
        }
    }

    /// Begins runs and streams them to their ends, so many at a time; returns how long each took to its first event,
    /// in milliseconds.
    pub async fn first_events(&self, streams: usize, at_once: usize) -> Vec<f64> {
        let streams = futures::stream::iter(0..streams).map(|_| self.first_event());
        streams.buffer_unordered(at_once).collect().await
    }

    /// Begins a run and streams it to its end; returns how long it took to its first event, in milliseconds.
    pub async fn first_event(&self) -> f64 {
        let thread = self.thread().await;
        let began = Instant::now();
        let path = format!("/threads/{thread}/runs/stream");
        let mut bytes = self.post(&path, &self.run()).await.bytes_stream();
        bytes.next().await.unwrap().unwrap();
        let first = began.elapsed().as_secs_f64() * 1e3;
        while bytes.next().await.is_some() {}
        first
    }

    /// Follows a run whose answer has so many words, and returns how long each was on its way, in milliseconds.
    pub async fn slow_answer(&self, words: u32) -> Vec<f64> {
        let thread = self.thread().await;
        let path = format!("/threads/{thread}/runs/stream");
        let run = self.saying(&format!("{SLOWLY}{words}"), "messages-tuple");
        let mut bytes = self.post(&path, &run).await.bytes_stream();
        let mut text = String::new();
        let mut each = Vec::new();
        while let Some(Ok(more)) = bytes.next().await {
            text.push_str(&String::from_utf8_lossy(&more));
            while let Some((event, rest)) = text.split_once("\n\n") {
                let data = event.lines().find_map(|line| line.strip_prefix("data: ["));
                if let Some((_, piece)) = data.and_then(|data| data.split_once("\"content\":\"")) {
                    let words = piece.split('"').next().unwrap().split_whitespace();
                    let sent = words.filter_map(|word| word.parse::<u128>().ok());
                    each.extend(sent.map(|sent| now().saturating_sub(sent) as f64 / 1e3));
                }
                text = rest.to_owned();
            }
        }
        each
    }

    /// Lists the newest threads, one time after another; returns how long each took, in milliseconds.
    pub async fn lists(&self, times: usize) -> Vec<f64> {
        let mut each = Vec::with_capacity(times);
        for _ in 0..times {
            let began = Instant::now();
            let body = json!({ "limit": 20, "metadata": { "graph_id": self.assistant } });
            self.post("/threads/search", &body).await.bytes().await.unwrap();
            each.push(began.elapsed().as_secs_f64() * 1e3);
        }
        each
    }

    /// Opens a thread that has run, one time after another; returns how long each took, in milliseconds.
    pub async fn opens(&self, times: usize) -> Vec<f64> {
        let thread = self.thread().await;
        let path = format!("/threads/{thread}/runs/wait");
        self.post(&path, &self.run()).await.bytes().await.unwrap();
        let mut each = Vec::with_capacity(times);
        for _ in 0..times {
            let began = Instant::now();
            let asked = self.http.get(format!("{}/threads/{thread}/state", self.url));
            asked.send().await.unwrap().bytes().await.unwrap();
            each.push(began.elapsed().as_secs_f64() * 1e3);
        }
        each
    }

    /// Opens streams of threads at rest, and holds them.
    pub async fn idle_streams(&self, streams: usize) -> Vec<reqwest::Response> {
        let mut connections = Vec::with_capacity(streams);
        for _ in 0..streams {
            let thread = self.thread().await;
            let body = json!({ "channels": ["lifecycle", "values", "messages"] });
            connections.push(self.post(&format!("/threads/{thread}/stream/events"), &body).await);
        }
        connections
    }
}
