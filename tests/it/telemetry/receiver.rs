//! A collector in this process, over HTTP and gRPC.

use std::io::Read as _;
use std::sync::{Arc, Mutex};

use axum::body::Bytes;
use axum::http::{HeaderMap, StatusCode};
use axum::routing::post;
use opentelemetry_proto::tonic::collector::metrics::v1::metrics_service_server::{
    MetricsService, MetricsServiceServer,
};
use opentelemetry_proto::tonic::collector::metrics::v1::{
    ExportMetricsServiceRequest, ExportMetricsServiceResponse,
};
use opentelemetry_proto::tonic::collector::trace::v1::trace_service_server::{
    TraceService, TraceServiceServer,
};
use opentelemetry_proto::tonic::collector::trace::v1::{
    ExportTracePartialSuccess, ExportTraceServiceRequest, ExportTraceServiceResponse,
};
use opentelemetry_proto::tonic::common::v1::{AnyValue, KeyValue, any_value};
use opentelemetry_proto::tonic::trace::v1::Span;
use perihelion::ids::ThreadId;
use prost::Message as _;
use tonic::codec::CompressionEncoding;
use tonic::transport::server::TcpIncoming;
use tonic::transport::{Identity, ServerTlsConfig};

/// What a collector does with what it gets.
#[derive(Clone, Copy, Default)]
pub struct Manner {
    /// Refuses everything with this status.
    pub status: Option<u16>,
    /// Takes requests and says that it left out so many spans.
    pub rejects: i64,
    /// Is not available for so many requests at first.
    pub late: usize,
    /// Cannot read a request with a span of this name in it.
    pub dislikes: Option<&'static str>,
    /// Takes requests and never answers.
    pub stalls: bool,
    /// Refuses the spans of this thread with this status.
    pub refuses: Option<(ThreadId, u16)>,
}

/// What a collector has received.
#[derive(Clone, Default)]
pub struct Collector {
    manner: Arc<Mutex<Manner>>,
    /// Headers, bytes as they came uncompressed, and whether the request was taken.
    requests: Arc<Mutex<Vec<(HeaderMap, Bytes, bool)>>>,
    metrics: Arc<Mutex<Vec<ExportMetricsServiceRequest>>>,
}

impl Collector {
    /// Starts one over HTTP on a free port; returns its base address.
    pub async fn start(manner: Manner) -> (Self, String) {
        let collector = Self { manner: Arc::new(Mutex::new(manner)), ..Self::default() };
        let kept = collector.clone();
        let take = move |headers: HeaderMap, body: Bytes| {
            let body = match headers.get("content-encoding") {
                Some(encoding) if encoding == "gzip" => gunzipped(&body),
                _ => body,
            };
            let (status, answer) = kept.take(headers, body);
            let stalls = kept.manner.lock().unwrap().stalls;
            async move {
                if stalls {
                    std::future::pending::<()>().await;
                }
                (status, answer.encode_to_vec())
            }
        };
        let counted = collector.clone();
        let count = async move |body: Bytes| counted.count(&gunzipped(&body)).encode_to_vec();
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/base", listener.local_addr().unwrap());
        let router = axum::Router::new()
            .route("/base/v1/traces", post(take.clone()))
            .route("/base/exact", post(take))
            .route("/base/v1/metrics", post(count.clone()))
            .route("/base/numbers", post(count));
        tokio::spawn(async move { axum::serve(listener, router).await });
        (collector, url)
    }

    /// Starts one over gRPC on a free port; returns its address.
    pub async fn start_grpc(manner: Manner) -> (Self, String) {
        let collector = Self { manner: Arc::new(Mutex::new(manner)), ..Self::default() };
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let router = collector.services().into_axum_router();
        tokio::spawn(async move { axum::serve(listener, router).await });
        (collector, url)
    }

    /// Starts one over gRPC and TLS on a free port of `localhost`; returns its address.
    pub async fn start_grpc_tls(identity: Identity) -> (Self, String) {
        let collector = Self::default();
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("https://localhost:{}", listener.local_addr().unwrap().port());
        let services = collector.services();
        let incoming = TcpIncoming::from(listener);
        let tls = ServerTlsConfig::new().identity(identity);
        let mut server = tonic::transport::Server::builder().tls_config(tls).unwrap();
        let serving = server.add_routes(services);
        tokio::spawn(async move { serving.serve_with_incoming(incoming).await });
        (collector, url)
    }

    fn services(&self) -> tonic::service::Routes {
        let gzip = CompressionEncoding::Gzip;
        let traces = TraceServiceServer::new(self.clone()).accept_compressed(gzip);
        let metrics = MetricsServiceServer::new(self.clone()).accept_compressed(gzip);
        tonic::service::Routes::new(traces).add_service(metrics)
    }

    fn count(&self, body: &[u8]) -> ExportMetricsServiceResponse {
        let request = ExportMetricsServiceRequest::decode(body).unwrap();
        self.metrics.lock().unwrap().push(request);
        ExportMetricsServiceResponse::default()
    }

