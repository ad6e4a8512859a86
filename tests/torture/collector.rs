//! A collector of traces that keeps the ids of the spans that it was sent, and sometimes refuses or does not answer.

use std::collections::HashSet;
use std::io::Read as _;
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::routing::any;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use prost::Message as _;

use super::random::Random;
use super::receiver::broken;

/// The ids of a trace and of one of its spans.
pub type Id = ([u8; 16], [u8; 8]);

/// Where the processes send their traces.
pub struct Collector {
    pub url: String,
    shared: Arc<Shared>,
}

struct Shared {
    spans: Mutex<HashSet<Id>>,
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
    pub fn received(&self) -> HashSet<Id> {
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
    let id = |trace: &[u8], span: &[u8]| Some((trace.try_into().ok()?, span.try_into().ok()?));
    let ids = scopes.flat_map(|scope| scope.spans).filter_map(|s| id(&s.trace_id, &s.span_id));
    shared.spans.lock().unwrap().extend(ids);
    if is_lost { broken() } else { StatusCode::OK.into_response() }
}
