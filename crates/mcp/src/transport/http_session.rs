//! Reaches servers over streamable HTTP: sends requests with the token that there is, and notes the session that the server gave,
//! which rmcp keeps to itself.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Duration;

use futures::stream::BoxStream;
use parking_lot::Mutex;
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use reqwest::{StatusCode, redirect};
use rmcp::model::ClientJsonRpcMessage;
use rmcp::transport::StreamableHttpClientTransport;
use rmcp::transport::auth::AuthError;
use rmcp::transport::common::http_header::HEADER_SESSION_ID;
use rmcp::transport::streamable_http_client::{
    AuthRequiredError, SseError, StreamableHttpClient, StreamableHttpClientTransportConfig,
    StreamableHttpPostResponse,
};
use secrecy::{ExposeSecret as _, SecretString};
use sse_stream::Sse;

use super::delivery::{self, ConnectError, Failure};
use super::http_post::{self, Post};
use super::oauth::Access;
use super::open_calls::ListChanges;
use perihelion_http::reach;
use perihelion_settings::config::tls;

/// The id of the session under which the last message was sent; a server may replace it.
#[derive(Clone, Default)]
pub(super) struct SessionId {
    last: Arc<Mutex<Option<Arc<str>>>>,
    changes: Arc<ListChanges>,
}

impl SessionId {
    pub fn current(&self) -> Option<String> {
        self.last.lock().as_deref().map(str::to_owned)
    }

    /// A server that was started again may have other tools.
    fn note(&self, id: Option<&Arc<str>>) {
        let Some(id) = id else { return };
        let before = self.last.lock().replace(Arc::clone(id));
        if before.is_some_and(|before| before != *id) {
            self.changes.note();
        }
    }
}

/// An HTTP client that notes the session, sends the token that there is, and otherwise is the one inside.
#[derive(Clone)]
pub(super) struct Client {
    pub inner: reqwest::Client,
    pub session: SessionId,
    /// The source of tokens; `None` if one is configured, or the server has no login.
    pub access: Option<Arc<Access>>,
}

type Headers = HashMap<HeaderName, HeaderValue>;

impl Client {
    /// Sends a request with a token, and again with a new one if the server refuses it.
    async fn send<T, F>(
        &self,
        token: Option<String>,
        request: impl Fn(Option<String>) -> F + Send + Sync,
    ) -> Result<T, Failure>
    where
        T: Send,
        F: Future<Output = Result<T, Failure>> + Send,
    {
        let Some(access) = &self.access else { return request(token).await };
        let expose = |token: &SecretString| token.expose_secret().to_owned();
        let token = access.token().await.map_err(no_token)?;
        let mut sent = request(token.as_ref().map(expose)).await.map_err(refused_plainly);
        let is_refused = matches!(sent, Err(Failure::AuthRequired(_)));
        if let Some(refused) = token.filter(|_| is_refused)
            && let Some(fresh) = access.renewed(Some(refused)).await.map_err(no_token)?
        {
            sent = request(Some(expose(&fresh))).await.map_err(refused_plainly);
        }
        match &sent {
            Ok(_) => access.accepted(),
            Err(failure) => access.refused(failure).await,
        }
        sent
    }
}

/// Distinguishes a refusal without a challenge, which the library misses, from other answers.
fn refused_plainly(failure: Failure) -> Failure {
    let is_refusal = match &failure {
        // The library's own requests.
        Failure::Client(error) => error.status() == Some(StatusCode::UNAUTHORIZED),
        other => delivery::status(other) == Some(401),
    };
    if is_refusal { Failure::AuthRequired(AuthRequiredError::new(String::new())) } else { failure }
}

fn no_token(failure: impl std::fmt::Display) -> Failure {
    Failure::Auth(AuthError::AuthorizationFailed(failure.to_string()))
}

impl StreamableHttpClient for Client {
    type Error = reqwest::Error;

    async fn post_message(
        &self,
        uri: Arc<str>,
        message: ClientJsonRpcMessage,
        session: Option<Arc<str>>,
        token: Option<String>,
        headers: Headers,
    ) -> Result<StreamableHttpPostResponse, Failure> {
        let most = http_post::BODY_BYTES;
        self.post_message_with_max_sse_event_size(uri, message, session, token, headers, most).await
    }

    async fn post_message_with_max_sse_event_size(
        &self,
        uri: Arc<str>,
        message: ClientJsonRpcMessage,
        session: Option<Arc<str>>,
        token: Option<String>,
        headers: Headers,
        most: usize,
    ) -> Result<StreamableHttpPostResponse, Failure> {
        self.session.note(session.as_ref());
        let request = |token: Option<String>| {
            let headers = HeaderMap::from_iter(headers.clone());
            let mut request = self.inner.post(uri.as_ref()).headers(headers);
            if let Some(token) = token {
                request = request.bearer_auth(token);
            }
            if let Some(session) = &session {
                request = request.header(HEADER_SESSION_ID, session.as_ref());
            }
            let has_session = session.is_some();
            let post = Post { request, message: &message, has_session, max_event_bytes: most };
            async move { post.send().await }
        };
        self.send(token, request).await
    }

    async fn delete_session(
        &self,
        uri: Arc<str>,
        session: Arc<str>,
        token: Option<String>,
        headers: Headers,
    ) -> Result<(), Failure> {
        let request =
            |token| self.inner.delete_session(uri.clone(), session.clone(), token, headers.clone());
        self.send(token, request).await
    }

    async fn get_stream(
        &self,
        uri: Arc<str>,
        session: Option<Arc<str>>,
        last: Option<String>,
        token: Option<String>,
        headers: Headers,
    ) -> Result<BoxStream<'static, Result<Sse, SseError>>, Failure> {
        let most = http_post::BODY_BYTES;
        self.get_stream_with_max_sse_event_size(uri, session, last, token, headers, most).await
    }

    async fn get_stream_with_max_sse_event_size(
        &self,
        uri: Arc<str>,
        session: Option<Arc<str>>,
        last: Option<String>,
        token: Option<String>,
        headers: Headers,
        most: usize,
    ) -> Result<BoxStream<'static, Result<Sse, SseError>>, Failure> {
        let request = |token| {
            self.inner.get_stream_with_max_sse_event_size(
                uri.clone(),
                session.clone(),
                last.clone(),
                token,
                headers.clone(),
                most,
            )
        };
        self.send(token, request).await.map(http_post::repaired_events)
    }
}

const MAX_REDIRECTS: usize = 5;

/// Prepares the transport without sending. With `access`, it provides the tokens; `changes` hears of another session.
pub(crate) fn transport(
    url: &str,
    bearer_token: Option<&str>,
    headers: &BTreeMap<String, String>,
    access: Option<Arc<Access>>,
    connect_timeout: Duration,
    max_message_bytes: usize,
    changes: Arc<ListChanges>,
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
    let session = SessionId { last: Arc::default(), changes };
    let client = Client { inner: client, session: session.clone(), access };
    Ok((StreamableHttpClientTransport::with_client(client, config), session))
}

/// Follows redirects that keep origin, method and body: any other one would lose the call or leak its headers.
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
