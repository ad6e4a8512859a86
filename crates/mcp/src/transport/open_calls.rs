//! Routes a server's messages: changes of its tools, questions to their call, progress to its caller.

use std::borrow::Cow;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use rmcp::RoleClient;
use rmcp::model::{
    ClientRequest, ElicitRequestParams, ElicitResult, ElicitationAction, ErrorCode, ErrorData,
    JsonRpcMessage, ProgressNotificationParam, RequestId, ServerNotification,
};
use rmcp::service::{RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;
use tokio::sync::{Notify, mpsc};

use crate::types::{Progress, text};
use crate::{configuration::redact::Secrets, trust::hidden};
use perihelion_clock as clock;

/// A call that can be asked something while it waits for its end.
pub(crate) trait Askable: Send + Sync {
    /// Answers at once, without waiting for a person.
    fn answer(&self, params: &ElicitRequestParams) -> ElicitResult;
}

#[derive(Default)]
pub(crate) struct OpenCalls {
    calls: Mutex<Vec<Arc<dyn Askable>>>,
    shared: AtomicBool,
}

impl OpenCalls {
    /// Takes questions for a call until the guard is dropped.
    pub fn open(self: &Arc<Self>, call: Arc<dyn Askable>) -> OpenCallGuard {
        self.calls.lock().push(Arc::clone(&call));
        OpenCallGuard { open_calls: Arc::clone(self), call }
    }

    pub fn has_any(&self) -> bool {
        !self.calls.lock().is_empty()
    }

    /// Returns whether a question matched several calls: from then on calls run one by one.
    pub fn goes_one_by_one(&self) -> bool {
        self.shared.load(Ordering::Relaxed)
    }

    /// Has the one call in flight answer a question; otherwise says `cancel`.
    pub fn answer(&self, params: &ElicitRequestParams) -> ElicitResult {
        let calls = self.calls.lock().clone();
        if let [call] = calls.as_slice() {
            return call.answer(params);
        }
        if !calls.is_empty() {
            tracing::warn!(
                "an MCP server asked during several calls; the question is cancelled, and calls are sent one at a time from now on"
            );
            self.shared.store(true, Ordering::Relaxed);
        }
        ElicitResult::new(ElicitationAction::Cancel)
    }
}

/// Takes a call from the open ones when it ends.
pub(crate) struct OpenCallGuard {
    open_calls: Arc<OpenCalls>,
    call: Arc<dyn Askable>,
}

impl Drop for OpenCallGuard {
    fn drop(&mut self) {
        self.open_calls.calls.lock().retain(|call| !Arc::ptr_eq(call, &self.call));
    }
}

/// Longer messages are cut.
const MESSAGE_CHARS: usize = 200;
/// People read no faster.
const PAUSE: Duration = Duration::from_millis(400);

/// Passes progress on to the caller, at the caller's speed.
pub(crate) struct Reports<'a> {
    to: Option<mpsc::Sender<Progress>>,
    secrets: Option<&'a Secrets>,
    last: Option<Instant>,
}

impl<'a> Reports<'a> {
    pub fn to(to: Option<mpsc::Sender<Progress>>, secrets: &'a Secrets) -> Self {
        Self { to, secrets: Some(secrets), last: None }
    }

    pub fn none() -> Self {
        Self { to: None, secrets: None, last: None }
    }

    /// Reports a progress, as one short line without secrets.
    pub fn tell(&mut self, progress: ProgressNotificationParam) {
        let (Some(to), Some(secrets)) = (&self.to, self.secrets) else { return };
        if self.last.is_some_and(|last| last.elapsed() < PAUSE) {
            return;
        }
        self.last = Some(clock::monotonic());
        let message = secrets.redact(&progress.message.unwrap_or_default());
        let message = text::cut(&text::one_line(&hidden::shown(&message)), MESSAGE_CHARS);
        // A caller that does not read its reports misses some.
        let _ = to.try_send(Progress { done: progress.progress, total: progress.total, message });
    }
}

/// Answers to a server's own requests that wait until it reads them; each takes memory.
const UNREAD: usize = 1024;

/// Whether a server reported a change of its tools, and why the subscription ended.
#[derive(Default)]
pub(crate) struct ListChanges {
    is_new: AtomicBool,
    notify: Notify,
    broken_off: OnceLock<String>,
}

