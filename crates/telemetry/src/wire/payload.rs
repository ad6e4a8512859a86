//! What a signal sends, and what it is answered.

use async_trait::async_trait;
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

/// A request of one signal.
#[async_trait]
pub(crate) trait Payload: Message + Clone + Default + 'static {
    /// Where it is posted below a collector's base address.
    const PATH: &'static str;

    type Answer: Message + Default;

    /// Returns how many items the collector left out.
    fn rejected(answer: Self::Answer) -> i64;

    /// Sends it over gRPC, once.
    async fn call(
        request: Request<Self>,
        channel: Channel,
        gzip: bool,
    ) -> Result<Self::Answer, Status>;
}

#[async_trait]
impl Payload for ExportTraceServiceRequest {
    const PATH: &'static str = "/v1/traces";

    type Answer = ExportTraceServiceResponse;

    fn rejected(answer: Self::Answer) -> i64 {
        answer.partial_success.map_or(0, |partial| partial.rejected_spans)
    }

    async fn call(
        request: Request<Self>,
        channel: Channel,
        gzip: bool,
    ) -> Result<Self::Answer, Status> {
        let client = TraceServiceClient::new(channel).accept_compressed(Gzip);
        let mut client = if gzip { client.send_compressed(Gzip) } else { client };
        Ok(client.export(request).await?.into_inner())
    }
}

#[async_trait]
impl Payload for ExportMetricsServiceRequest {
    const PATH: &'static str = "/v1/metrics";

    type Answer = ExportMetricsServiceResponse;

    fn rejected(answer: Self::Answer) -> i64 {
        answer.partial_success.map_or(0, |partial| partial.rejected_data_points)
    }

    async fn call(
        request: Request<Self>,
        channel: Channel,
        gzip: bool,
    ) -> Result<Self::Answer, Status> {
        let client = MetricsServiceClient::new(channel).accept_compressed(Gzip);
        let mut client = if gzip { client.send_compressed(Gzip) } else { client };
        Ok(client.export(request).await?.into_inner())
    }
}
