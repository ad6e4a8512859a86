//! OTLP over HTTP, as binary protobuf.

use std::io::Write as _;

use flate2::write::GzEncoder;
use prost::Message as _;
use reqwest::StatusCode;
use reqwest::header::{CONTENT_ENCODING, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use secrecy::ExposeSecret as _;

use super::{Cause, Payload, Refusal, RefusalKind};
use perihelion_http::reach::{bounded, cause, retry_after};
use perihelion_settings::config::{Collector, Compression};

/// Bytes of an answer that are read; a collector has little to say.
const ANSWER: usize = 64 * 1024;

/// Characters of a refusal that are shown.
const WORDS: usize = 200;

#[derive(Debug)]
pub(crate) struct Http {
    client: reqwest::Client,
    address: String,
    headers: HeaderMap,
    gzip: bool,
}

impl Http {
    /// Prepares a client; `certificates` are trusted in addition to the usual ones.
    pub(super) fn new<P: Payload>(
        Collector { endpoint, transport }: &Collector,
        certificates: Option<&[u8]>,
    ) -> Result<Self, Cause> {
        let gzip = transport.compression == Compression::Gzip;
        let mut client = reqwest::Client::builder()
            .timeout(transport.timeout)
            // A redirect would carry the headers, which can be keys, to a host that nobody configured.
            .redirect(reqwest::redirect::Policy::none());
        if let Some(pem) = certificates {
            let read = reqwest::Certificate::from_pem_bundle(pem);
            for one in read.map_err(|error| cause(&error))? {
                client = client.add_root_certificate(one);
            }
        }
        let client = client.build();
        let mut headers = HeaderMap::new();
        for (name, value) in &transport.headers {
            let name = HeaderName::try_from(name)?;
            let mut value = HeaderValue::try_from(value.expose_secret())
                .map_err(|_| format!("the header {name} has a value that cannot be sent"))?;
            value.set_sensitive(true);
            headers.insert(name, value);
        }
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/x-protobuf"));
        if gzip {
            headers.insert(CONTENT_ENCODING, HeaderValue::from_static("gzip"));
        }
        let base = endpoint.trim_end_matches('/');
        let address = if transport.is_exact {
            endpoint.clone()
        } else if base.ends_with(P::PATH) {
            base.to_owned()
        } else {
            format!("{base}{}", P::PATH)
        };
        reqwest::Url::parse(&address)?;
        let client = client.map_err(|error| cause(&error))?;
        Ok(Self { client, address, headers, gzip })
    }

    pub(super) async fn send<P: Payload>(&self, request: &P) -> Result<u64, Refusal> {
        let answer = self.post(&self.address, request.encode_to_vec()).await?;
        let answer = P::Answer::decode(&answer[..]).unwrap_or_default();
        Ok(u64::try_from(P::rejected(answer)).unwrap_or_default())
    }

    async fn post(&self, address: &str, body: Vec<u8>) -> Result<Vec<u8>, Refusal> {
        let body = if self.gzip { gzipped(&body)? } else { body };
        let sent = self.client.post(address).headers(self.headers.clone()).body(body).send().await;
        let mut answer = sent.map_err(|error| Refusal {
            kind: RefusalKind::Passing { after: None },
            reason: format!("the collector was not reached: {}", cause(&error)),
        })?;
        let status = answer.status();
        let after = retry_after(answer.headers());
        let is_page = is_page(answer.headers());
        // The status is an answer even if its text is cut off.
        let (content, _) = bounded(&mut answer, ANSWER).await.unwrap_or_default();
        if status.is_success() && is_page {
            let reason = format!(
                "the collector answered {status} with a web page, so it is no OTLP endpoint"
            );
            return Err(Refusal { kind: RefusalKind::Denied, reason });
        }
        if status.is_success() {
            return Ok(content);
        }
        let kind = match status.as_u16() {
            429 | 502..=504 => RefusalKind::Passing { after },
            400 | 413 | 422 => RefusalKind::Unreadable,
            404 | 405 | 501 => RefusalKind::Absent,
            300..=399 | 401 | 407 => RefusalKind::Denied,
            _ => RefusalKind::Rejected,
        };
        Err(Refusal { kind, reason: worded(status, &content) })
    }
}

fn gzipped(body: &[u8]) -> Result<Vec<u8>, Refusal> {
    let mut encoder = GzEncoder::new(Vec::new(), flate2::Compression::fast());
    let written = encoder.write_all(body).and_then(|()| encoder.finish());
    written.map_err(|error| Refusal {
        kind: RefusalKind::Denied,
        reason: format!("the request cannot be compressed: {error}"),
    })
}

/// Describes a collector's answer; with its text only if it is short.
fn worded(status: StatusCode, content: &[u8]) -> String {
    let text = std::str::from_utf8(content).unwrap_or_default();
    let line = text.lines().next().unwrap_or_default().trim();
    let plain = line.chars().all(|c| !c.is_control());
    let words: String = line.chars().filter(|_| plain).take(WORDS).collect();
    if words.is_empty() {
        format!("the collector answered {status}")
    } else {
        format!("the collector answered {status}: {words}")
    }
}

/// Returns whether an answer is a page for people, such as a login form. Collectors answer in protobuf, in JSON or with
/// nothing.
fn is_page(headers: &HeaderMap) -> bool {
    let kind = headers.get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    kind.trim_start().to_ascii_lowercase().starts_with("text/html")
}
