//! Tells a run on the bus, in a task of its own.

use std::sync::Arc;
use std::time::Duration;

use tokio_util::task::AbortOnDropHandle;
use tracing::Instrument as _;

use super::Bus;
use super::desk::{Desk, Ear, Ending};
use super::scribe::Scribe;
use crate::checkpoint::Error;
use crate::clock;
use crate::graph::State;
use crate::ids::{RunId, ThreadId};

/// How long events are gathered before they are written: often enough for an eye that reads along.
const GATHER: Duration = Duration::from_millis(75);

/// How long it is until a write that failed is tried again.
const PATIENCE: Duration = Duration::from_millis(200);

/// How long the end of a run waits for its last events; the next run tells what is missing then.
const FAREWELL: Duration = Duration::from_secs(5);

/// What a publisher must know of a claimed thread.
#[derive(Clone, Copy, Debug)]
pub struct Telling {
    pub thread: ThreadId,
    /// Fencing token from the claim.
    pub fence: u64,
    pub run: RunId,
    /// Newest committed step.
    pub head: u64,
    /// Whether the run goes on with what an earlier one began, without a new input.
    pub goes_on: bool,
}

/// Tells one run; dropping it ends it where it is, as the end of the process would.
pub struct Publisher {
    desk: Arc<Desk>,
    task: AbortOnDropHandle<()>,
}

impl Publisher {
    /// Begins to tell a run.
    pub fn begin<S: State>(bus: Arc<dyn Bus>, telling: Telling) -> Self {
        let desk = Arc::<Desk>::default();
        let working = work::<S>(bus, telling, Arc::clone(&desk));
        Self { desk, task: AbortOnDropHandle::new(tokio::spawn(working.in_current_span())) }
    }

    /// Returns where the run leaves its events.
    pub fn ear(&self) -> Ear {
        Ear(Arc::clone(&self.desk))
    }

    /// Tells the run's end after everything before it, and waits for that within a bound.
    ///
    /// `head` is the newest committed step, where it is known. To be called while the thread is still held.
    pub async fn end(self, head: Option<u64>, status: &'static str, error: Option<String>) {
        self.desk.end(Ending { head, status, error });
        if tokio::time::timeout(FAREWELL, self.task).await.is_err() {
            tracing::warn!("the run's last events could not be told; the next run tells its steps");
        }
    }
}

/// Writes what is left at the desk until the run has ended or lost its thread.
async fn work<S: State>(bus: Arc<dyn Bus>, telling: Telling, desk: Arc<Desk>) {
    let mut scribe = loop {
        match Scribe::open::<S>(&bus, telling).await {
            Ok(scribe) => break scribe,
            Err(error) if is_over(&error) => return,
            Err(_) => clock::sleep(PATIENCE).await,
        }
    };
    loop {
        // First of all, what the runs before it left untold.
        while let Err(error) = scribe.write().await {
            if is_over(&error) {
                return;
            }
            clock::sleep(PATIENCE).await;
        }
        desk.filled().await;
        tokio::select! {
            () = desk.ended() => {}
            () = clock::sleep(GATHER) => {}
        }
        let (waiting, ending) = desk.take();
        while let Err(error) = scribe.line_up::<S>(&waiting).await {
            if is_over(&error) {
                return;
            }
            clock::sleep(PATIENCE).await;
        }
        let Some(ending) = ending else { continue };
        while let Err(error) = scribe.line_up_end::<S>(&ending).await {
            if is_over(&error) {
                return;
            }
            clock::sleep(PATIENCE).await;
        }
        while let Err(error) = scribe.write().await {
            if is_over(&error) {
                return;
            }
            clock::sleep(PATIENCE).await;
        }
        break;
    }
    match desk.dropped() {
        0 => {}
        dropped => tracing::warn!(dropped, thread = %telling.thread, "events were left out"),
    }
    bus.prune().await;
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
