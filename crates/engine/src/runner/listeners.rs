//! The receivers of a run's events: a listener in this process, and the publisher for other processes.

use tokio::sync::mpsc;

use crate::bus::EventSender;
use crate::failpoint::{self, Point};
use crate::graph::{RunEvent, State, Wants};

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

    pub(super) fn are_open(&self) -> bool {
        self.listener.is_some() || self.sender.is_some()
    }

    /// Returns the events to make: the publisher needs starts, ends and commits.
    pub(super) fn wants(&self) -> Wants {
        match self.sender {
            None => self.wanted,
            Some(_) => Wants { tasks: true, checkpoints: true, ..self.wanted },
        }
    }

    /// Sends an event to all receivers; waits for a slow listener, never for the publisher.
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

    /// Sends live text to all receivers; a listener whose queue is full does not get it.
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
