//! Streams the events of a run to the program that drives it.
//!
//! Enter at [`Runner::stream`]. Invariant: events arrive in the order in which the run reports them, all of them before the
//! stream ends. Deliberately absent: subscribers in other processes, which read the [`bus`](crate::bus).

use std::pin::Pin;
use std::task::{Context, Poll};

use futures::future::BoxFuture;
use futures::{FutureExt as _, Stream};
use tokio::sync::mpsc;

use super::outcome::{Result, RunOptions, RunOutcome};
use super::run::Runner;
use crate::graph::{RunEvent, State};
use crate::ids::ThreadId;

/// The most events that a stream holds; the run waits for the reader while it is full.
const CAPACITY: usize = 64;

/// The events of a run, followed by its outcome.
///
/// The run advances while the stream is polled. A stream that is dropped early leaves the thread as a crash would:
/// [`Runner::resume`] continues it at once.
#[must_use = "the run advances only while its stream is polled"]
pub struct RunStream<S: State> {
    run: BoxFuture<'static, Result<RunOutcome<S>>>,
    events: mpsc::Receiver<RunEvent<S>>,
    outcome: Option<Result<RunOutcome<S>>>,
}

impl<S: State> std::fmt::Debug for RunStream<S> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RunStream").field("outcome", &self.outcome).finish_non_exhaustive()
    }
}

impl<S: State> Runner<S> {
    /// Streams a run: starts the thread with an input, or resumes it if the input is `None`.
    ///
    /// [`RunOptions::wants`] selects the events, and [`RunOptions::events`] is replaced. The stream holds at most 64 events.
    /// While it is full, the run waits, and live text that a model sends is discarded. [`RunStream::outcome`] returns the
    /// errors of [`Runner::start`] and [`Runner::resume`].
    pub fn stream(
        &self,
        thread: ThreadId,
        input: Option<S::Update>,
        mut options: RunOptions<S>,
    ) -> RunStream<S> {
        let (sender, events) = mpsc::channel(CAPACITY);
        options.events = Some(sender);
        let runner = self.clone();
        let run = async move {
            match input {
                Some(input) => runner.start(thread, input, options).await,
                None => runner.resume(thread, options).await,
            }
        };
        RunStream { run: run.boxed(), events, outcome: None }
    }
}

impl<S: State> RunStream<S> {
    /// Discards the remaining events, drives the run to its end and returns its outcome.
    ///
    /// # Errors
    /// As [`Runner::start`] and [`Runner::resume`].
    pub async fn outcome(self) -> Result<RunOutcome<S>> {
        let Self { run, events, outcome } = self;
        drop(events);
        match outcome {
            Some(outcome) => outcome,
            None => run.await,
        }
    }
}

impl<S: State> Stream for RunStream<S> {
    type Item = RunEvent<S>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<RunEvent<S>>> {
        let this = &mut *self;
        if this.outcome.is_none()
            && let Poll::Ready(outcome) = this.run.poll_unpin(context)
        {
            this.outcome = Some(outcome);
        }
        match this.events.poll_recv(context) {
            // The outcome is the end, even if a task of the run still has a sender.
            Poll::Pending if this.outcome.is_some() => Poll::Ready(None),
            event => event,
        }
    }
}
