//! Requests to a collector, and its answers.
//!
//! After the OpenTelemetry Protocol 1.x: <https://opentelemetry.io/docs/specs/otlp/>.

mod grpc;
mod http;

use std::time::Duration;

use async_trait::async_trait;
use backon::{BackoffBuilder as _, ExponentialBuilder};
use opentelemetry_proto::tonic::collector::metrics::v1::metrics_service_client::MetricsServiceClient;
use opentelemetry_proto::tonic::collector::metrics::v1::{
    ExportMetricsServiceRequest, ExportMetricsServiceResponse,
};
use opentelemetry_proto::tonic::collector::trace::v1::trace_service_client::TraceServiceClient;
use opentelemetry_proto::tonic::collector::trace::v1::{
    ExportTraceServiceRequest, ExportTraceServiceResponse,
};
use prost::Message;
use tonic::codec::CompressionEncoding::Gzip;
use tonic::transport::Channel;
use tonic::{Request, Status};

use self::grpc::Grpc;
use self::http::Http;
use perihelion_engine::checkpoint::Cause;
use perihelion_engine::clock;
use perihelion_settings::config::{Collector, TraceProtocol, tls};

/// Attempts after the first one, while the failure can be temporary.
const RETRIES: usize = 5;
const FIRST_WAIT: Duration = Duration::from_millis(200);
const LONGEST_WAIT: Duration = Duration::from_secs(5);

/// Why a collector did not take a request.
#[derive(Clone, Debug)]
pub(super) struct Refusal {
    pub kind: RefusalKind,
    pub reason: String,
}

#[derive(Clone, Copy, Debug)]
pub(super) enum RefusalKind {
    /// It may take the same request later, no earlier than it asks for.
    Passing { after: Option<Duration> },
    /// It cannot read the request, or finds it too large; a part of it may be fine.
    Unreadable,
    /// It rejects this request; it may take another one.
    Rejected,
    /// It rejects all our requests, for example because of wrong credentials.
    Denied,
    /// This address does not accept this signal.
    Absent,
}

#[derive(Debug)]
pub(super) enum Wire {
    Http(Http),
    Grpc(Grpc),
}

impl Wire {
    /// Prepares the connection for requests of a kind without sending.
    pub(super) fn new<P: Payload>(collector: &Collector) -> Result<Self, Cause> {
        tls::install();
        let read = |path: &std::path::PathBuf| {
            let shown = path.display();
            std::fs::read(path).map_err(|error| {
                format!(
                    "cannot read the certificates in {shown}: {error}; correct traces.certificate"
                )
            })
        };
        let certificates = collector.transport.certificate.as_ref().map(read).transpose()?;
        let certificates = certificates.as_deref();
        Ok(match collector.transport.protocol {
            TraceProtocol::Http => Self::Http(Http::new::<P>(collector, certificates)?),
            TraceProtocol::Grpc => Self::Grpc(Grpc::new(collector, certificates)?),
        })
    }

    /// Sends a request once; returns how many items the collector rejected.
    pub(super) async fn send<P: Payload>(&self, request: &P) -> Result<u64, Refusal> {
        match self {
            Self::Http(http) => http.send(request).await,
            Self::Grpc(grpc) => grpc.send(request.clone()).await,
        }
    }

    /// Sends a request, repeatedly while the failure can be temporary, with growing waits.
    pub(super) async fn send_with_patience<P: Payload>(&self, request: &P) -> Result<u64, Refusal> {
        let mut waits = ExponentialBuilder::default()
            .with_min_delay(FIRST_WAIT)
            .with_max_delay(LONGEST_WAIT)
            .with_max_times(RETRIES)
            .with_jitter()
            .build();
        loop {
            let refusal = match self.send(request).await {
                Err(refusal) => refusal,
                sent => return sent,
            };
            let RefusalKind::Passing { after } = refusal.kind else { return Err(refusal) };
            let after = after.unwrap_or_default();
            // A collector that asks for more time than that gets it from the next delivery.
            match waits.next().filter(|_| after <= LONGEST_WAIT) {
                Some(wait) => clock::sleep(wait.max(after)).await,
                None => return Err(refusal),
            }
        }
    }
}

#[async_trait]
pub(super) trait Payload: Message + Clone + Default + 'static {
    /// The path below a collector's base address.
    const PATH: &'static str;

    type Answer: Message + Default;

    /// Returns how many items the collector left out.
    fn rejected(answer: Self::Answer) -> i64;

    async fn call(
        request: Request<Self>,
        channel: Channel,
        gzip: bool,
    ) -> Result<Self::Answer, Status>;
}

macro_rules! payload {
    ($request:ty, $answer:ty, $client:ident, $path:literal, $rejected:ident) => {
        #[async_trait]
        impl Payload for $request {
            const PATH: &'static str = $path;

            type Answer = $answer;

            fn rejected(answer: Self::Answer) -> i64 {
                answer.partial_success.map_or(0, |partial| partial.$rejected)
            }

            async fn call(
                request: Request<Self>,
                channel: Channel,
                gzip: bool,
            ) -> Result<Self::Answer, Status> {
                let client = $client::new(channel).accept_compressed(Gzip);
                let mut client = if gzip { client.send_compressed(Gzip) } else { client };
                Ok(client.export(request).await?.into_inner())
            }
        }
    };
}

payload!(
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
    TraceServiceClient,
    "/v1/traces",
    rejected_spans
);
payload!(
    ExportMetricsServiceRequest,
    ExportMetricsServiceResponse,
    MetricsServiceClient,
    "/v1/metrics",
    rejected_data_points
);
