//! Tells waiting calls that the server reported progress on them.

use std::{
    collections::HashMap,
    sync::Arc,
    time::{Duration, Instant},
};

use parking_lot::Mutex;
use rmcp::model::{ProgressNotificationParam, ProgressToken};
use tokio::sync::{mpsc, watch};

use crate::configuration::redact::Secrets;
use crate::trust::hidden;
use crate::types::{Progress, text};
use perihelion_engine::clock;

/// Longer messages are cut.
const MESSAGE_CHARS: usize = 200;
/// People read no faster.
const PAUSE: Duration = Duration::from_millis(400);

/// The calls of one session that wait for an answer.
#[derive(Default)]
pub(super) struct ProgressBoard(Mutex<HashMap<ProgressToken, watch::Sender<Progress>>>);

impl ProgressBoard {
    /// Wakes the call that the progress is about, if it still waits.
    pub fn note(&self, words: ProgressNotificationParam) {
        if let Some(waiting) = self.0.lock().get(&words.progress_token) {
            let message = words.message.unwrap_or_default();
            waiting.send_replace(Progress { done: words.progress, total: words.total, message });
        }
    }

    /// Starts to watch the progress of a call until the watch is dropped.
    pub fn watch(self: &Arc<Self>, token: ProgressToken) -> Watch {
        let (sender, changes) = watch::channel(Progress::default());
        self.0.lock().insert(token.clone(), sender);
        Watch { board: self.clone(), token, changes }
    }
}

/// One call's place on the board.
pub(super) struct Watch {
    board: Arc<ProgressBoard>,
    token: ProgressToken,
    changes: watch::Receiver<Progress>,
}

impl Watch {
    /// Returns the next progress.
    pub async fn progress(&mut self) -> Progress {
        if self.changes.changed().await.is_err() {
            // Another call took the token over: nothing more is heard of this one.
            std::future::pending::<()>().await;
        }
        self.changes.borrow_and_update().clone()
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.board.0.lock().remove(&self.token);
    }
}

/// Passes progress on to the one who made the call, not faster than it can be read.
pub(crate) struct Reports<'a> {
    to: Option<mpsc::Sender<Progress>>,
    secrets: Option<&'a Secrets>,
    last: Option<Instant>,
}

impl<'a> Reports<'a> {
    pub fn to(to: Option<mpsc::Sender<Progress>>, secrets: &'a Secrets) -> Self {
        Self { to, secrets: Some(secrets), last: None }
    }

    /// Reports to nobody.
    pub fn none() -> Self {
        Self { to: None, secrets: None, last: None }
    }

    /// Reports a progress, as one short line without secrets.
    pub fn tell(&mut self, progress: Progress) {
        let (Some(to), Some(secrets)) = (&self.to, self.secrets) else { return };
        if self.last.is_some_and(|last| last.elapsed() < PAUSE) {
            return;
        }
        self.last = Some(clock::monotonic());
        let message = text::one_line(&hidden::shown(&secrets.redact(&progress.message)));
        let message = text::cut(&message, MESSAGE_CHARS);
        // Nobody waits for the one who does not listen.
        let _ = to.try_send(Progress { message, ..progress });
    }
}
