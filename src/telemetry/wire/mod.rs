//! Requests to a collector, and what it says to them.
//!
//! After the OpenTelemetry Protocol 1.x: <https://opentelemetry.io/docs/specs/otlp/>.

mod grpc;
mod http;

use std::time::Duration;

use backon::{BackoffBuilder as _, ExponentialBuilder};
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;

use self::grpc::Grpc;
use self::http::Http;
use super::otlp::{Collector, Protocol};
use crate::clock;

/// Attempts after the first one, while what is wrong may pass.
const RETRIES: usize = 5;
const FIRST_WAIT: Duration = Duration::from_millis(200);
const LONGEST_WAIT: Duration = Duration::from_secs(5);

/// How a collector answered a request that it took.
#[derive(Clone, Debug, Default)]
pub(super) struct Taken {
    /// Items that it left out all the same.
    pub rejected: u64,
}

/// Why a collector did not take a request.
#[derive(Clone, Debug)]
pub(super) enum Refusal {
    /// It may take the same request later, no earlier than it says.
    Passing { reason: String, after: Option<Duration> },
    /// It cannot read the request, or finds it too large; a part of it may be fine.
    Unreadable(String),
    /// It takes none of ours: wrong address, wrong credentials.
    Denied(String),
}

impl Refusal {
    pub(super) fn reason(self) -> String {
        match self {
            Self::Passing { reason, .. } | Self::Unreadable(reason) | Self::Denied(reason) => {
                reason
            }
        }
    }
}

/// A way to a collector.
#[derive(Debug)]
pub(super) enum Wire {
    Http(Http),
    Grpc(Grpc),
}

impl Wire {
    /// Prepares the way; nothing is sent yet.
    pub(super) fn new(collector: &Collector) -> Result<Self, String> {
        crate::config::tls::install();
        Ok(match collector.protocol {
            Protocol::Http => Self::Http(Http::new(collector)?),
            Protocol::Grpc => Self::Grpc(Grpc::new(collector)?),
        })
    }

    /// Sends a request once.
    pub(super) async fn send(&self, request: &ExportTraceServiceRequest) -> Result<Taken, Refusal> {
        match self {
            Self::Http(http) => http.traces(request).await,
            Self::Grpc(grpc) => grpc.traces(request.clone()).await,
        }
    }

    /// Sends a request, again and again while what is wrong may pass, with growing waits in between.
    pub(super) async fn send_with_patience(
        &self,
        request: &ExportTraceServiceRequest,
    ) -> Result<Taken, Refusal> {
        let mut waits = ExponentialBuilder::default()
            .with_min_delay(FIRST_WAIT)
            .with_max_delay(LONGEST_WAIT)
            .with_max_times(RETRIES)
            .with_jitter()
            .build();
        loop {
            let (reason, after) = match self.send(request).await {
                Err(Refusal::Passing { reason, after }) => (reason, after),
                ended => return ended,
            };
            match (waits.next(), after) {
                // A collector that asks for more time than that gets it from the next delivery.
                (Some(wait), after) if after.unwrap_or_default() <= LONGEST_WAIT => {
                    clock::sleep(wait.max(after.unwrap_or_default())).await;
                }
                (_, after) => return Err(Refusal::Passing { reason, after }),
            }
        }
    }
}
