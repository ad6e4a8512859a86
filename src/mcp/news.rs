//! Hears that a server's tools changed, before whatever the server says after that.

use std::{
    borrow::Cow,
    sync::{
        Arc,
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

/// Whether a server said that its tools changed.
#[derive(Default)]
pub(super) struct News {
    is_new: AtomicBool,
    told: Notify,
}

impl News {
    fn note(&self) {
        self.is_new.store(true, Ordering::Release);
        self.told.notify_one();
    }

    /// Tells once whether the server said so since somebody asked.
    pub fn take(&self) -> bool {
        self.is_new.swap(false, Ordering::AcqRel)
    }

    /// Waits until the server says so; one waits at a time.
    pub async fn told(&self) {
        self.told.notified().await;
    }
}

/// A transport that takes the news out of what comes in.
///
/// Handlers of notifications run beside the answers to calls and may come after them, so that a call would go to a
/// tool that the server has said is another one now.
pub(super) struct Attentive<T> {
    inner: T,
    news: Arc<News>,
}

impl<T> Attentive<T> {
    pub fn new(inner: T, news: Arc<News>) -> Self {
        Self { inner, news }
    }
}

impl<T: Transport<RoleClient>> Transport<RoleClient> for Attentive<T> {
    type Error = T::Error;

    fn name() -> Cow<'static, str> {
        T::name()
    }

    fn send(
        &mut self,
        item: TxJsonRpcMessage<RoleClient>,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send + 'static {
        self.inner.send(item)
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleClient>> {
        let message = self.inner.receive().await?;
        if let JsonRpcMessage::Notification(said) = &message
            && let ServerNotification::ToolListChangedNotification(_) = &said.notification
        {
            self.news.note();
        }
        Some(message)
    }

    async fn close(&mut self) -> Result<(), Self::Error> {
        self.inner.close().await
    }
}
