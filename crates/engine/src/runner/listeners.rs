//! Who hears a run: a listener in this process, and the publisher that tells other processes.

use tokio::sync::mpsc;

use crate::bus::EventSender;
use crate::failpoint::{self, Point};
use crate::graph::{RunEvent, State, Wants};

/// Everybody who hears a run.
pub(super) struct Listeners<S: State> {
    listener: Option<mpsc::Sender<RunEvent<S>>>,
    /// What the listener wants.
    wanted: Wants,
    sender: Option<EventSender>,
}

// By hand: a derived one would ask for states that can be cloned as events.
impl<S: State> Clone for Listeners<S> {
    fn clone(&self) -> Self {
        let listener = self.listener.clone();
        let sender = self.sender.clone();
        Self { listener, wanted: self.wanted, sender }
    }
}

impl<S: State> Listeners<S> {
    pub(super) fn new(
        listener: Option<mpsc::Sender<RunEvent<S>>>,
        wanted: Wants,
        sender: Option<EventSender>,
    ) -> Self {
        Self { listener, wanted, sender }
    }

    /// Returns whether anybody hears anything.
    pub(super) fn are_open(&self) -> bool {
        self.listener.is_some() || self.sender.is_some()
    }

    /// Returns which events are to be made: the publisher wants starts, ends and commits.
    pub(super) fn wants(&self) -> Wants {
        match self.sender {
            None => self.wanted,
            Some(_) => Wants { tasks: true, checkpoints: true, ..self.wanted },
        }
    }

    /// Tells everybody; waits while the listener is behind, and never for the publisher.
    pub(super) async fn tell(&self, event: RunEvent<S>) {
        if let Some(sender) = &self.sender {
            sender.tell(&event);
        }
        if let Some(listener) = self.listener.as_ref().filter(|_| self.is_wanted(&event)) {
            let is_ack = matches!(event, RunEvent::Checkpoint { .. });
            let reported = listener.send(event);
            // A listener that went away does not stop the run.
            let _ =
                if is_ack { failpoint::wrap(Point::Ack, reported).await } else { reported.await };
        }
    }

    /// Tells everybody a live piece, which a listener that is too far behind misses.
    pub(super) fn try_send(&self, event: RunEvent<S>) {
        if let Some(sender) = &self.sender {
            sender.tell(&event);
        }
        if let Some(listener) = &self.listener {
            let _ = listener.try_send(event);
        }
    }

    fn is_wanted(&self, event: &RunEvent<S>) -> bool {
        match event {
            RunEvent::TaskStarted { .. } | RunEvent::TaskEnded { .. } => self.wanted.tasks,
            RunEvent::Checkpoint { .. } => self.wanted.checkpoints,
            _ => true,
        }
    }
}
