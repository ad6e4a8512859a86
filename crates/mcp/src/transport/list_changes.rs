//! Hears what comes in before anybody acts on it: that a server's tools changed, or that it only asks and never listens.

use std::{
    borrow::Cow,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicBool, Ordering},
    },
};

use rmcp::{
    RoleClient,
    model::{JsonRpcMessage, ServerNotification},
    service::{RxJsonRpcMessage, TxJsonRpcMessage},
    transport::Transport,
};
use tokio::sync::Notify;

/// Answers to a server's own requests that wait until it reads them; each takes memory.
const UNREAD: usize = 1024;

/// Whether a server said that its tools changed, and why it is not listened to any longer.
#[derive(Default)]
pub(crate) struct ListChanges {
    is_new: AtomicBool,
    notify: Notify,
    broken_off: OnceLock<String>,
}

impl ListChanges {
    fn note(&self) {
        self.is_new.store(true, Ordering::Release);
        self.notify.notify_one();
    }

    /// Tells once whether the server said so since somebody asked.
    pub fn take(&self) -> bool {
        self.is_new.swap(false, Ordering::AcqRel)
    }

    /// Returns why this side ended the connection, if it did.
    pub fn broken_off(&self) -> Option<&str> {
        self.broken_off.get().map(String::as_str)
    }

    /// Waits until the server says so; one waits at a time.
    pub async fn changed(&self) {
        self.notify.notified().await;
    }
}

/// A transport that takes changed lists out of what comes in.
///
/// Handlers of notifications run beside the answers to calls and may come after them, so that a call would go to a
/// tool that the server has said is another one now.
pub(super) struct ListChangeFilter<T> {
    inner: T,
    changes: Arc<ListChanges>,
    /// One for each answer that waits to be written, and this one.
    unread: Arc<()>,
}

impl<T> ListChangeFilter<T> {
    pub fn new(inner: T, changes: Arc<ListChanges>) -> Self {
        Self { inner, changes, unread: Arc::default() }
    }
}

impl<T: Transport<RoleClient>> Transport<RoleClient> for ListChangeFilter<T> {
    type Error = T::Error;

    fn name() -> Cow<'static, str> {
        T::name()
    }

    fn send(
        &mut self,
        item: TxJsonRpcMessage<RoleClient>,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send + 'static {
        let is_answer = matches!(&item, JsonRpcMessage::Response(_) | JsonRpcMessage::Error(_));
        let waits = is_answer.then(|| self.unread.clone());
        let sending = self.inner.send(item);
        async move {
            let _waits = waits;
            sending.await
        }
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleClient>> {
        let message = self.inner.receive().await?;
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
