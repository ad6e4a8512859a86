//! Ends the streams and sockets of a credential that is no longer accepted.

use std::collections::HashMap;
use std::sync::{Arc, Weak};
use std::time::Duration;

use axum::body::{Body, HttpBody as _};
use axum::http::header;
use axum::response::Response;
use futures::{StreamExt as _, future, stream};
use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;

use super::credential::Credential;
use super::gate::{AuthError, Gate};
use perihelion_engine::clock;

/// How often a credential is checked while it has streams or sockets: they end within a second, including the wait
/// before the first check and the check itself.
const EVERY: Duration = Duration::from_millis(500);

/// The credentials of streams and sockets that have been open for a while: each is checked once for all of them.
#[derive(Default)]
pub(super) struct Watches(Mutex<HashMap<blake3::Hash, Weak<CancellationToken>>>);

/// Waits until a credential is no longer accepted; a short wait is free.
pub(super) async fn ended(gate: Arc<Gate>, credential: Credential) {
    clock::sleep(EVERY).await;
    let token = gate.watch(credential);
    token.cancelled().await;
}

/// Notifies a connection that outlives its answer, such as a socket, when its credential is no longer accepted.
#[derive(Clone)]
pub(crate) struct Ends(Arc<Gate>, Credential);

impl Ends {
    pub(super) fn new(gate: Arc<Gate>, credential: Credential) -> Self {
        Self(gate, credential)
    }

    pub(crate) async fn wait(self) {
        ended(self.0, self.1).await;
    }
}

impl Gate {
    /// Watches a credential until the returned value is dropped.
    fn watch(self: Arc<Self>, credential: Credential) -> Arc<CancellationToken> {
        let mut watched = self.watches.0.lock();
        let name = credential.digest();
        if let Some(token) = watched.get(&name).and_then(Weak::upgrade) {
            return token;
        }
        watched.retain(|_, token| token.strong_count() > 0);
        let token = Arc::new(CancellationToken::new());
        let weak = Arc::downgrade(&token);
        watched.insert(name, Weak::clone(&weak));
        let stop = self.service.stop().clone();
        // Between its checks, it does not keep the service alive.
        let gate = Arc::downgrade(&self);
        tokio::spawn(stop.run_until_cancelled_owned(async move {
            while weak.strong_count() > 0 {
                let Some(gate) = gate.upgrade() else { return };
                let found = gate.check(&credential).await;
                drop(gate);
                // A database that does not answer says nothing of a credential.
                if let Err(AuthError::Unknown(_)) = found {
                    if let Some(token) = weak.upgrade() {
                        token.cancel();
                    }
                    return;
                }
                clock::sleep(EVERY).await;
            }
        }));
        token
    }
}

/// Ends the body of a streamed response at a given moment.
///
/// A stream without events is broken off, so that it does not look complete.
pub(super) fn until(
    response: Response,
    ended: impl Future<Output = ()> + Send + 'static,
) -> Response {
    if response.body().size_hint().exact().is_some() {
        return response;
    }
    let kind = response.headers().get(header::CONTENT_TYPE);
    let is_of_events = kind.is_some_and(|kind| kind.as_bytes().starts_with(b"text/event-stream"));
    response.map(|body| {
        let body = body.into_data_stream();
        if is_of_events {
            return Body::from_stream(body.take_until(Box::pin(ended)));
        }
        let cut = async {
            ended.await;
            Some(Err(axum::Error::new("the credentials are no longer accepted")))
        };
        let body = body.map(Some).chain(stream::once(future::ready(None)));
        let both = stream::select(body, stream::once(cut));
        let whole = both.take_while(|part| future::ready(part.is_some()));
        Body::from_stream(whole.filter_map(future::ready))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// S3.04: the documented behavior of revoked keys.
    #[test]
    fn a_credential_is_looked_at_at_least_twice_within_the_second_that_is_promised() {
        assert!(EVERY * 2 <= Duration::from_secs(1), "{EVERY:?}");
    }
}
