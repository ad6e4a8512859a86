//! Reaches servers over streamable HTTP.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use reqwest::header::{HeaderName, HeaderValue};
use reqwest::{StatusCode, redirect};
use rmcp::transport::StreamableHttpClientTransport;
use rmcp::transport::streamable_http_client::StreamableHttpClientTransportConfig;

use super::http_session::{Client, SessionId};
use super::{delivery::ConnectError, oauth::Access};
use perihelion_http::reach;
use perihelion_settings::config::tls;

const MAX_REDIRECTS: usize = 5;

/// Prepares the transport; nothing is sent yet. Where there is `access`, it gives the tokens.
pub(crate) fn transport(
    url: &str,
    bearer_token: Option<&str>,
    headers: &BTreeMap<String, String>,
    access: Option<Arc<Access>>,
    connect_timeout: Duration,
    max_message_bytes: usize,
) -> Result<(StreamableHttpClientTransport<Client>, SessionId), ConnectError> {
    tls::install();
    let client = reqwest::Client::builder()
        .connect_timeout(connect_timeout)
        // A pooled connection whose last answer was not read to its end stalls the next request.
        .pool_max_idle_per_host(0)
        .redirect(same_origin());
    let client = if reach::is_loopback(url) { client.no_proxy() } else { client };
    let client = client.build()?;
    let mut custom = std::collections::HashMap::new();
    for (name, value) in headers {
        let name = HeaderName::try_from(name.as_str()).map_err(::http::Error::from)?;
        let mut value = HeaderValue::try_from(value.as_str()).map_err(::http::Error::from)?;
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
