//! One open connection to a server, and what belongs to it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use futures::StreamExt as _;
use rmcp::handler::client::progress::ProgressDispatcher;
use rmcp::model::{
    CancelledNotification, CancelledNotificationParam, ClientCapabilities, ClientConfig,
    ClientRequest, ElicitRequestParams, ElicitResult, ElicitationCapability, ErrorData,
    FormElicitationCapability, Implementation, ProgressNotificationParam, RequestId,
    RequestMetaObject, ServerResult, UrlElicitationCapability,
};
use rmcp::service::{NotificationContext, PeerRequestOptions, RequestContext, RunningService};
use rmcp::{ClientHandler, Peer, RoleClient, ServiceError};
use tokio::sync::Mutex;

use super::open_calls::{ListChanges, OpenCalls, Reports};
use super::{http_session::SessionId, process::Process};
use crate::configuration::ServerConfig;
use crate::types::Via;
use perihelion_clock as clock;
use tokio::time::timeout;

/// How long a protocol-level goodbye may take before the process is ended anyway.
const GOODBYE: Duration = Duration::from_secs(1);
/// How long to wait for the exit status of a process that closed its pipes.
pub(super) const DESCRIBE: Duration = Duration::from_millis(500);

/// This program's side of the conversation: takes questions and tasks, listens for progress; its transport listens
/// for changed tools.
#[derive(Default)]
pub(super) struct Listener {
    pub progress: ProgressDispatcher,
    pub open_calls: Arc<OpenCalls>,
    pub changes: Arc<ListChanges>,
}

impl ClientHandler for Listener {
    fn get_info(&self) -> ClientConfig {
        let version = env!("CARGO_PKG_VERSION");
        let elicitation = ElicitationCapability::new()
            .with_form(FormElicitationCapability::new())
            .with_url(UrlElicitationCapability::new());
        let mut capabilities = ClientCapabilities::builder().enable_tasks().build();
        capabilities.elicitation = Some(elicitation);
        ClientConfig::new(capabilities, Implementation::new("perihelion", version))
    }

    async fn create_elicitation(
        &self,
        params: ElicitRequestParams,
        _context: RequestContext<RoleClient>,
    ) -> Result<ElicitResult, ErrorData> {
        Ok(self.open_calls.answer(&params))
    }

    async fn on_progress(
        &self,
        params: ProgressNotificationParam,
        _context: NotificationContext<RoleClient>,
    ) {
        self.progress.handle_notification(params).await;
    }
}

pub(crate) struct Session {
    pub peer: Peer<RoleClient>,
    progress: ProgressDispatcher,
    pub open_calls: Arc<OpenCalls>,
    /// Whether the server reported that its tools changed.
    pub changes: Arc<ListChanges>,
    /// Whether the loss of this session was counted as a failure of its server.
    counted: AtomicBool,
    service: Mutex<Option<RunningService<RoleClient, Listener>>>,
    kind: Kind,
}

pub(super) enum Kind {
    Stdio(Box<Process>),
    Http(SessionId),
}

impl Session {
    pub(super) fn new(service: RunningService<RoleClient, Listener>, kind: Kind) -> Self {
        Self {
            peer: service.peer().clone(),
            progress: service.service().progress.clone(),
            open_calls: service.service().open_calls.clone(),
            changes: service.service().changes.clone(),
            counted: AtomicBool::new(false),
            service: Mutex::new(Some(service)),
            kind,
        }
    }

    fn process(&self) -> Option<&Process> {
        match &self.kind {
            Kind::Stdio(process) => Some(process),
            Kind::Http(_) => None,
        }
    }

    pub fn via(&self, protocol_version: String, request_id: String) -> Via {
        let (transport, session_id) = match &self.kind {
            Kind::Stdio(_) => ("pipe", None),
            Kind::Http(session) => ("tcp", session.current()),
        };
        Via { protocol_version, transport: transport.to_owned(), session_id, request_id }
    }

    /// Returns whether the server accepts answers with a repeated call, as from protocol 2026-07-28 on.
    pub fn takes_answers(&self) -> bool {
        self.peer.peer_info().is_some_and(|info| !info.protocol_version.has_initialize())
    }

    pub fn is_child(&self) -> bool {
        self.process().is_some()
    }

    /// Returns whether a request could still be sent.
    ///
    /// `RunningService::is_closed` would not notice a server that died.
    pub fn is_open(&self) -> bool {
        !self.peer.is_transport_closed()
    }

    /// Returns true once: of the calls that lost one connection together, one counts as a failure.
    pub fn is_first_loss(&self) -> bool {
        !self.counted.swap(true, Ordering::Relaxed)
    }

    /// Describes how a server that closed the connection ended, with its last words.
    pub async fn why_ended(&self) -> String {
        if let Some(why) = self.changes.broken_off() {
            return format!("its connection was ended: {why}");
        }
        match self.process() {
            Some(process) => {
                let end = process.describe_end(DESCRIBE).await;
                let end = end.unwrap_or_else(|| "it closed the connection".into());
                process.last_words().map_or(end.clone(), |words| format!("{end}; {words}"))
            }
            None => "it closed the connection".into(),
        }
    }

    /// Says goodbye and ends the process, if there is one, with all that it started.
    pub async fn close(&self, patience: Duration) {
        if let Some(mut service) = self.service.lock().await.take() {
            // A timeout is no loss: what does not end by itself is ended below.
            let _ = service.close_with_timeout(GOODBYE).await;
        }
        if let Some(process) = self.process() {
            process.end(patience).await;
        }
    }
}

/// How long the delivery of a cancellation is tried.
pub(crate) const CANCEL: Duration = Duration::from_secs(2);

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
    let mut guard = CancelOnDrop { peer: session.peer.clone(), id: Some(handle.id.clone()) };
    let mut news = session.progress.subscribe(handle.progress_token.clone()).await;
    loop {
        let left = bounds.total.saturating_sub(started.elapsed());
        if left.is_zero() {
            return Err(Failure::TimedOut(bounds.total));
        }
        let wait = bounds.idle.min(left);
        let answer = timeout(wait, async {
            tokio::select! {
                biased;
                answer = &mut handle.rx => Ok(answer),
                Some(progress) = news.next() => Err(progress),
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
