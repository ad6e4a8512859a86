//! The server behind the scripted model: loopback, a free port, every request recorded.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::{DefaultBodyLimit, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::serve::ListenerExt as _;
use axum::{Json, Router};
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use super::choose::{Counts, RecordedRequest};
use super::{embeddings, reply, script::Script};
use crate::Error;
use perihelion_clock as clock;

/// Maximum bytes of a request; prompts with whole files are far smaller.
const BODY_BYTES: usize = 64 * 1024 * 1024;

/// Characters of the last message that the error for an unscripted request shows.
const SHOWN_CHARS: usize = 300;

pub struct ScriptedModel;

impl ScriptedModel {
    /// Serves a script on a free loopback port.
    ///
    /// # Errors
    /// [`Error::Script`] if no loopback port is available.
    pub async fn start(script: Script) -> Result<ScriptedServer, Error> {
        let refused = |error: std::io::Error| Error::Script(format!("no loopback port: {error}"));
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.map_err(refused)?;
        let address = listener.local_addr().map_err(refused)?;
        // Otherwise each piece of a streamed answer waits until the one before is acknowledged: 40 ms on Linux.
        let listener = listener.tap_io(|stream| {
            if let Err(error) = stream.set_nodelay(true) {
                tracing::debug!(%error, "pieces of answers may be late");
            }
        });
        let stop = CancellationToken::new();
        let shared = Arc::new(Shared {
            script,
            log: Mutex::default(),
            arrived: watch::Sender::new(0),
            stop: stop.clone(),
        });
        let router = Router::new()
            .route("/v1/chat/completions", post(complete))
            .route("/v1/embeddings", post(embeddings::embed))
            .route("/v1/models", get(models))
            .layer(DefaultBodyLimit::max(BODY_BYTES))
            .with_state(Arc::clone(&shared));
        let stopped = stop.clone().cancelled_owned();
        let task = tokio::spawn(async move {
            let served = axum::serve(listener, router).with_graceful_shutdown(stopped).await;
            if let Err(error) = served {
                tracing::warn!(%error, "the scripted model ended");
            }
        });
        Ok(ScriptedServer { url: format!("http://{address}/v1"), shared, stop, task })
    }
}

/// A running scripted model; dropping it stops it as well, without waiting.
pub struct ScriptedServer {
    url: String,
    shared: Arc<Shared>,
    stop: CancellationToken,
    task: JoinHandle<()>,
}

impl ScriptedServer {
    /// Returns the address to give as `OPENAI_BASE_URL`.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Returns the stored requests so far, in the order of their arrival.
    pub fn requests(&self) -> Vec<RecordedRequest> {
        self.shared.log.lock().requests.iter().cloned().collect()
    }

    /// Waits until `count` requests have arrived, answered or not.
    pub async fn wait_for_requests(&self, count: usize) {
        // The sender lives in `shared`, so the wait cannot end early.
        let _ = self.shared.arrived.subscribe().wait_for(|arrived| *arrived >= count).await;
    }

    /// Stops the server: delayed and hanging requests end, and no task is left behind.
    pub async fn stop(mut self) {
        /// A client that keeps a half-read answer open must not keep the server.
        const GRACE: Duration = Duration::from_secs(2);
        self.stop.cancel();
        if tokio::time::timeout(GRACE, &mut self.task).await.is_err() {
            self.task.abort();
        }
    }
}

impl Drop for ScriptedServer {
    fn drop(&mut self) {
        self.stop.cancel();
        self.task.abort();
    }
}

struct Shared {
    script: Script,
    log: Mutex<Log>,
    arrived: watch::Sender<usize>,
    stop: CancellationToken,
}

#[derive(Default)]
struct Log {
    requests: VecDeque<RecordedRequest>,
    /// Requests so far, including those that were not stored.
    arrived: usize,
    counts: Counts,
}

async fn complete(
    State(shared): State<Arc<Shared>>,
    headers: HeaderMap,
    Json(body): Json<Value>,
) -> Response {
    let mut request = RecordedRequest::new(&headers, body);
    let (reply, number) = {
        let mut log = shared.log.lock();
        log.counts.number(&mut request);
        let reply = log.counts.choose(&shared.script, &request);
        log.arrived += 1;
        log.requests.push_back(request.clone());
        while shared.script.keep.is_some_and(|most| log.requests.len() > most) {
            log.requests.pop_front();
        }
        (reply, log.arrived)
    };
    shared.arrived.send_replace(number);
    let Some(reply) = reply else { return unscripted(&request) };
    let pause = async {
        if reply.hang {
            std::future::pending::<()>().await;
        } else if reply.delay_ms > 0 {
            clock::sleep(Duration::from_millis(reply.delay_ms)).await;
        }
    };
    tokio::select! {
        () = pause => reply::response(&reply, &request, number),
        () = shared.stop.cancelled() => {
            let body = reply::error(503, "the scripted model is stopping");
            (StatusCode::SERVICE_UNAVAILABLE, Json(body)).into_response()
        }
    }
}

/// Rejects a request that no rule matches, with the text that a rule would have to match.
fn unscripted(request: &RecordedRequest) -> Response {
    let last: String = request.last_text().chars().take(SHOWN_CHARS).collect();
    let message = format!(
        "the script has no reply for role `{}`, agent `{}`, call {}, after {} tool results; last message: {last}",
        request.role,
        request.agent.as_deref().unwrap_or("-"),
        request.nth,
        request.tool_results(),
    );
    (StatusCode::BAD_REQUEST, Json(reply::error(400, &message))).into_response()
}

async fn models() -> Json<Value> {
    Json(json!({ "object": "list", "data": [{ "id": "scripted", "object": "model" }] }))
}
