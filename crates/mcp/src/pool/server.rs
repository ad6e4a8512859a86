//! One configured server: its shared parts, its known tools, and its calls, admitted, bounded and judged.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use parking_lot::MutexGuard;
use tokio::sync::Mutex;
use tokio_util::sync::CancellationToken;

use super::{admission::Admission, opening::Link, options::PoolContext, view::View};
use crate::call::round::{self, Given, RoundOutcome, Verdict};
use crate::configuration::{ServerConfig, Transport};
use crate::transport::oauth::Access;
use crate::types::{
    CallContext, CallPolicy, CallRound, Error, Phase, Reply, Result, ServerInfo, ServerState,
    ToolDefinition,
};
use crate::{call::outcome::Call, call::task::TaskCall};
use perihelion_clock as clock;
use perihelion_settings::metrics::{self, Timer};

/// Extra time for calls in flight, beyond their own limit, when their server is removed from the file.
const DRAIN_SLACK: Duration = Duration::from_secs(5);

/// How often it is looked whether the tasks of such a server have ended.
const TASKS_LOOK: Duration = Duration::from_millis(200);

/// How many times its start-up timeout a server may take in the end: a busy machine costs attempts, not the server.
const MOST_SLACK: u32 = 8;
/// Times that a call is handed to a connection, each opened after the one before was lost.
const ATTEMPTS: u32 = 3;

pub(super) struct Server {
    pub config: ServerConfig,
    pub context: Arc<PoolContext>,
    /// Locked by a task that opens, closes or lists.
    pub link: Mutex<Link>,
    /// The source of tokens, if none is configured.
    pub access: Option<Arc<Access>>,
    /// Counts finished connection attempts, so that waiting tasks share a failure.
    pub attempts: AtomicU64,
    /// The connection is closed permanently, or about to be; further calls are not sent.
    pub closed: CancellationToken,
    pub me: Weak<Self>,
    pub admission: Admission,
    /// The next attempt's limit as a multiple of the start-up timeout: more after an attempt that took all its time.
    slack: AtomicU32,
    view: parking_lot::Mutex<View>,
}

impl Server {
    pub fn new(config: ServerConfig, context: Arc<PoolContext>) -> Arc<Self> {
        let access = match (&config.transport, &context.options.logins) {
            (Transport::Http { url, oauth: Some(oauth), .. }, Some(logins)) => {
                Some(Arc::new(Access::new(&config.name, url, oauth, &config.secrets, logins)))
            }
            _ => None,
        };
        Arc::new_cyclic(|me| Self {
            access,
            context,
            link: Mutex::default(),
            attempts: AtomicU64::new(0),
            closed: CancellationToken::new(),
            me: me.clone(),
            admission: Admission::new(&config),
            slack: AtomicU32::new(1),
            view: parking_lot::Mutex::default(),
            config,
        })
    }

    /// Returns the configuration for the next attempt to start or reach the server, with the time that it may take.
    pub fn config_to_start(&self) -> ServerConfig {
        let slack = self.slack.load(Ordering::Relaxed);
        let startup_timeout = self.config.startup_timeout * slack;
        ServerConfig { startup_timeout, ..self.config.clone() }
    }

    /// Notes a failed attempt with its duration; one that took all its time gets more the next time.
    pub fn failed_after(&self, took: Duration) {
        let slack = self.slack.load(Ordering::Relaxed);
        if took >= self.config.startup_timeout * slack {
            self.slack.store((slack * 2).min(MOST_SLACK), Ordering::Relaxed);
        }
    }

    /// Returns whether an attempt has taken the whole start-up timeout.
    pub fn is_slow(&self) -> bool {
        self.slack.load(Ordering::Relaxed) > 1
    }

    pub fn known(&self) -> Option<ServerInfo> {
        self.view().shown().map(|listing| listing.info.clone())
    }

    pub fn call_policy(&self, tool: &str) -> Option<CallPolicy> {
        self.view().shown()?.tool(tool).map(ToolDefinition::call_policy)
    }

    pub fn state(&self) -> ServerState {
        let refusal = self.problem();
        let view = self.view();
        let phase = match refusal {
            Some(_) if self.wants_login().is_some() => Phase::NeedsLogin,
            Some(_) => Phase::BreakerOpen,
            None => view.phase(),
        };
        let transport = match self.config.transport {
            Transport::Stdio { .. } => "stdio",
            Transport::Http { .. } => "http",
        };
        let info = view.own_tools().map(|listing| &listing.info);
        ServerState {
            server: self.config.name.clone(),
            phase,
            transport: transport.to_owned(),
            tools: info.map_or(0, |info| info.tools.len()),
            protocol_version: info.map(|info| info.protocol_version.clone()).unwrap_or_default(),
            problem: refusal.or_else(|| view.failure().map(str::to_owned)),
        }
    }

    /// Returns whether the connection is open; `None` before the first attempt, and while it is stopped on purpose.
    pub fn stands(&self) -> Option<bool> {
        if self.closed.is_cancelled() { None } else { self.view().stands() }
    }

    pub fn failure(&self) -> Option<String> {
        let refusal = self.admission.refusal();
        let wants_login = self.access.as_ref().and_then(|access| access.failure_in_brief());
        wants_login.or_else(|| refusal.map(|open| open.to_string()))
    }

