//! The place on this machine to which the browser comes back from the authorization server.

use std::{net::Ipv4Addr, sync::Arc, time::Duration};

use axum::Router;
use axum::extract::{Query, State};
use axum::http::{HeaderName, StatusCode, header};
use axum::response::{Html, IntoResponse as _, Response};
use axum::routing::get;
use perihelion_http::{Bounds, Server};
use serde::Deserialize;
use tokio::{net::TcpListener, sync::mpsc};
use tokio_util::{sync::CancellationToken, task::AbortOnDropHandle};

use super::authority::LoginFailure;

/// How long a page may take to be delivered.
const GOODBYE: Duration = Duration::from_secs(1);
const PATH: &str = "/callback";

/// The parameters of the browser's redirect (RFC 6749, RFC 9207).
#[derive(Deserialize)]
pub(super) struct Returned {
    #[serde(default)]
    pub state: String,
    pub code: Option<String>,
    pub iss: Option<String>,
    pub error: Option<String>,
    pub error_description: Option<String>,
}

/// Listens on 127.0.0.1 while it lives.
pub(super) struct Callback {
    pub redirect_uri: String,
    listener: TcpListener,
}

pub(super) struct Waiting {
    returned: mpsc::Receiver<Returned>,
    done: CancellationToken,
    server: AbortOnDropHandle<()>,
}

struct Expected {
    state: String,
    returned: mpsc::Sender<Returned>,
}

impl Callback {
    /// Takes the port, or a free one.
    pub async fn listen(port: Option<u16>) -> Result<Self, LoginFailure> {
        let port = port.unwrap_or_default();
        let failed = |source| LoginFailure::Callback { port, source };
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).await.map_err(failed)?;
        let port = listener.local_addr().map_err(failed)?.port();
        Ok(Self { redirect_uri: format!("http://127.0.0.1:{port}{PATH}"), listener })
    }

    /// Waits for the browser with this `state`; other requests are rejected, because any page can send one.
    pub fn wait(self, state: String) -> Waiting {
        let (sender, returned) = mpsc::channel(1);
        let expected = Arc::new(Expected { state, returned: sender });
        let router = Router::new().route(PATH, get(arrive)).with_state(expected);
        let done = CancellationToken::new();
        let ended = done.clone().cancelled_owned();
        let server = tokio::spawn(async move {
            // It fails with its listener, which lives as long.
            if let Ok(server) = Server::on(self.listener, Bounds::default()) {
                server.serve_until(router, ended).await;
            }
        });
        Waiting { returned, done, server: AbortOnDropHandle::new(server) }
    }
}

impl Waiting {
    pub async fn returned(&mut self) -> Option<Returned> {
        self.returned.recv().await
    }

    /// Accepts no more requests after the active page was delivered.
    pub async fn close(self) {
        self.done.cancel();
        // A browser that keeps its connection is cut off.
        let _ = tokio::time::timeout(GOODBYE, self.server).await;
    }
}

async fn arrive(
    State(expected): State<Arc<Expected>>,
    Query(returned): Query<Returned>,
) -> Response {
    // Compared in the time that its length takes, whatever it says.
    let digests = [&returned.state, &expected.state].map(|state| blake3::hash(state.as_bytes()));
    if digests[0] != digests[1] {
        return page(StatusCode::BAD_REQUEST, "This is not the login that Perihelion waits for.");
    }
    let text = match (&returned.error, &returned.code) {
        (None, Some(_)) => "Perihelion has got the answer. You can close this page.",
        _ => "Perihelion was refused. The terminal says more; you can close this page.",
    };
    match expected.returned.try_send(returned) {
        Ok(()) => page(StatusCode::OK, text),
        Err(_) => page(StatusCode::GONE, "This login is over."),
    }
}

/// A page without a referrer: its address contains the code.
fn page(status: StatusCode, text: &str) -> Response {
    const REFERRER_POLICY: HeaderName = HeaderName::from_static("referrer-policy");
    let headers = [
        (header::CACHE_CONTROL, "no-store"),
        (REFERRER_POLICY, "no-referrer"),
        (header::CONTENT_SECURITY_POLICY, "default-src 'none'"),
    ];
    let html = format!("<!doctype html><title>Perihelion</title><p>{text}</p>\n");
    (status, headers, Html(html)).into_response()
}
