//! Waits for a run that has not begun.

use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt as _;
use uuid::Uuid;

use super::{Finished, Result, Service};
use perihelion_engine::bus::{CallReceiver, Notice, Subscription};
use perihelion_engine::ids::{RunId, ThreadId};
use perihelion_engine::{checkpoint, clock};

/// How often the run's row is polled without a call: another process may have ended it.
pub(super) const LOOK_EVERY: Duration = Duration::from_secs(2);

/// Calls of this process when a run has ended.
pub(super) type EndCalls = CallReceiver<Uuid, Option<Arc<Finished>>>;

/// The events of a thread while one of its runs has not begun.
pub(super) struct PendingRun {
    log: Subscription,
    /// Wakes on changes of the thread that have no event.
    calls: CallReceiver<ThreadId, Notice>,
    /// The engine's run of the newest event.
    teller: Option<RunId>,
}

impl PendingRun {
    /// Subscribes, so that a later check misses no start; `None` for an unknown thread.
    pub(super) async fn open(service: &Service, thread: ThreadId) -> Result<Option<Self>> {
        let runtime = service.runtime();
        let calls = runtime.bus().calls(thread);
        match runtime.store().event_position(thread).await {
            Ok(mark) => {
                let log = runtime.bus().subscribe(thread, mark.last);
                Ok(Some(Self { log, calls, teller: None }))
            }
            Err(checkpoint::Error::UnknownThread(_)) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Waits until the run may have begun or ended: until another run publishes events of its thread, or a call
    /// arrives.
    ///
    /// Returns whether the subscription is active. It can be dropped at any time without losing events.
    pub(super) async fn wait(&mut self, ended: &mut EndCalls) -> bool {
        loop {
            tokio::select! {
                reported = self.log.next() => match reported {
                    Some(Ok(event)) if self.teller.replace(event.run) == Some(event.run) => {}
                    reported => return matches!(reported, Some(Ok(_))),
                },
                notice = self.calls.called() => if matches!(notice, Notice::Look) {
                    return true;
                },
                _ = ended.called() => return true,
                () = clock::sleep(LOOK_EVERY) => return true,
            }
        }
    }
}
