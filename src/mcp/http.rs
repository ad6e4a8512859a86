//! Reaches servers over streamable HTTP, and reads what its failures mean for a call.

use std::{collections::BTreeMap, error::Error as StdError, sync::Arc, time::Duration};

use reqwest::{
    StatusCode,
    header::{HeaderName, HeaderValue},
    redirect,
};
use rmcp::transport::{
    StreamableHttpClientTransport,
    streamable_http_client::{StreamableHttpClientTransportConfig, StreamableHttpError},
};

use super::{
    http_session::{Client, SessionId},
    oauth::Access,
};
use crate::config::tls;

const MAX_REDIRECTS: usize = 5;

/// Prepares the transport; nothing is sent yet. Where there is `access`, it gives the tokens.
pub(super) fn transport(
    url: &str,
    bearer_token: Option<&str>,
    headers: &BTreeMap<String, String>,
    access: Option<Arc<Access>>,
    connect_timeout: Duration,
    max_message_bytes: usize,
) -> Result<(StreamableHttpClientTransport<Client>, SessionId), String> {
    tls::install();
    let client = reqwest::Client::builder()
        .connect_timeout(connect_timeout)
        // A pooled connection whose last answer was not read to its end stalls the next request.
        .pool_max_idle_per_host(0)
        .redirect(same_origin());
    let client = if is_loopback(url) { client.no_proxy() } else { client };
    let client = client.build().map_err(|error| chain(&error))?;
    let mut custom = std::collections::HashMap::new();
    for (name, value) in headers {
        let name = HeaderName::try_from(name.as_str()).map_err(|error| error.to_string())?;
        let mut value = HeaderValue::try_from(value.as_str()).map_err(|error| error.to_string())?;
        value.set_sensitive(true);
        custom.insert(name, value);
    }
    let mut config = StreamableHttpClientTransportConfig::with_uri(url)
        .custom_headers(custom)
        .max_sse_event_size(max_message_bytes)
        .reinit_on_expired_session(true);
    if let Some(token) = bearer_token {
        config = config.auth_header(token);
    }
    let session = SessionId::default();
    let client = Client { inner: client, session: session.clone(), access };
    Ok((StreamableHttpClientTransport::with_client(client, config), session))
}

/// Follows redirects that keep origin, method and body: others would lose the call or leak its headers.
fn same_origin() -> redirect::Policy {
    redirect::Policy::custom(|attempt| {
        let keeps_body = matches!(
            attempt.status(),
            StatusCode::TEMPORARY_REDIRECT | StatusCode::PERMANENT_REDIRECT
        );
        let first = attempt.previous().first();
        let same = first.is_some_and(|first| first.origin() == attempt.url().origin());
        if keeps_body && same && attempt.previous().len() <= MAX_REDIRECTS {
            attempt.follow()
        } else {
            attempt.stop()
        }
    })
}

/// Tells whether an address is one of this machine.
pub(super) fn is_loopback(url: &str) -> bool {
    let parsed = reqwest::Url::parse(url).ok();
    let host = parsed.as_ref().and_then(|url| url.host_str()).unwrap_or_default();
    let address = host.trim_start_matches('[').trim_end_matches(']');
    host == "localhost"
        || address.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback())
}

/// What a failed POST says about the call it carried.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Delivery {
    /// The call certainly did not reach the tool.
    NotSent,
    /// The server refused it.
    Refused,
    /// It may have run.
    Unknown,
}

/// Reads a transport error; one that is not of HTTP, a broken pipe, means that no full line was sent.
pub(super) fn delivery(error: &(dyn StdError + Send + Sync + 'static)) -> Delivery {
    type Failure = StreamableHttpError<reqwest::Error>;
    let Some(failure) = error.downcast_ref::<Failure>() else {
        let is_io = error.downcast_ref::<std::io::Error>().is_some();
        return if is_io { Delivery::NotSent } else { Delivery::Unknown };
    };
    match failure {
        Failure::Client(error) if error.is_connect() || error.is_builder() => Delivery::NotSent,
        Failure::Client(error) => match error.status() {
            Some(status) if status.is_client_error() => Delivery::Refused,
            _ => Delivery::Unknown,
        },
        Failure::HttpStatus(error) if error.status == 429 => Delivery::Refused,
        Failure::AuthRequired(_) | Failure::InsufficientScope(_) => Delivery::Refused,
        Failure::SessionExpired | Failure::ReinitializationFailed(_) => Delivery::NotSent,
        // There was no token to send it with, or none that the server takes.
        Failure::Auth(_) => Delivery::NotSent,
        _ => Delivery::Unknown,
    }
}

/// Tells whether a request failed for want of a token that allows it.
pub(super) fn wants_token(error: &(dyn StdError + Send + Sync + 'static)) -> bool {
    let failure = error.downcast_ref::<StreamableHttpError<reqwest::Error>>();
    matches!(
        failure,
        Some(
            StreamableHttpError::AuthRequired(_)
                | StreamableHttpError::InsufficientScope(_)
                | StreamableHttpError::Auth(_)
        )
    )
}

/// Joins an error with its causes; each layer of HTTP says only a part.
pub(super) fn chain(error: &(dyn StdError + 'static)) -> String {
    let mut text = error.to_string();
    let mut source = behind(error);
    while let Some(cause) = source {
        let said = cause.to_string();
        if !text.contains(&said) {
            text.push_str(": ");
            text.push_str(&said);
        }
        source = behind(cause);
    }
    text
}

/// Returns what is behind an error; of the client's own failure rmcp shows the words and hides the causes.
fn behind<'a>(error: &'a (dyn StdError + 'static)) -> Option<&'a (dyn StdError + 'static)> {
    match error.downcast_ref::<StreamableHttpError<reqwest::Error>>() {
        Some(StreamableHttpError::Client(error)) => error.source(),
        _ => error.source(),
    }
}
