//! What a thread tells while a run of it has not begun.

use std::time::Duration;

use futures::StreamExt as _;
use uuid::Uuid;

use super::{Error, Service};
use perihelion_engine::bus::{CallReceiver, Notice, Subscription};
use perihelion_engine::checkpoint;
use perihelion_engine::clock;
use perihelion_engine::ids::{RunId, ThreadId};

/// How long it is until the run is looked at of which nobody tells: another process on SQLite may have ended it.
const LOOK_EVERY: Duration = Duration::from_secs(2);

/// Waits for a run to begin.
pub(super) struct PendingRun {
    log: Subscription,
    /// Calls when the thread changed and told nothing.
    calls: CallReceiver<ThreadId, Notice>,
    /// The run of the engine that told the newest event.
    teller: Option<RunId>,
}

impl PendingRun {
    /// Begins to hear, so that no beginning is missed that is looked for after it; none: there is no such thread.
    pub async fn open(service: &Service, thread: ThreadId) -> Result<Option<Self>, Error> {
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

    /// Waits until the run may have begun or ended: until somebody else than before tells of its thread, or it is called.
    ///
    /// Returns whether the thread is still heard. It may be dropped at any moment, and loses nothing by that.
    pub async fn wait(&mut self, ended: &mut CallReceiver<Uuid>) -> bool {
        loop {
            tokio::select! {
                reported = self.log.next() => match reported {
                    Some(Ok(event)) if self.teller.replace(event.run) == Some(event.run) => {}
                    reported => return matches!(reported, Some(Ok(_))),
                },
                notice = self.calls.called() => if matches!(notice, Notice::Look) {
                    return true;
                },
                () = ended.called() => return true,
                () = clock::sleep(LOOK_EVERY) => return true,
            }
        }
    }
}