    /// Returns the same for operators, with the server's text.
    fn problem(&self) -> Option<String> {
        let refusal = self.admission.refusal();
        self.wants_login().or_else(|| refusal.map(|open| open.with_last_failure()))
    }

    /// Says that a login is wanted, or why no token can be got, if so.
    pub fn wants_login(&self) -> Option<String> {
        self.access.as_ref().and_then(|access| access.failure())
    }

    /// Performs one round of a call; the end of a call is counted, polls of its task are not.
    pub async fn call(&self, tool: &str, round: CallRound, context: CallContext) -> Result<Reply> {
        let call = Call {
            config: &self.config,
            tool,
            access: self.access.as_deref(),
            is_bundled: self.is_bundled(),
            closed: &self.closed,
        };
        let given = match round {
            CallRound::Call { arguments, answers, state } => Given { arguments, answers, state },
            // Neither begins anything: refusing them would only lose what already runs.
            CallRound::Wait { task, answered } => {
                self.admission.follow_task(&task.id);
                let followed = TaskCall { call: &call, task: &task, server: self };
                let reply = followed.wait(&answered).await;
                match &reply {
                    Ok(Reply::Asked { .. }) => self.admission.follow_task(&task.id),
                    _ => self.admission.end_task(&task.id),
                }
                return reply;
            }
            CallRound::Tell { task, answers } => {
                self.admission.follow_task(&task.id);
                return TaskCall { call: &call, task: &task, server: self }.tell(answers).await;
            }
        };
        let timer = Timer::start();
        let called = self.call_uncounted(&call, given, context).await;
        if let Ok(Reply::Task { task }) = &called {
            self.admission.follow_task(&task.id);
        }
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

    async fn call_uncounted(
        &self,
        call: &Call<'_>,
        given: Given,
        context: CallContext,
    ) -> Result<Reply> {
        let turn = self.admission.turn(&self.closed).await;
        let _permit = turn.map_err(|reason| call.not_sent(reason))?;
        let trial = self.admission.admit().map_err(|open| call.not_sent(open))?;
        let reply = self.send(call, given, context).await;
        drop(trial);
        self.admission.use_now();
        reply
    }

    /// Sends an admitted call, connecting first if necessary, and counts its findings about the server.
    async fn send(&self, call: &Call<'_>, given: Given, context: CallContext) -> Result<Reply> {
        let mut attempts = ATTEMPTS;
        loop {
            let opened = self.open(false).await.map_err(|error| match error {
                Error::Start { reason, .. } => call.not_sent(&reason),
                other => other,
            })?;
            let sent = round::send(call, &opened, given.clone(), context.clone()).await;
            let RoundOutcome { reply, verdict, is_connection_lost } = sent;
            match verdict {
                Some(Verdict::Well) => self.admission.succeeded(),
                Some(Verdict::Failed(reason)) => {
                    self.count_failure(&reason);
                    // A session can be what fails: the call that decides has a new one.
                    if !opened.session.is_child() && self.admission.refusal().is_some() {
                        self.link.lock().await.connection.leave(&opened.session);
                    }
                }
                None => {}
            }
            if opened.session.open_calls.goes_one_by_one() {
                self.admission.go_one_by_one();
            }
            attempts -= 1;
            // The server ended between two calls: nothing was sent, so nothing is done twice.
            if !is_connection_lost || attempts == 0 || self.closed.is_cancelled() {
                return reply;
            }
            let mut link = self.link.lock().await;
            if link.connection.is_on(&opened.session) {
                link.connection.close(Duration::ZERO).await;
            }
        }
    }

    /// Counts a failure of the server; enough of them in a row, and calls are refused for a while.
    pub fn count_failure(&self, reason: &str) {
        if self.admission.failed(reason) {
            let server = &self.config.name;
            tracing::warn!(%server, %reason, "MCP server failed too often; calls are refused for a while");
        }
        self.context.changed();
    }

    /// Closes once calls in flight and tasks have ended, which their own limits see to; calls from now on are not sent.
    pub async fn drain(&self) {
        let limit = self.config.tool_total_timeout + DRAIN_SLACK;
        loop {
            // Kept until the end: otherwise a waiting call would be sent and then cut off.
            let none = self.admission.none(limit).await;
            if !self.admission.has_tasks() {
                return self.close().await;
            }
            drop(none);
            clock::sleep(TASKS_LOOK).await;
        }
    }

    /// Closes the session permanently; further calls are not sent.
    pub async fn close(&self) {
        self.closed.cancel();
        // Under the lock, so that anyone who closes as well waits until the process is gone.
        self.part(&mut *self.link.lock().await, self.context.options.patience).await;
        if let Some(access) = &self.access {
            access.settle().await;
        }
    }

    pub async fn part(&self, link: &mut Link, patience: Duration) {
        link.connection.close(patience).await;
        self.change(View::stop);
    }

    pub fn change(&self, change: impl FnOnce(&mut View)) {
        change(&mut self.view());
        self.context.changed();
    }

    pub fn view(&self) -> MutexGuard<'_, View> {
        self.view.lock()
    }
}
