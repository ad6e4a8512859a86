//! Sends requests with the token that there is, and notes the session that the server gave, which rmcp keeps to itself.

use std::collections::HashMap;
use std::sync::Arc;

use futures::stream::BoxStream;
use parking_lot::Mutex;
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use rmcp::model::ClientJsonRpcMessage;
use rmcp::transport::auth::AuthError;
use rmcp::transport::common::http_header::HEADER_SESSION_ID;
use rmcp::transport::streamable_http_client::{
    AuthRequiredError, SseError, StreamableHttpClient, StreamableHttpError,
    StreamableHttpPostResponse,
};
use secrecy::{ExposeSecret as _, SecretString};
use sse_stream::Sse;

use super::http_post::{self, Post};
use super::oauth::{Access, Refusal};

/// The id of the session under which the last message was sent; a server may replace it.
#[derive(Clone, Debug, Default)]
pub(super) struct SessionId(Arc<Mutex<Option<Arc<str>>>>);

impl SessionId {
    pub fn current(&self) -> Option<String> {
        self.0.lock().as_deref().map(str::to_owned)
    }

    fn note(&self, id: Option<&Arc<str>>) {
        if let Some(id) = id {
            *self.0.lock() = Some(Arc::clone(id));
        }
    }
}

/// An HTTP client that notes the session, sends the token that there is, and otherwise is the one inside.
#[derive(Clone)]
pub(super) struct Client {
    pub inner: reqwest::Client,
    pub session: SessionId,
    /// What gives out tokens; none where one is configured, or nobody can log in.
    pub access: Option<Arc<Access>>,
}

type Failure = StreamableHttpError<reqwest::Error>;
type Headers = HashMap<HeaderName, HeaderValue>;

impl Client {
    /// Sends a request with a token, and once more with a new one where the server refuses that.
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
        if sent.is_ok() {
            access.accepted();
        }
        if let Some(refusal) = sent.as_ref().err().and_then(Refusal::of) {
            access.refused(refusal).await;
        }
        sent
    }
}

impl Refusal {
    fn of(failure: &Failure) -> Option<Self> {
        match failure {
            Failure::AuthRequired(error) => {
                Some(Self { challenge: error.www_authenticate_header.clone(), lacks: None })
            }
            Failure::InsufficientScope(error) => {
                let lacks = Some(error.required_scope.clone().unwrap_or_default());
                Some(Self { challenge: error.www_authenticate_header.clone(), lacks })
            }
            _ => None,
        }
    }
}

/// Tells a refusal that comes without a challenge, which the library does not, from other answers.
fn refused_plainly(failure: Failure) -> Failure {
    let is_refusal = match &failure {
        Failure::UnexpectedServerResponse(text) => text.starts_with("HTTP 401"),
        Failure::Client(error) => error.status() == Some(reqwest::StatusCode::UNAUTHORIZED),
        Failure::HttpStatus(error) => error.status == 401,
        _ => false,
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
        session_id: Option<Arc<str>>,
        auth_header: Option<String>,
        custom_headers: Headers,
    ) -> Result<StreamableHttpPostResponse, Failure> {
        let most = http_post::BODY_BYTES;
        self.post_message_with_max_sse_event_size(
            uri,
            message,
            session_id,
            auth_header,
            custom_headers,
            most,
        )
        .await
    }

    async fn post_message_with_max_sse_event_size(
        &self,
        uri: Arc<str>,
        message: ClientJsonRpcMessage,
        session_id: Option<Arc<str>>,
        auth_header: Option<String>,
        custom_headers: Headers,
        max_sse_event_size: usize,
    ) -> Result<StreamableHttpPostResponse, Failure> {
        self.session.note(session_id.as_ref());
        let request = |token: Option<String>| {
            let mut request =
                self.inner.post(uri.as_ref()).headers(HeaderMap::from_iter(custom_headers.clone()));
            if let Some(token) = token {
                request = request.bearer_auth(token);
            }
            if let Some(session) = &session_id {
                request = request.header(HEADER_SESSION_ID, session.as_ref());
            }
            let post = Post {
                request,
                message: &message,
                has_session: session_id.is_some(),
                max_event_bytes: max_sse_event_size,
            };
            async move { post.send().await }
        };
        self.send(auth_header, request).await
    }

    async fn delete_session(
        &self,
        uri: Arc<str>,
        session_id: Arc<str>,
        auth_header: Option<String>,
        custom_headers: Headers,
    ) -> Result<(), Failure> {
        let request = |token| {
            let uri = uri.clone();
            let headers = custom_headers.clone();
            self.inner.delete_session(uri, session_id.clone(), token, headers)
        };
        self.send(auth_header, request).await
    }

    async fn get_stream(
        &self,
        uri: Arc<str>,
        session_id: Option<Arc<str>>,
        last_event_id: Option<String>,
        auth_header: Option<String>,
        custom_headers: Headers,
    ) -> Result<BoxStream<'static, Result<Sse, SseError>>, Failure> {
        self.get_stream_with_max_sse_event_size(
            uri,
            session_id,
            last_event_id,
            auth_header,
            custom_headers,
            http_post::BODY_BYTES,
        )
        .await
    }

    async fn get_stream_with_max_sse_event_size(
        &self,
        uri: Arc<str>,
        session_id: Option<Arc<str>>,
        last_event_id: Option<String>,
        auth_header: Option<String>,
        custom_headers: Headers,
        max_sse_event_size: usize,
    ) -> Result<BoxStream<'static, Result<Sse, SseError>>, Failure> {
        let request = |token| {
            self.inner.get_stream_with_max_sse_event_size(
                uri.clone(),
                session_id.clone(),
                last_event_id.clone(),
                token,
                custom_headers.clone(),
                max_sse_event_size,
            )
        };
        self.send(auth_header, request).await.map(http_post::repaired_events)
    }
}
