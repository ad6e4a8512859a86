//! One configured server: what is known of it, and its calls, each admitted, bounded and judged.

use std::{
    sync::{
        Arc, MutexGuard, PoisonError, Weak,
        atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use tokio::{
    sync::{Mutex, Semaphore, SemaphorePermit},
    time::timeout,
};
use tokio_util::sync::CancellationToken;

use super::{
    CallContext, CallRound, Error, Gate, Phase, Reply, ServerInfo, ServerState, ToolDefinition,
    breaker::Breaker,
    call_round::Sent,
    failure::Call,
    listing::Listing,
    oauth::Access,
    opening::{Around, State},
    rate::Rate,
    servers_file::{ServerConfig, Transport},
};
use crate::clock;
use crate::metrics::{self, Timer};

/// What calls in flight get beyond their own limit, when their server leaves the file.
const DRAIN_SLACK: Duration = Duration::from_secs(5);

/// One server of the file.
pub(super) struct Server {
    pub config: ServerConfig,
    pub(super) around: Arc<Around>,
    pub(super) state: Mutex<State>,
    /// What gives out tokens, where none is configured.
    pub(super) access: Option<Arc<Access>>,
    /// Counts finished attempts to connect, so that those who waited for one share its failure.
    pub(super) attempts: AtomicU64,
    pub(super) closed: CancellationToken,
    pub(super) me: Weak<Self>,
    view: std::sync::Mutex<View>,
    breaker: std::sync::Mutex<Breaker>,
    rate: Option<Rate>,
    permits: Semaphore,
    /// It asks during calls, so that only one may be in flight for its questions to be told apart.
    pub(super) one_by_one: AtomicBool,
    /// Tasks that are waited for; the server is in use meanwhile.
    pub(super) tasks: AtomicUsize,
    last_used: std::sync::Mutex<Instant>,
}

/// What can be told of a server at any time, without waiting for it.
#[derive(Default)]
pub(super) struct View {
    /// Its tools as they were last known.
    pub listing: Option<Arc<Listing>>,
    /// Those of the server before it under this name, until it has told its own.
    pub before: Option<Arc<Listing>>,
    pub is_running: bool,
    pub was_running: bool,
    /// Why it could not be started.
    pub failure: Option<String>,
}

impl Server {
    pub fn new(config: ServerConfig, around: Arc<Around>) -> Arc<Self> {
        let access = match (&config.transport, &around.logins) {
            (Transport::Http { url, oauth: Some(oauth), .. }, Some(logins)) => {
                Some(Arc::new(Access::new(&config.name, url, oauth, &config.secrets, logins)))
            }
            _ => None,
        };
        Arc::new_cyclic(|me| Self {
            access,
            around,
            state: Mutex::default(),
            attempts: AtomicU64::new(0),
            closed: CancellationToken::new(),
            me: me.clone(),
            view: std::sync::Mutex::default(),
            breaker: std::sync::Mutex::new(Breaker::new(config.breaker)),
            rate: config.rate_limit.and_then(Rate::new),
            permits: Semaphore::new(config.max_concurrent_calls),
            one_by_one: AtomicBool::new(false),
            tasks: AtomicUsize::new(0),
            last_used: std::sync::Mutex::new(clock::monotonic()),
            config,
        })
    }

    /// Lists the server's tools again, connecting first where needed.
    pub async fn scan(&self) -> Result<ServerInfo, Error> {
        let (_, listing) = self.open(true).await?;
        // Somebody looked, and it answers: calls are let through again.
        self.breaker().succeeded();
        Ok(listing.info.clone())
    }

    /// Returns the server's tools as they are known, here or on disk, while they are fresh; else scans.
    ///
    /// A required server is scanned unless it was in this process: whether it starts is the point.
    pub async fn look(&self) -> Result<ServerInfo, Error> {
        if let Some(access) = &self.access {
            access.look().await;
        }
        let is_fresh =
            |listing: &&Arc<Listing>| listing.definitions.is_fresh(&self.config, clock::now());
        let shown = self.view().listing.clone();
        if let Some(listing) = shown.as_ref().filter(is_fresh)
            && self.judge(listing).is_ok()
        {
            return Ok(listing.info.clone());
        }
        if !self.config.required
            && let Some(definitions) = self.remembered().await
        {
            let listing = Arc::new(Listing::of(definitions, &self.config));
            // Of what differs from its pin the server itself is asked: it may have been fixed since.
            if is_fresh(&&listing) && self.judge(&listing).is_ok() {
                self.change(|view| view.listing = Some(listing.clone()));
                return Ok(listing.info.clone());
            }
            // No call goes out before the server has said the same again.
            if self.around.refresh_beside && self.is_vouched_for() && self.judge(&listing).is_ok() {
                self.change(|view| view.listing = Some(listing.clone()));
                self.refresh();
                return Ok(listing.info.clone());
            }
        }
        self.scan().await
    }

    /// Asks the server for its tools beside what goes on; ends with its start-up timeout, or when the pool is closed.
    fn refresh(&self) {
        let Some(me) = self.me.upgrade() else { return };
        tokio::spawn(async move {
            if let Err(error) = me.scan().await
                && !me.closed.is_cancelled()
            {
                tracing::warn!(server = %me.config.name, %error, "MCP server is not as it was known");
            }
        });
    }

    /// Takes over what is known of the server that it replaces, so that no agent is missing meanwhile.
    ///
    /// Where the same server is reached, its tools are known; else they only stand in the menu until it is asked.
    pub fn succeed(&self, old: &Self) {
        let known = {
            let view = old.view();
            view.listing.clone().or_else(|| view.before.clone())
        };
        let Some(known) = known else { return };
        let listing = Arc::new(Listing::of(known.definitions.clone(), &self.config));
        // The changed table may let more be seen of it than was pinned.
        if self.judge_as_of(&listing, &old.config.origin).is_err() {
            return;
        }
        let mut view = self.view();
        match self.config.fingerprint == old.config.fingerprint {
            true => view.listing = Some(listing),
            false => view.before = Some(listing),
        }
    }

    /// Returns what is known of the server's tools, if anything is.
    pub fn known(&self) -> Option<ServerInfo> {
        let view = self.view();
        view.listing.as_ref().or(view.before.as_ref()).map(|listing| listing.info.clone())
    }

    /// Returns what surrounds the calls of a tool, as far as it is known.
    pub fn gate(&self, tool: &str) -> Option<Gate> {
        let view = self.view();
        let listing = view.listing.as_ref().or(view.before.as_ref())?;
        listing.info.tools.iter().find(|known| known.name == tool).map(ToolDefinition::gate)
    }

    /// Says how the server stands.
    pub fn standing(&self) -> ServerState {
        let refusal = self.problem();
        let view = self.view();
        let phase = match &view.listing {
            _ if self.wants_login().is_some() => Phase::NeedsLogin,
            _ if refusal.is_some() => Phase::BreakerOpen,
            _ if view.is_running => Phase::Running,
            _ if view.failure.is_some() => Phase::Failed,
            Some(_) if view.was_running => Phase::Stopped,
            Some(_) => Phase::Cached,
            None => Phase::New,
        };
        let transport = match self.config.transport {
            Transport::Stdio { .. } => "stdio",
            Transport::Http { .. } => "http",
        };
        let info = view.listing.as_ref().map(|listing| &listing.info);
        ServerState {
            server: self.config.name.clone(),
            phase,
            transport: transport.to_owned(),
            tools: info.map_or(0, |info| info.tools.len()),
            protocol_version: info.map(|info| info.protocol_version.clone()).unwrap_or_default(),
            problem: refusal.or_else(|| view.failure.clone()),
        }
    }

    /// Says why calls are refused now, if they are, and repeats nothing of what the server said.
    pub fn failure(&self) -> Option<String> {
        let refusal = self.breaker().refusal(clock::monotonic());
        let wants_login = self.access.as_ref().and_then(|access| access.failure_in_brief());
        wants_login.or_else(|| refusal.map(|open| open.to_string()))
    }

    /// Says the same to operators, with what the server said.
    fn problem(&self) -> Option<String> {
        let refusal = self.breaker().refusal(clock::monotonic());
        self.wants_login().or_else(|| refusal.map(|open| open.with_last_failure()))
    }

    /// Goes one round of a call, once; how a call ended is counted, what is asked of its task is not.
    pub async fn call(
        &self,
        tool: &str,
        round: CallRound,
        context: CallContext,
    ) -> Result<Reply, Error> {
        let call = Call { config: &self.config, tool, access: self.access.as_deref() };
        let round = match round {
            CallRound::Call { arguments, answers, state } => Sent { arguments, answers, state },
            // Neither begins anything: refusing them would only lose what already runs.
            CallRound::Wait { task, told } => return self.wait(&call, &task, &told).await,
            CallRound::Tell { task, answers } => return self.tell(&call, &task, answers).await,
        };
        let timer = Timer::start();
        let called = self.call_uncounted(&call, round, context).await;
        let class = match &called {
            Ok(Reply::Done(outcome)) => outcome.is_error.then_some("tool_error"),
            Ok(Reply::Asked { .. } | Reply::Task { .. }) => None,
            Err(error) => Some(error.class()),
        };
        // A name that the server does not have may be anything.
        let tool = if matches!(called, Err(Error::UnknownTool { .. })) { "_OTHER" } else { tool };
        metrics::tool_called(timer, &self.config.name, tool, class);
        called
    }

    /// Returns whether the connection stands; none before it was tried, and while it is stopped on purpose.
    pub fn stands(&self) -> Option<bool> {
        if self.closed.is_cancelled() {
            return None;
        }
        let view = self.view();
        if view.is_running { Some(true) } else { view.failure.as_ref().map(|_| false) }
    }

    async fn call_uncounted(
        &self,
        call: &Call<'_>,
        round: Sent,
        context: CallContext,
    ) -> Result<Reply, Error> {
        let _permit = self.turn(call).await?;
        self.use_now();
        let admitted = self.breaker().admit(clock::monotonic());
        let trial = match admitted {
            Ok(decides) => Trial { server: self, decides },
            Err(open) => return Err(call.not_sent(&open.to_string())),
        };
        let reply = self.send(call, round, context).await;
        drop(trial);
        self.use_now();
        reply
    }

    /// Waits until fewer than the most calls are in flight and the rate allows one more.
    async fn turn(&self, call: &Call<'_>) -> Result<SemaphorePermit<'_>, Error> {
        let patience = self.config.tool_total_timeout;
        let started = clock::monotonic();
        let room = match self.one_by_one.load(Ordering::Relaxed) {
            true => u32::try_from(self.config.max_concurrent_calls).unwrap_or(u32::MAX),
            false => 1,
        };
        let Ok(Ok(permit)) = timeout(patience, self.permits.acquire_many(room)).await else {
            return Err(
                call.not_sent("the calls before it take too long (see max_concurrent_calls)")
            );
        };
        if let Some(rate) = &self.rate {
            let ready = tokio::select! {
                biased;
                () = self.closed.cancelled() => return Err(call.not_sent("the connections were closed")),
                ready = rate.ready(patience.saturating_sub(started.elapsed())) => ready,
            };
            if !ready {
                return Err(call.not_sent("too many calls came before it (see rate_limit)"));
            }
        }
        Ok(permit)
    }

    /// Counts a failure of the server; enough of them in a row, and calls are refused for a while.
    pub(super) fn count_failure(&self, reason: &str) {
        let opened = self.breaker().failed(clock::monotonic(), reason);
        if opened {
            let server = &self.config.name;
            tracing::warn!(%server, %reason, "MCP server failed too often; calls are refused for a while");
        }
        self.around.changed();
    }

    /// Returns how long to wait before the server is started again.
    pub(super) fn pause(&self) -> Duration {
        self.breaker().pause(clock::monotonic())
    }

    /// Closes once the calls in flight have ended, which their own limits see to; calls from now on are not sent.
    pub async fn drain(&self) {
        let all = u32::try_from(self.config.max_concurrent_calls).unwrap_or(u32::MAX);
        let limit = self.config.tool_total_timeout + DRAIN_SLACK;
        // Held until the end: a call that waited behind would else be sent and then cut off.
        let _all = timeout(limit, self.permits.acquire_many(all)).await;
        self.close().await;
    }

    /// Closes the session for good; calls from now on are not sent.
    pub async fn close(&self) {
        self.closed.cancel();
        // Under the lock, so that anyone who closes as well waits until the process is gone.
        let mut state = self.state.lock().await;
        if let Some(session) = state.session.take() {
            session.close(self.around.patience).await;
            self.change(|view| view.is_running = false);
        }
        drop(state);
        if let Some(access) = &self.access {
            access.settle().await;
        }
    }

    /// Returns for how long no call was in flight and no task was waited for; none while one is.
    pub(super) fn idle_for(&self) -> Option<Duration> {
        let is_idle = self.permits.available_permits() == self.config.max_concurrent_calls
            && self.tasks.load(Ordering::Relaxed) == 0;
        let last = *self.last_used.lock().unwrap_or_else(PoisonError::into_inner);
        is_idle.then(|| last.elapsed())
    }

    pub(super) fn use_now(&self) {
        *self.last_used.lock().unwrap_or_else(PoisonError::into_inner) = clock::monotonic();
    }

    /// Changes what is told of the server, and tells that it changed.
    pub(super) fn change(&self, change: impl FnOnce(&mut View)) {
        change(&mut self.view());
        self.around.changed();
    }

    pub(super) fn view(&self) -> MutexGuard<'_, View> {
        self.view.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn breaker(&self) -> MutexGuard<'_, Breaker> {
        self.breaker.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A call that was let through; if it decides and goes away undecided, the next one does.
struct Trial<'a> {
    server: &'a Server,
    decides: bool,
}

impl Drop for Trial<'_> {
    fn drop(&mut self) {
        if self.decides {
            self.server.breaker().undecided();
        }
    }
}
