//! Tells a run on the bus, in a task of its own.

use std::sync::Arc;
use std::time::Duration;

use tokio_util::task::AbortOnDropHandle;
use tracing::Instrument as _;

use super::Bus;
use super::event_queue::{Ending, EventQueue, EventSender};
use super::log_writer::EventLogWriter;
use crate::checkpoint::{Error, Fence};
use crate::clock;
use crate::graph::{EndStatus, State};
use crate::ids::RunId;

/// How long events are collected before they are written: often enough for an eye that reads along.
const BATCH_WINDOW: Duration = Duration::from_millis(75);

/// How long it is until a write that failed is tried again.
const PATIENCE: Duration = Duration::from_millis(200);

/// How long the end of a run waits for its last events; the next run tells what is missing then.
const FAREWELL: Duration = Duration::from_secs(5);

/// What a publisher must know of a claimed thread.
#[derive(Clone, Copy, Debug)]
pub struct RunToPublish {
    pub fence: Fence,
    pub run: RunId,
    /// Newest committed step.
    pub head: u64,
    /// Whether the run continues with what an earlier one began, without a new input.
    pub continues: bool,
}

/// Tells one run; dropping it ends it where it is, as the end of the process would.
pub struct Publisher {
    event_queue: Arc<EventQueue>,
    task: AbortOnDropHandle<()>,
}

impl Publisher {
    /// Begins to tell a run.
    pub fn begin<S: State>(bus: Arc<dyn Bus>, published: RunToPublish) -> Self {
        let event_queue = Arc::<EventQueue>::default();
        let working = work::<S>(bus, published, Arc::clone(&event_queue));
        Self { event_queue, task: AbortOnDropHandle::new(tokio::spawn(working.in_current_span())) }
    }

    /// Returns where the run leaves its events.
    pub fn sender(&self) -> EventSender {
        EventSender(Arc::clone(&self.event_queue))
    }

    /// Tells the run's end after everything before it, and waits for that within a bound.
    ///
    /// `head` is the newest committed step, where it is known. To be called while the thread is still held.
    pub async fn end(self, head: Option<u64>, status: EndStatus, error: Option<String>) {
        self.event_queue.end(Ending { head, status, error });
        if tokio::time::timeout(FAREWELL, self.task).await.is_err() {
            tracing::warn!("the run's last events could not be told; the next run tells its steps");
        }
    }
}

/// Writes what is left in the queue until the run has ended or lost its thread.
async fn work<S: State>(bus: Arc<dyn Bus>, published: RunToPublish, event_queue: Arc<EventQueue>) {
    let Some(()) = write_to_end::<S>(&bus, published, &event_queue).await else { return };
    match event_queue.dropped() {
        0 => {}
        dropped => {
            tracing::warn!(dropped, thread = %published.fence.thread, "events were left out")
        }
    }
    bus.prune().await;
}

/// Writes until the run has ended; none where the thread is another process's now, or no more.
async fn write_to_end<S: State>(
    bus: &Arc<dyn Bus>,
    published: RunToPublish,
    event_queue: &EventQueue,
) -> Option<()> {
    let mut log_writer = loop {
        match EventLogWriter::open::<S>(bus, published).await {
            Ok(log_writer) => break log_writer,
            Err(error) => wait_after(&error).await?,
        }
    };
    loop {
        // First of all, what the runs before it left untold.
        while let Err(error) = log_writer.write().await {
            wait_after(&error).await?;
        }
        event_queue.filled().await;
        tokio::select! {
            () = event_queue.ended() => {}
            () = clock::sleep(BATCH_WINDOW) => {}
        }
        let (waiting, ending) = event_queue.take();
        while let Err(error) = log_writer.line_up::<S>(&waiting).await {
            wait_after(&error).await?;
        }
        let Some(ending) = ending else { continue };
        while let Err(error) = log_writer.line_up_end::<S>(&ending).await {
            wait_after(&error).await?;
        }
        while let Err(error) = log_writer.write().await {
            wait_after(&error).await?;
        }
        return Some(());
    }
}

/// Waits until a write that failed may be tried again; none where that is in vain.
async fn wait_after(error: &Error) -> Option<()> {
    if is_over(error) {
        return None;
    }
    clock::sleep(PATIENCE).await;
    Some(())
}

/// Returns whether trying again is in vain: the thread is another process's now, or no more.
fn is_over(error: &Error) -> bool {
    let is_over = matches!(
        error,
        Error::Fenced { .. } | Error::UnknownThread(_) | Error::EventGap { .. } | Error::Damaged(_)
    );
    tracing::debug!(%error, is_over, "events could not be told");
    is_over
}
