//! Tells waiting calls that the server reported progress on them.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
};

use rmcp::model::ProgressToken;
use tokio::sync::Notify;

/// The calls of one session that wait for an answer.
#[derive(Default)]
pub(super) struct ProgressBoard(Mutex<HashMap<ProgressToken, Arc<Notify>>>);

impl ProgressBoard {
    /// Wakes the call that the progress is about, if it still waits.
    pub fn note(&self, token: &ProgressToken) {
        if let Some(waiting) = self.lock().get(token) {
            waiting.notify_one();
        }
    }

    /// Starts to watch the progress of a call until the watch is dropped.
    pub fn watch(self: &Arc<Self>, token: ProgressToken) -> Watch {
        let news = Arc::new(Notify::new());
        self.lock().insert(token.clone(), news.clone());
        Watch { board: self.clone(), token, news }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<ProgressToken, Arc<Notify>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// One call's place on the board.
pub(super) struct Watch {
    board: Arc<ProgressBoard>,
    token: ProgressToken,
    news: Arc<Notify>,
}

impl Watch {
    /// Returns at the next progress.
    pub async fn progress(&self) {
        self.news.notified().await;
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.board.lock().remove(&self.token);
    }
}
