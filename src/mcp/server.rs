//! One configured server: its session, opened when needed and again when lost, and its calls.

use std::{
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};

use rmcp::{
    ServiceError,
    model::{CallToolRequest, CallToolRequestParams, ClientRequest, ErrorCode, RequestMetaObject},
};
use tokio::sync::{Mutex, Semaphore};
use tokio_util::sync::CancellationToken;

use super::{
    Answers, Asked, CallContext, Error, Leg, Reply, ServerInfo, ToolOutcome,
    connect::{self, Era},
    elicitation::{self, Seat},
    failure::{self, Call},
    listing::{self, Listing},
    menu, outcome,
    request::{self, Answer, Failure},
    servers_file::ServerConfig,
    session::Session,
};

/// Longer reasons are somebody's dump.
const REASON_CHARS: usize = 2000;

/// How long calls in flight keep a server that left the file.
const DRAIN: Duration = Duration::from_secs(30);

/// The call needs an address to be visited first (protocol 2025-11-25).
const URL_ELICITATION_REQUIRED: ErrorCode = ErrorCode(-32042);

/// One server of the file.
pub(super) struct Server {
    pub config: ServerConfig,
    executable: Option<PathBuf>,
    patience: Duration,
    state: Mutex<State>,
    /// Counts finished attempts to connect, so that those who waited for one share its failure.
    attempts: AtomicU64,
    permits: Semaphore,
    /// It asks amid calls, so that only one may be in flight for its questions to be told apart.
    one_by_one: AtomicBool,
    pub(super) closed: CancellationToken,
}

#[derive(Default)]
struct State {
    era: Era,
    session: Option<Arc<Session>>,
    listing: Option<Arc<Listing>>,
    failure: Option<Error>,
}

impl Server {
    pub fn new(config: ServerConfig, executable: Option<PathBuf>, patience: Duration) -> Self {
        Self {
            permits: Semaphore::new(config.max_concurrency),
            config,
            executable,
            patience,
            state: Mutex::default(),
            attempts: AtomicU64::new(0),
            one_by_one: AtomicBool::new(false),
            closed: CancellationToken::new(),
        }
    }

    /// Lists the server's tools anew, connecting first where needed.
    pub async fn scan(&self) -> Result<ServerInfo, Error> {
        self.open(true).await.map(|(_, listing)| listing.info.clone())
    }

    /// Goes one leg of a call, once.
    pub async fn call(&self, tool: &str, leg: Leg, context: CallContext) -> Result<Reply, Error> {
        let call = Call { config: &self.config, tool };
        let (arguments, answers, state) = match leg {
            Leg::Call { arguments, answers, state } => (arguments, answers, state),
            Leg::Wait { task, told } => return self.wait(&call, &task, &told).await,
            Leg::Tell { task, answers } => return self.tell(&call, &task, answers).await,
        };
        let room = match self.one_by_one.load(Ordering::Relaxed) {
            true => u32::try_from(self.config.max_concurrency).unwrap_or(u32::MAX),
            false => 1,
        };
        let waiting =
            tokio::time::timeout(self.config.tool_total_timeout, self.permits.acquire_many(room));
        let Ok(Ok(_permit)) = waiting.await else {
            return Err(call.not_sent("the calls before it take too long (see max_concurrency)"));
        };
        let (session, listing) = self.open(false).await.map_err(|error| match error {
            Error::Start { reason, .. } => call.not_sent(&reason),
            other => other,
        })?;
        if !listing.info.tools.iter().any(|known| known.name == tool) {
            let server = self.config.name.clone();
            return Err(Error::UnknownTool { server, tool: tool.to_owned() });
        }
        let mut params = CallToolRequestParams::new(tool.to_owned()).with_arguments(arguments);
        let mut at_hand = Answers::new();
        if session.takes_answers() {
            params.input_responses = (!answers.is_empty()).then_some(answers);
            params.request_state = state;
        } else {
            at_hand = answers;
        }
        let seat = session.desk.sit(at_hand, &self.config.secrets);
        let request = ClientRequest::CallToolRequest(CallToolRequest::new(params));
        let sent = tokio::select! {
            biased;
            () = self.closed.cancelled() => return Err(call.unknown("the connection was closed meanwhile")),
            sent = request::send(&session, request, meta(context), self.bounds()) => sent,
        };
        let reply = match sent {
            Ok(Answer { id, result }) => {
                let output = listing.outputs.get(tool).map(AsRef::as_ref);
                let limit = self.config.max_result_bytes;
                match outcome::read(tool, result, limit, output, &self.config.secrets) {
                    Reply::Done(outcome) => {
                        let protocol_version = listing.info.protocol_version.clone();
                        let via = session.via(protocol_version, id.to_string());
                        Ok(Reply::Done(ToolOutcome { via: Some(via), ..outcome }))
                    }
                    other => Ok(other),
                }
            }
            Err(Failure::Service(ServiceError::McpError(error)))
                if error.code == URL_ELICITATION_REQUIRED
                    && let Some(asked) =
                        elicitation::required_urls(error.data.as_ref(), &self.config.secrets) =>
            {
                let broken_off = Some(self.config.secrets.redact(&menu::one_line(&error.message)));
                Ok(Reply::Asked { asked: Asked { broken_off, ..asked } })
            }
            Err(reason) => failure::judge(&call, reason, &session).await.map(Reply::Done),
        };
        if session.desk.goes_one_by_one() {
            self.one_by_one.store(true, Ordering::Relaxed);
        }
        broken_off(reply, &seat)
    }

