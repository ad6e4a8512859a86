//! Runs one task: its node, its journal, its time limit, and what becomes of a panic.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use async_trait::async_trait;
use futures::future::{BoxFuture, FutureExt};
use serde_json::Value;
use tokio_util::sync::CancellationToken;
use tracing::{Instrument as _, Span};

use crate::bus::EventSender;
use crate::checkpoint::Store;
use crate::clock;
use crate::failpoint::{self, Point};
use crate::graph::{
    Context, NodeError, NodeLocation, NodeOutput, NodeRun, Port, Request, Result, RunEvent, State,
    StreamMode, Wants,
};
use crate::ids::{RunId, ThreadId};
use crate::journal::{Claimed, Live, Mode, Recorded, TaskJournal};
use tokio::sync::mpsc;

/// A task that ended: its index, and how.
pub(super) type Ended<S> = (u32, Result<NodeOutput<S>>);

/// Makes the live `tracing` spans in which runs and tasks are worked on.
#[async_trait]
pub trait Spans: Send + Sync {
    /// Returns the span of a run of a thread at the top; [`Span::none`] if spans are off.
    async fn run(&self, thread: ThreadId, run: RunId) -> Span;

    /// Returns the span of a task, made while its run's is entered.
    fn task(&self, place: &NodeLocation) -> Span;
}

pub(super) struct RunContext<S: State> {
    pub store: Arc<dyn Store>,
    pub thread: ThreadId,
    pub run: RunId,
    pub claimed: Claimed,
    pub namespace: Arc<str>,
    pub tenant: Arc<str>,
    pub request: Option<Request>,
    pub stop: CancellationToken,
    pub listeners: Listeners<S>,
    pub spans: Option<Arc<dyn Spans>>,
}

impl<S: State> RunContext<S> {
    pub(super) fn launch(
        &self,
        run: NodeRun<S>,
        mode: Mode,
        recorded: Arc<Recorded>,
    ) -> BoxFuture<'static, Ended<S>> {
        let NodeRun { task, node, entry, input, attempt, after, state, step } = run;
        let place = NodeLocation {
            thread: self.thread,
            run: self.run,
            step,
            task,
            node: node.into(),
            attempt,
            namespace: Arc::clone(&self.namespace),
            tenant: Arc::clone(&self.tenant),
            request: self.request.clone(),
        };
        let stop = self.stop.clone();
        let live = self.listeners.are_open().then(|| {
            let listeners = self.listeners.clone();
            let place = place.clone();
            Arc::new(Listener { listeners, place }) as Arc<dyn Live>
        });
        let journal = TaskJournal::new(
            Arc::clone(&self.store),
            self.claimed,
            place.clone(),
            mode,
            recorded,
            stop.clone(),
            live,
        );
        let span = self.spans.as_ref().map_or_else(Span::none, |spans| spans.task(&place));
        let journal = Arc::new(journal);
        let port = Arc::clone(&journal) as Arc<dyn Port>;
        let context = Context::new(state, input, place, port);
        let running = async move {
            if let Some(delay) = after {
                tokio::select! {
                    // A stop always comes first: the order is not random.
                    biased;
                    () = stop.cancelled() => return (task, Err(NodeError::Cancelled)),
                    () = clock::sleep(delay) => {}
                }
            }
            // The call itself is inside, so that a panic before the first await is caught too.
            let running =
                AssertUnwindSafe(async { entry.node().run(context).await }).catch_unwind();
            let result = match entry.timeout {
                None => running.await,
                Some(limit) => tokio::time::timeout(limit, running).await.unwrap_or_else(|_| {
                    let message = format!("it did not finish within {limit:?}");
                    Ok(Err(NodeError::retryable("timeout", message)))
                }),
            };
            let result = result.unwrap_or_else(|panic| Err(panicked(panic.as_ref())));
            (task, journal.keep_notes().await.and(result))
        };
        running.instrument(span).boxed()
    }
}

/// A panic is one node's failure, not the process's.
fn panicked(panic: &(dyn std::any::Any + Send)) -> NodeError {
    let text = panic
        .downcast_ref::<&str>()
        .copied()
        .or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    NodeError::failed("panic", format!("it panicked: {}", text.unwrap_or("without a message")))
}

/// Receives the payloads that a task publishes, and passes them to the run's listener.
struct Listener<S: State> {
    listeners: Listeners<S>,
    place: NodeLocation,
}

#[async_trait]
impl<S: State> Live for Listener<S> {
    fn publish(&self, mode: StreamMode, payload: Value) {
        let NodeLocation { step, task, .. } = self.place;
        let node = self.place.node.to_string();
        // Live pieces never hold a node up: what a full channel cannot take is dropped.
        self.listeners.try_send(RunEvent::Published { mode, step, task, node, payload });
    }

    fn wants(&self) -> Wants {
        self.listeners.wants()
    }

    async fn nested(&self, namespace: String, modes: Vec<StreamMode>, event: Value) {
        self.listeners.tell(RunEvent::Nested { namespace, modes, event }).await;
    }
}

#[derive(Clone)]
pub(super) struct Listeners<S: State> {
    listener: Option<mpsc::Sender<RunEvent<S>>>,
    wanted: Wants,
    sender: Option<EventSender>,
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
