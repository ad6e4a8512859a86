//! Follows a run of another process, with the events that it would show.

use std::sync::Arc;

use futures::StreamExt as _;
use serde::Deserialize as _;
use tokio::sync::mpsc::Sender;

use perihelion_engine::bus::{Bus, Subscription, ThreadEvent};
use perihelion_engine::graph::RunEvent;
use perihelion_engine::ids::{RunId, ThreadId};
use perihelion_star::GraphState;

/// Passes a thread's events on to a listener, each once, from the beginning of the run under way.
pub(super) struct Live {
    bus: Arc<dyn Bus>,
    thread: ThreadId,
    listener: Sender<RunEvent<GraphState>>,
    /// `None` without a subscription: before it begins, and after a failure until the next poll.
    events: Option<Subscription>,
    /// An event that was read and must be passed on.
    waiting: Option<ThreadEvent>,
    /// Id of the last event that was passed on or passed over.
    seen: u64,
    /// The first run whose events are shown.
    from: Option<RunId>,
    is_shown: bool,
}

impl Live {
    pub(super) fn new(
        bus: &Arc<dyn Bus>,
        thread: ThreadId,
        listener: Sender<RunEvent<GraphState>>,
    ) -> Self {
        let bus = Arc::clone(bus);
        Self {
            bus,
            thread,
            listener,
            events: None,
            waiting: None,
            seen: 0,
            from: None,
            is_shown: false,
        }
    }

    /// Returns whether it is known with which run to begin.
    pub(super) fn has_begun(&self) -> bool {
        self.from.is_some()
    }

    pub(super) fn begin(&mut self, run: RunId) {
        self.from = Some(run);
    }

    /// Passes events on while they arrive; returns when a run has ended.
    ///
    /// It may be dropped at any moment: an event that was read and not passed on yet waits.
    pub(super) async fn show(&mut self) {
        loop {
            if self.waiting.is_none() {
                let bus = &self.bus;
                let thread = self.thread;
                let seen = self.seen;
                let events = self.events.get_or_insert_with(|| bus.subscribe(thread, seen));
                match events.next().await {
                    Some(Ok(events)) => self.waiting = Some(events),
                    // The thread's status is looked at all the same, and the next look subscribes again.
                    _ => {
                        self.events = None;
                        return std::future::pending().await;
                    }
                }
            }
            if self.pass_on().await {
                return;
            }
        }
    }

    /// Passes on the stored events that were not passed on yet.
    pub(super) async fn rest(&mut self) {
        self.pass_on().await;
        self.events = None;
        while let Ok(events) = self.bus.read(self.thread, self.seen).await {
            if events.is_empty() {
                return;
            }
            for one in events {
                self.waiting = Some(one);
                self.pass_on().await;
            }
        }
    }

    /// Passes on the event that waits; returns whether it was the end of a run.
    async fn pass_on(&mut self) -> bool {
        let Some(events) = &self.waiting else { return false };
        self.is_shown |= self.from == Some(events.run);
        let mut is_end = false;
        if self.is_shown {
            // Anyone who listened may have left.
            let permit = self.listener.reserve().await.ok();
            // One of a newer version's that this one does not know says nothing to it.
            let event = RunEvent::<GraphState>::deserialize(&events.event).ok();
            is_end = matches!(event, Some(RunEvent::RunEnded { .. }));
            if let Some((permit, event)) = permit.zip(event) {
                permit.send(event);
            }
        }
        self.seen = events.id;
        self.waiting = None;
        is_end
    }
}