    /// Closes once the calls in flight have ended, or after [`DRAIN`]; calls from now on are not sent.
    pub async fn drain(&self) {
        let all = u32::try_from(self.config.max_concurrency).unwrap_or(u32::MAX);
        let _ = tokio::time::timeout(DRAIN, self.permits.acquire_many(all)).await;
        self.close().await;
    }

    /// Closes the session for good; calls from now on are not sent.
    pub async fn close(&self) {
        self.closed.cancel();
        let session = self.state.lock().await.session.take();
        if let Some(session) = session {
            session.close(self.patience).await;
        }
    }

    /// Returns an open session and its tools, made anew where lost, or listed anew where asked.
    pub(super) async fn open(&self, relist: bool) -> Result<(Arc<Session>, Arc<Listing>), Error> {
        let seen = self.attempts.load(Ordering::Acquire);
        let mut state = self.state.lock().await;
        if self.closed.is_cancelled() {
            return Err(self.start_error("the connections were closed"));
        }
        if seen != self.attempts.load(Ordering::Acquire) {
            // Somebody tried while this one waited.
            if let Some(failure) = &state.failure {
                return Err(failure.clone());
            }
        }
        let opened = tokio::select! {
            biased;
            () = self.closed.cancelled() => Err(self.start_error("the connections were closed")),
            opened = self.open_locked(&mut state, relist) => opened,
        };
        state.failure = opened.as_ref().err().cloned();
        self.attempts.fetch_add(1, Ordering::Release);
        opened
    }

    async fn open_locked(
        &self,
        state: &mut State,
        relist: bool,
    ) -> Result<(Arc<Session>, Arc<Listing>), Error> {
        if let Some(lost) = state.session.take_if(|session| !session.is_open()) {
            tracing::info!(server = %self.config.name, "MCP server closed the connection; connecting again");
            // Nothing to wait for politely: its pipes are closed, but its children may live.
            lost.close(Duration::ZERO).await;
            state.listing = None;
        }
        let session = match &state.session {
            Some(session) => session.clone(),
            None => {
                let executable = self.executable.as_ref();
                let connected = connect::connect(&self.config, state.era, executable).await;
                let (session, era) = connected.map_err(|reason| {
                    state.era = Era::Unknown;
                    self.start_error(&reason)
                })?;
                state.era = era;
                let session = Arc::new(session);
                state.session = Some(session.clone());
                session
            }
        };
        if let Some(listing) = state.listing.as_ref().filter(|_| !relist) {
            return Ok((session, listing.clone()));
        }
        match listing::list(&session, &self.config).await {
            Ok(listing) => {
                let listing = Arc::new(listing);
                state.listing = Some(listing.clone());
                Ok((session, listing))
            }
            Err(reason) => {
                // A server that cannot list its tools is started anew the next time.
                state.session = None;
                state.listing = None;
                session.close(self.patience).await;
                Err(self.start_error(&reason))
            }
        }
    }

    fn start_error(&self, reason: &str) -> Error {
        let reason = menu::cut(&self.config.secrets.redact(reason), REASON_CHARS);
        Error::Start { server: self.config.name.clone(), reason }
    }
}

/// Puts what was asked amid a call in the place of its end, which is only what the tool made of `cancel`.
fn broken_off(reply: Result<Reply, Error>, seat: &Seat) -> Result<Reply, Error> {
    let questions = seat.asked();
    if questions.is_empty() {
        return reply;
    }
    let said = match reply {
        Ok(Reply::Done(outcome)) => outcome.text,
        Err(Error::Refused { reason, .. }) => reason,
        other => return other,
    };
    Ok(Reply::Asked { asked: Asked { questions, broken_off: Some(said), ..Asked::default() } })
}

/// What travels beside the arguments: stable key and trace, both for the server's own use.
fn meta(context: CallContext) -> RequestMetaObject {
    let mut meta = RequestMetaObject::new();
    if !context.idempotency_key.is_empty() {
        meta.insert("dev.perihelion/idempotency-key".into(), context.idempotency_key.into());
    }
    if let Some(traceparent) = context.traceparent {
        meta.set_traceparent(traceparent);
    }
    meta
}
