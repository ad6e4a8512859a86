//! A collector of traces that keeps what the spans that it was sent say of their places, and sometimes refuses or does not answer.

use std::collections::HashMap;
use std::io::Read as _;
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::routing::any;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::any_value::Value;
use opentelemetry_proto::tonic::trace::v1::Span;
use prost::Message as _;

use super::random::Random;
use super::receiver::broken;

/// The ids of a trace and of one of its spans.
pub type Id = ([u8; 16], [u8; 8]);

/// What a span says of the row that it stands for.
#[derive(Clone, Debug, Default)]
pub struct Seen {
    pub name: String,
    /// The thread and the step: `THREAD:STEP`.
    pub checkpoint: String,
    /// The key that a call of a tool was sent under.
    pub key: Option<String>,
    /// The question that a person was asked.
    pub interrupt: Option<String>,
}

/// Spans that arrived, each once however often it was sent.
pub type Received = HashMap<Id, Seen>;

/// Where the processes send their traces.
pub struct Collector {
    pub url: String,
    shared: Arc<Shared>,
}

struct Shared {
    spans: Mutex<Received>,
    random: Mutex<Random>,
}

impl Collector {
    /// Starts a collector on a free port; it ends with this process.
    pub async fn start(seed: u64) -> Self {
        let random = Mutex::new(Random::new(seed, &[8]));
        let shared = Arc::new(Shared { spans: Mutex::default(), random });
        let router = Router::new()
            .route("/v1/traces", any(take))
            .fallback(|| async { StatusCode::OK })
            .with_state(Arc::clone(&shared));
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
        Self { url, shared }
    }

    /// Returns what has arrived.
    pub fn received(&self) -> Received {
        self.shared.spans.lock().unwrap().clone()
    }
}

async fn take(State(shared): State<Arc<Shared>>, body: Bytes) -> Response {
    let (refuses, is_lost) = {
        let mut random = shared.random.lock().unwrap();
        (random.per_mille(20), random.per_mille(20))
    };
    if refuses {
        return StatusCode::SERVICE_UNAVAILABLE.into_response();
    }
    let mut plain = Vec::new();
    flate2::read::GzDecoder::new(&body[..]).read_to_end(&mut plain).unwrap();
    let request = ExportTraceServiceRequest::decode(&plain[..]).unwrap();
    let scopes = request.resource_spans.into_iter().flat_map(|resource| resource.scope_spans);
    let spans = scopes.flat_map(|scope| scope.spans).filter_map(read);
    shared.spans.lock().unwrap().extend(spans);
    if is_lost { broken() } else { StatusCode::OK.into_response() }
}

fn read(span: Span) -> Option<(Id, Seen)> {
    let text = |name: &str| {
        let found = span.attributes.iter().find(|attribute| attribute.key == name)?;
        match found.value.as_ref()?.value.as_ref()? {
            Value::StringValue(text) => Some(text.clone()),
            _ => None,
        }
    };
    let seen = Seen {
        checkpoint: text("perihelion.checkpoint.id").unwrap_or_default(),
        key: text("perihelion.idempotency_key"),
        interrupt: text("perihelion.interrupt.id"),
        name: span.name.clone(),
    };
    let id = (span.trace_id.as_slice().try_into().ok()?, span.span_id.as_slice().try_into().ok()?);
    Some((id, seen))
}