impl ListChanges {
    pub fn note(&self) {
        self.is_new.store(true, Ordering::Release);
        self.notify.notify_one();
    }

    /// Returns once whether the server reported a change since the last check.
    pub fn take(&self) -> bool {
        self.is_new.swap(false, Ordering::AcqRel)
    }

    /// Returns why this side ended the connection, if it did.
    pub fn broken_off(&self) -> Option<&str> {
        self.broken_off.get().map(String::as_str)
    }

    /// Waits until the server reports a change; for one waiter at a time.
    pub async fn changed(&self) {
        self.notify.notified().await;
    }
}

/// A transport that intercepts notifications of changed lists, and the refusal of `server/discover`.
///
/// Handlers of notifications run in parallel with the answers to calls and may come after them. A call would then go to
/// a tool that the server has already changed.
pub(super) struct MessageFilter<T> {
    inner: T,
    changes: Arc<ListChanges>,
    /// One for each answer that waits to be written, and this one.
    unread: Arc<()>,
    /// The unanswered `server/discover`, which old servers refuse or ignore.
    probe: Option<RequestId>,
    /// When a server that ignores it counts as one that refused it.
    probe_until: Instant,
    /// The server is greeted in the old way; its refusal comes too late.
    is_given_up: bool,
}

impl<T> MessageFilter<T> {
    pub fn new(inner: T, changes: Arc<ListChanges>, probe_limit: Duration) -> Self {
        let probe_until = clock::monotonic() + probe_limit;
        let unread = Arc::default();
        Self { inner, changes, unread, probe: None, probe_until, is_given_up: false }
    }
}

impl<T: Transport<RoleClient>> MessageFilter<T> {
    /// Receives a message; a refusal of `server/discover` comes in time, and once.
    async fn receive_in_time(&mut self) -> Option<RxJsonRpcMessage<RoleClient>> {
        loop {
            let left = self.probe_until.saturating_duration_since(clock::monotonic());
            let message = tokio::select! {
                biased;
                message = self.inner.receive() => message?,
                () = clock::sleep(left), if self.probe.is_some() && !self.is_given_up => {
                    self.is_given_up = true;
                    let words = "there was no answer in half of the start-up timeout";
                    let error = ErrorData::new(ErrorCode::METHOD_NOT_FOUND, words, None);
                    return Some(JsonRpcMessage::error(error, self.probe.clone()));
                }
            };
            let is_refusal = self.probe.is_some()
                && matches!(&message, JsonRpcMessage::Error(error) if error.id == self.probe);
            if is_refusal && self.is_given_up {
                continue;
            }
            if is_refusal || matches!(message, JsonRpcMessage::Response(_)) {
                self.probe = None;
            }
            return Some(message);
        }
    }
}

impl<T: Transport<RoleClient>> Transport<RoleClient> for MessageFilter<T> {
    type Error = T::Error;

    fn name() -> Cow<'static, str> {
        T::name()
    }

    fn send(
        &mut self,
        item: TxJsonRpcMessage<RoleClient>,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send + 'static {
        if let JsonRpcMessage::Request(request) = &item {
            match request.request {
                ClientRequest::DiscoverRequest(_) => self.probe = Some(request.id.clone()),
                ClientRequest::InitializeRequest(_) => self.is_given_up = true,
                _ => {}
            }
        }
        let is_answer = matches!(&item, JsonRpcMessage::Response(_) | JsonRpcMessage::Error(_));
        let waits = is_answer.then(|| self.unread.clone());
        let sending = self.inner.send(item);
        async move {
            let _waits = waits;
            sending.await
        }
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleClient>> {
        let message = self.receive_in_time().await?;
        if let JsonRpcMessage::Notification(text) = &message
            && let ServerNotification::ToolListChangedNotification(_) = &text.notification
        {
            self.changes.note();
        }
        if Arc::strong_count(&self.unread) > UNREAD {
            let why = format!("it made {UNREAD} requests without reading the answers");
            let _ = self.changes.broken_off.set(why);
            return None;
        }
        Some(message)
    }

    async fn close(&mut self) -> Result<(), Self::Error> {
        // It would wait for what cannot be written.
        if self.changes.broken_off().is_some() {
            return Ok(());
        }
        self.inner.close().await
    }
}
