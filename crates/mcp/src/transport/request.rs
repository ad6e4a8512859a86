//! Sends one request and waits for its answer, never longer than agreed.
//!
//! On a timeout, rmcp first delivers a cancellation and only then returns, which a server that no longer reads its
//! stdin can delay forever. Here the clock decides, and the cancellation is sent in parallel.

use std::time::Duration;

use rmcp::model::{
    CancelledNotification, CancelledNotificationParam, ClientRequest, RequestId, RequestMetaObject,
    ServerResult,
};
use rmcp::service::PeerRequestOptions;
use rmcp::{Peer, RoleClient, ServiceError};
use tokio::time::timeout;

use super::{open_calls::Reports, session::Session};
use crate::configuration::ServerConfig;
use perihelion_clock as clock;

/// How long the delivery of a cancellation is tried.
const CANCEL: Duration = Duration::from_secs(2);

#[derive(Clone, Copy)]
pub(crate) struct Bounds {
    /// Longest silence; progress starts it again.
    pub idle: Duration,
    /// Longest duration, whatever progress is reported.
    pub total: Duration,
}

impl Bounds {
    /// Returns how long a call of a server's tool may take.
    pub fn of_calls(config: &ServerConfig) -> Self {
        Self { idle: config.tool_timeout, total: config.tool_total_timeout }
    }
}

pub(crate) enum Failure {
    /// The connection was closed before the request was handed over.
    NotHandedOver,
    /// No answer came within the bound, which is given.
    TimedOut(Duration),
    /// The server or the transport answered with an error.
    Service(ServiceError),
    /// The connection closed before the answer.
    Closed,
}

pub(crate) struct Answer {
    pub id: RequestId,
    pub result: ServerResult,
}

/// Sends a request; on a timeout, or when the caller goes away, the server gets a cancellation.
pub(crate) async fn send(
    session: &Session,
    request: ClientRequest,
    meta: RequestMetaObject,
    bounds: Bounds,
) -> Result<Answer, Failure> {
    send_and_report(session, request, meta, bounds, Reports::none()).await
}

/// As [`send`], and passes on the server's progress.
pub(crate) async fn send_and_report(
    session: &Session,
    request: ClientRequest,
    meta: RequestMetaObject,
    bounds: Bounds,
    mut reports: Reports<'_>,
) -> Result<Answer, Failure> {
    let started = clock::monotonic();
    let options = PeerRequestOptions::no_options().with_meta(meta);
    let sending = session.peer.send_request_with_option(request, options);
    let mut handle = match timeout(bounds.idle, sending).await {
        Ok(Ok(handle)) => handle,
        Ok(Err(_)) | Err(_) => return Err(Failure::NotHandedOver),
    };
    let mut watch = session.progress.watch(handle.progress_token.clone());
    let mut guard = CancelOnDrop { peer: session.peer.clone(), id: Some(handle.id.clone()) };
    loop {
        let left = bounds.total.saturating_sub(started.elapsed());
        let wait = bounds.idle.min(left);
        let answer = timeout(wait, async {
            tokio::select! {
                biased;
                answer = &mut handle.rx => Ok(answer),
                progress = watch.progress() => Err(progress),
            }
        });
        match answer.await {
            Ok(Err(progress)) => reports.tell(progress),
            Ok(Ok(answer)) => {
                guard.id = None;
                return match answer {
                    Ok(Ok(result)) => Ok(Answer { id: handle.id, result }),
                    Ok(Err(ServiceError::TransportClosed)) | Err(_) => Err(Failure::Closed),
                    Ok(Err(error)) => Err(Failure::Service(error)),
                };
            }
            Err(_) if left <= bounds.idle => return Err(Failure::TimedOut(bounds.total)),
            Err(_) => return Err(Failure::TimedOut(bounds.idle)),
        }
    }
}

/// Notifies the server that the answer is no longer needed.
struct CancelOnDrop {
    peer: Peer<RoleClient>,
    id: Option<RequestId>,
}

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        let Some(id) = self.id.take() else { return };
        // Outside of a runtime the session is ending anyway.
        let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
        let peer = self.peer.clone();
        runtime.spawn(async move {
            let reason = Some("the caller no longer waits for the answer".to_owned());
            let params = CancelledNotificationParam::new(Some(id), reason);
            let cancelled = CancelledNotification::new(params);
            let _ = timeout(CANCEL, peer.send_notification(cancelled.into())).await;
        });
    }
}
