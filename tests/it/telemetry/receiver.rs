//! A collector in this process.

use std::sync::{Arc, Mutex};

use axum::body::Bytes;
use axum::http::{HeaderMap, StatusCode};
use axum::routing::post;
use opentelemetry_proto::tonic::collector::trace::v1::{
    ExportTracePartialSuccess, ExportTraceServiceRequest, ExportTraceServiceResponse,
};
use opentelemetry_proto::tonic::common::v1::{AnyValue, KeyValue, any_value};
use opentelemetry_proto::tonic::trace::v1::Span;
use prost::Message as _;

/// What a collector does with what it gets.
#[derive(Clone, Copy, Default)]
pub struct Manner {
    /// Refuses everything with this status.
    pub status: Option<u16>,
    /// Takes requests and says that it left out so many spans.
    pub rejects: i64,
}

/// What a collector has received.
#[derive(Clone, Default)]
pub struct Collector {
    requests: Arc<Mutex<Vec<(HeaderMap, Bytes)>>>,
}

impl Collector {
    /// Starts one on a free port; returns its base address.
    pub async fn start(manner: Manner) -> (Self, String) {
        let collector = Self::default();
        let kept = collector.clone();
        let take = move |headers: HeaderMap, body: Bytes| {
            kept.requests.lock().unwrap().push((headers, body));
            let partial = ExportTracePartialSuccess {
                rejected_spans: manner.rejects,
                error_message: String::new(),
            };
            let answer = ExportTraceServiceResponse {
                partial_success: (manner.rejects > 0).then_some(partial),
            };
            let status = StatusCode::from_u16(manner.status.unwrap_or(200)).unwrap();
            async move { (status, answer.encode_to_vec()) }
        };
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/base", listener.local_addr().unwrap());
        let router = axum::Router::new().route("/base/v1/traces", post(take));
        tokio::spawn(async move { axum::serve(listener, router).await });
        (collector, url)
    }

    pub fn headers(&self) -> Vec<HeaderMap> {
        self.requests.lock().unwrap().iter().map(|(headers, _)| headers.clone()).collect()
    }

    /// Returns the bytes of all requests in one.
    pub fn bytes(&self) -> Vec<u8> {
        self.requests.lock().unwrap().iter().flat_map(|(_, body)| body.to_vec()).collect()
    }

    pub fn spans(&self) -> Vec<Span> {
        let requests = self.requests.lock().unwrap();
        let decoded =
            requests.iter().map(|(_, body)| ExportTraceServiceRequest::decode(&body[..]).unwrap());
        decoded
            .flat_map(|request| request.resource_spans)
            .flat_map(|resource| resource.scope_spans)
            .flat_map(|scope| scope.spans)
            .collect()
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
        other => panic!("{name}: {other:?}"),
    }
}