    /// Returns the deliveries of metrics.
    pub fn metrics(&self) -> Vec<ExportMetricsServiceRequest> {
        self.metrics.lock().unwrap().clone()
    }

    /// Changes its manner from now on.
    pub fn behave(&self, manner: Manner) {
        *self.manner.lock().unwrap() = manner;
    }

    fn take(&self, headers: HeaderMap, body: Bytes) -> (StatusCode, ExportTraceServiceResponse) {
        let mut manner = self.manner.lock().unwrap();
        let request = ExportTraceServiceRequest::decode(&body[..]).unwrap();
        // As MLflow answers.
        let is_empty = request.resource_spans.is_empty();
        let spans: Vec<Span> = spans_of(request).collect();
        let disliked =
            is_empty || spans.iter().any(|span| manner.dislikes == Some(span.name.as_str()));
        let is_of = |thread: ThreadId| {
            let own = Some(thread.to_string());
            spans.iter().any(|span| attribute(&span.attributes, "thread.id") == own)
        };
        let refused = manner.refuses.filter(|(thread, _)| is_of(*thread));
        let status = if let Some(status) = manner.status.or(refused.map(|(_, status)| status)) {
            StatusCode::from_u16(status).unwrap()
        } else if manner.late > 0 {
            manner.late -= 1;
            StatusCode::SERVICE_UNAVAILABLE
        } else if disliked {
            StatusCode::BAD_REQUEST
        } else {
            StatusCode::OK
        };
        self.requests.lock().unwrap().push((headers, body, status == StatusCode::OK));
        let partial = ExportTracePartialSuccess {
            rejected_spans: manner.rejects,
            error_message: String::new(),
        };
        let partial_success = (manner.rejects > 0).then_some(partial);
        (status, ExportTraceServiceResponse { partial_success })
    }

    pub fn headers(&self) -> Vec<HeaderMap> {
        self.requests.lock().unwrap().iter().map(|(headers, ..)| headers.clone()).collect()
    }

    /// Returns the bytes of all requests in one.
    pub fn bytes(&self) -> Vec<u8> {
        self.requests.lock().unwrap().iter().flat_map(|(_, body, _)| body.to_vec()).collect()
    }

    /// Returns the spans of the requests that it took.
    pub fn spans(&self) -> Vec<Span> {
        let requests = self.requests.lock().unwrap();
        let taken = requests.iter().filter(|(.., taken)| *taken);
        taken
            .map(|(_, body, _)| ExportTraceServiceRequest::decode(&body[..]).unwrap())
            .flat_map(spans_of)
            .collect()
    }
}

fn spans_of(request: ExportTraceServiceRequest) -> impl Iterator<Item = Span> {
    let resources = request.resource_spans.into_iter();
    resources.flat_map(|resource| resource.scope_spans).flat_map(|scope| scope.spans)
}

fn gunzipped(body: &[u8]) -> Bytes {
    let mut plain = Vec::new();
    flate2::read::GzDecoder::new(body).read_to_end(&mut plain).unwrap();
    plain.into()
}

#[tonic::async_trait]
impl TraceService for Collector {
    async fn export(
        &self,
        request: tonic::Request<ExportTraceServiceRequest>,
    ) -> Result<tonic::Response<ExportTraceServiceResponse>, tonic::Status> {
        let (metadata, _, request) = request.into_parts();
        let (status, answer) = self.take(metadata.into_headers(), request.encode_to_vec().into());
        match status.as_u16() {
            200 => Ok(tonic::Response::new(answer)),
            500 => Err(tonic::Status::internal("a fault of its own")),
            400 => Err(tonic::Status::invalid_argument("a span that it cannot read")),
            503 => Err(tonic::Status::unavailable("not yet")),
            _ => Err(tonic::Status::unauthenticated("who are you?")),
        }
    }
}

#[tonic::async_trait]
impl MetricsService for Collector {
    async fn export(
        &self,
        request: tonic::Request<ExportMetricsServiceRequest>,
    ) -> Result<tonic::Response<ExportMetricsServiceResponse>, tonic::Status> {
        Ok(tonic::Response::new(self.count(&request.into_inner().encode_to_vec())))
    }
}

/// Returns an attribute's text, or its number as text.
pub fn attribute(list: &[KeyValue], name: &str) -> Option<String> {
    let value = list.iter().find(|one| one.key == name)?.value.clone();
    match value {
        Some(AnyValue { value: Some(any_value::Value::StringValue(text)) }) => Some(text),
        Some(AnyValue { value: Some(any_value::Value::IntValue(number)) }) => {
            Some(number.to_string())
        }
        Some(AnyValue { value: Some(any_value::Value::DoubleValue(number)) }) => {
            Some(number.to_string())
        }
        other => panic!("{name}: {other:?}"),
    }
}
