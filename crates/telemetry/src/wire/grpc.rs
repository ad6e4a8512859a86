//! OTLP over gRPC.

use secrecy::ExposeSecret as _;
use tonic::metadata::{AsciiMetadataKey, AsciiMetadataValue, MetadataMap};
use tonic::transport::{Certificate, Channel, ClientTlsConfig, Endpoint};
use tonic::{Code, Status};

use super::{Cause, Payload, Refusal, RefusalKind};
use perihelion_settings::config::{Collector, Compression};

#[derive(Debug)]
pub(crate) struct Grpc {
    channel: Channel,
    headers: MetadataMap,
    gzip: bool,
}

impl Grpc {
    /// Prepares a connection; `certificates` are trusted in addition to the usual ones.
    pub(super) fn new(collector: &Collector, certificates: Option<&[u8]>) -> Result<Self, Cause> {
        let Collector { endpoint: address, transport } = collector;
        let mut endpoint = Endpoint::from_shared(address.clone())?;
        if address.starts_with("https:") {
            let mut tls = ClientTlsConfig::new().with_webpki_roots();
            if let Some(pem) = certificates {
                tls = tls.ca_certificate(Certificate::from_pem(pem));
            }
            endpoint = endpoint.tls_config(tls)?;
        }
        let limit = transport.timeout;
        let channel = endpoint.connect_timeout(limit).timeout(limit).connect_lazy();
        let mut headers = MetadataMap::new();
        for (name, value) in &transport.headers {
            let wrong = || format!("the header {name} cannot be sent over gRPC");
            let key = AsciiMetadataKey::from_bytes(name.as_bytes()).map_err(|_| wrong())?;
            let mut value =
                AsciiMetadataValue::try_from(value.expose_secret()).map_err(|_| wrong())?;
            value.set_sensitive(true);
            headers.insert(key, value);
        }
        Ok(Self { channel, headers, gzip: transport.compression == Compression::Gzip })
    }

    pub(super) async fn send<P: Payload>(&self, request: P) -> Result<u64, Refusal> {
        let mut request = tonic::Request::new(request);
        *request.metadata_mut() = self.headers.clone();
        let answer = P::call(request, self.channel.clone(), self.gzip).await.map_err(refusal)?;
        Ok(u64::try_from(P::rejected(answer)).unwrap_or_default())
    }
}

/// Sorts a status as the protocol asks; a message that is too large comes as one of two codes.
fn refusal(status: Status) -> Refusal {
    let words = status.message().lines().next().unwrap_or_default();
    let words: String = words.chars().filter(|c| !c.is_control()).take(200).collect();
    let reason = format!("the collector answered {:?}: {words}", status.code());
    let too_large = words.contains("too large") || words.contains("larger than");
    let kind = match status.code() {
        Code::InvalidArgument => RefusalKind::Unreadable,
        Code::Unimplemented => RefusalKind::Absent,
        Code::OutOfRange | Code::ResourceExhausted if too_large => RefusalKind::Unreadable,
        Code::Cancelled
        | Code::DeadlineExceeded
        | Code::ResourceExhausted
        | Code::Aborted
        | Code::OutOfRange
        | Code::Unavailable
        | Code::DataLoss => RefusalKind::Passing { after: None },
        // How tonic reports a connection that could not be made or broke.
        Code::Unknown if words.contains("transport error") => RefusalKind::Passing { after: None },
        Code::Unauthenticated => RefusalKind::Denied,
        _ => RefusalKind::Rejected,
    };
    Refusal { kind, reason }
}
