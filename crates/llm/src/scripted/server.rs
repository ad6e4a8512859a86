//! The server behind the scripted model: loopback, a free port, every request recorded.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use axum::extract::{DefaultBodyLimit, Path, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::serve::ListenerExt as _;
use axum::{Json, Router};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use super::choose::{Counts, RecordedRequest};
use super::native::{self, Wire};
use super::{embeddings, reply, script::Script};
use crate::Error;
use perihelion_engine::clock;

/// Bytes a request may have; prompts with whole files in them stay well below.
const BODY_BYTES: usize = 64 * 1024 * 1024;

/// Characters of the last message that the error for an unscripted request shows.
const SHOWN_CHARS: usize = 300;

pub struct ScriptedModel;

impl ScriptedModel {
    /// Serves a script on a free loopback port.
    ///
    /// # Errors
    /// [`Error::Script`] when no loopback port can be had.
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
            .route("/v1/messages", post(messages))
            .route("/v1beta/models/{call}", post(generate))
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

    /// Returns the address to give as that of an endpoint with Gemini's wire.
    pub fn gemini_url(&self) -> String {
        self.url.replace("/v1", "/v1beta")
    }

    /// Returns the requests so far that are kept, in the order of their arrival.
    pub fn requests(&self) -> Vec<RecordedRequest> {
        self.shared.log().requests.iter().cloned().collect()
    }

    /// Waits until `count` requests have arrived, answered or not.
    pub async fn wait_for_requests(&self, count: usize) {
        // The sender lives in `shared`, so the wait cannot end early.
        let _ = self.shared.arrived.subscribe().wait_for(|arrived| *arrived >= count).await;
    }

    /// Stops the server: held and hanging requests are let go, and no task is left behind.
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
    /// Requests so far, those that are not kept included.
    arrived: usize,
    counts: Counts,
}

impl Shared {
    fn log(&self) -> MutexGuard<'_, Log> {
        // A responder that panicked in a test must not turn every later request into a panic.
        self.log.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

async fn complete(
    State(shared): State<Arc<Shared>>,
    headers: HeaderMap,
    Json(body): Json<Value>,
) -> Response {
    let request = RecordedRequest::new(&headers, Wire::ChatCompletions, body, None);
    answer(&shared, request).await
}

/// Answers over Anthropic's wire.
async fn messages(
    State(shared): State<Arc<Shared>>,
    headers: HeaderMap,
    Json(sent): Json<Value>,
) -> Response {
    if !headers.contains_key("anthropic-version") {
        return refused(Wire::Anthropic, "anthropic-version: header is required");
    }
    match native::from_anthropic(&sent) {
        Ok(body) => {
            let request = RecordedRequest::new(&headers, Wire::Anthropic, body, Some(sent));
            answer(&shared, request).await
        }
        Err(message) => refused(Wire::Anthropic, &message),
    }
}

/// Answers over Gemini's wire; `call` is `MODEL:generateContent` or `MODEL:streamGenerateContent`.
async fn generate(
    State(shared): State<Arc<Shared>>,
    Path(call): Path<String>,
    headers: HeaderMap,
    Json(sent): Json<Value>,
) -> Response {
    let (model, method) = call.split_once(':').unwrap_or((&call, ""));
    match native::from_gemini(&sent, model, method == "streamGenerateContent") {
        Ok(body) => {
            let request = RecordedRequest::new(&headers, Wire::Gemini, body, Some(sent));
            answer(&shared, request).await
        }
        Err(message) => refused(Wire::Gemini, &message),
    }
}

fn refused(wire: Wire, message: &str) -> Response {
    (StatusCode::BAD_REQUEST, Json(native::error(wire, 400, message))).into_response()
}

async fn answer(shared: &Shared, mut request: RecordedRequest) -> Response {
    let (reply, number) = {
        let mut log = shared.log();
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

/// Refuses a request that no rule matches, saying what the script would have to match.
fn unscripted(request: &RecordedRequest) -> Response {
    let last: String = request.last_text().chars().take(SHOWN_CHARS).collect();
    let message = format!(
        "the script has no reply for role `{}`, agent `{}`, call {}, after {} tool results; last message: {last}",
        request.role,
        request.agent.as_deref().unwrap_or("-"),
        request.nth,
        request.tool_results(),
    );
    refused(request.wire, &message)
}

async fn models() -> Json<Value> {
    Json(json!({ "object": "list", "data": [{ "id": "scripted", "object": "model" }] }))
}
