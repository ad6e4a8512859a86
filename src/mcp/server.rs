//! One configured server: its session, opened when needed and again when lost, and its calls.

use std::{
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use rmcp::model::{CallToolRequest, CallToolRequestParams, ClientRequest, RequestMetaObject};
use serde_json::{Map, Value};
use tokio::sync::{Mutex, Semaphore};
use tokio_util::sync::CancellationToken;

use super::{
    CallContext, Error, ServerInfo, ToolOutcome,
    connect::{self, Era},
    failure::{self, Call},
    listing::{self, Listing},
    menu,
    outcome::{self, Reply},
    pins::{Pins, ServerPin},
    request::{self, Answer, Bounds},
    servers_file::{ServerConfig, Transport},
    session::Session,
};

/// Longer reasons are somebody's dump.
const REASON_CHARS: usize = 2000;

/// How long calls in flight keep a server that left the file.
const DRAIN: Duration = Duration::from_secs(30);

/// One server of the file.
pub(super) struct Server {
    pub config: ServerConfig,
    executable: Option<PathBuf>,
    patience: Duration,
    pins: Option<Arc<Pins>>,
    state: Mutex<State>,
    /// Counts finished attempts to connect, so that those who waited for one share its failure.
    attempts: AtomicU64,
    permits: Semaphore,
    closed: CancellationToken,
}

#[derive(Default)]
struct State {
    era: Era,
    session: Option<Arc<Session>>,
    listing: Option<Arc<Listing>>,
    failure: Option<Error>,
}

impl Server {
    pub fn new(
        config: ServerConfig,
        executable: Option<PathBuf>,
        patience: Duration,
        pins: Option<Arc<Pins>>,
    ) -> Self {
        Self {
            permits: Semaphore::new(config.max_concurrency),
            config,
            executable,
            patience,
            pins,
            state: Mutex::default(),
            attempts: AtomicU64::new(0),
            closed: CancellationToken::new(),
        }
    }

    /// Lists the server's tools anew, connecting first where needed.
    pub async fn scan(&self) -> Result<ServerInfo, Error> {
        self.open(true).await.map(|(_, listing)| listing.info.clone())
    }

    /// Returns what would be pinned of the server now; `None` for a bundled one, which is this program itself.
    pub async fn pin(&self) -> Result<Option<ServerPin>, Error> {
        let (_, listing) = self.open(true).await?;
        Ok((!self.is_bundled()).then(|| self.pin_of(&listing)))
    }

    fn is_bundled(&self) -> bool {
        let own = |command: &str| command == "perihelion" && self.executable.is_some();
        matches!(&self.config.transport, Transport::Stdio { command, .. } if own(command))
    }

    fn pin_of(&self, listing: &Listing) -> ServerPin {
        let (config, info) = (&self.config, &listing.info);
        let said = (&*info.server_version, &*listing.instructions);
        ServerPin::new(&config.origin, said.0, said.1, &info.tools, &config.secrets)
    }

    /// Compares a fresh listing with the server's pin, before anybody gets to see it.
    fn judge(&self, listing: &Listing) -> Result<(), Error> {
        let Some(pins) = self.pins.as_ref().filter(|_| !self.is_bundled()) else { return Ok(()) };
        let is_off = |tool: &str| self.config.tools.refusal(tool).is_some();
        pins.judge(&self.config.name, &self.pin_of(listing), is_off).map_err(|reason| {
            let reason = menu::cut(&reason, REASON_CHARS);
            Error::Quarantined { server: self.config.name.clone(), reason }
        })
    }

    /// Calls a tool once.
    pub async fn call(
        &self,
        tool: &str,
        arguments: Map<String, Value>,
        context: CallContext,
    ) -> Result<ToolOutcome, Error> {
        let call = Call { config: &self.config, tool };
        let waiting = tokio::time::timeout(self.config.tool_total_timeout, self.permits.acquire());
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
        let params = CallToolRequestParams::new(tool.to_owned()).with_arguments(arguments);
        let request = ClientRequest::CallToolRequest(CallToolRequest::new(params));
        let bounds =
            Bounds { idle: self.config.tool_timeout, total: self.config.tool_total_timeout };
        let sent = tokio::select! {
            biased;
            () = self.closed.cancelled() => return Err(call.unknown("the connection was closed meanwhile")),
            sent = request::send(&session, request, meta(context), bounds) => sent,
        };
        match sent {
            Ok(Answer { id, result }) => {
                let output = listing.outputs.get(tool).map(AsRef::as_ref);
                let limit = self.config.max_result_bytes;
                match outcome::read(tool, result, limit, output, &self.config.secrets) {
                    Reply::Done(outcome) => {
                        let protocol_version = listing.info.protocol_version.clone();
                        let via = session.via(protocol_version, id.to_string());
                        Ok(ToolOutcome { via: Some(via), ..outcome })
                    }
                    Reply::Task => Err(call.unknown(
                        "the server turned the call into a task, which is not supported yet",
                    )),
                }
            }
            Err(reason) => failure::judge(&call, reason, &session).await,
        }
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
    async fn open(&self, relist: bool) -> Result<(Arc<Session>, Arc<Listing>), Error> {
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
        let relist = session.take_tools_changed() || relist;
        if let Some(listing) = state.listing.as_ref().filter(|_| !relist) {
            return Ok((session, listing.clone()));
        }
        match listing::list(&session, &self.config).await {
            Ok(listing) => {
                if let Err(quarantined) = self.judge(&listing) {
                    state.session = None;
                    state.listing = None;
                    session.close(self.patience).await;
                    return Err(quarantined);
                }
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
