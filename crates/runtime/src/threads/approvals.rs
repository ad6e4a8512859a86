//! Calls that wait for a person, over all threads.

use super::{ThreadView, Threads};
use crate::{Error, InterruptView};
use perihelion_engine::checkpoint::{self, ThreadFilter, ThreadInfo, ThreadStatus};
use perihelion_engine::ids::InterruptId;
use perihelion_star::question::{Approval, kind};

/// The statuses of threads that can wait for a person: agents other than the one that asks continue.
const WAITING: [ThreadStatus; 3] =
    [ThreadStatus::Interrupted, ThreadStatus::Busy, ThreadStatus::Queued];

#[derive(Clone, Debug)]
pub struct WaitingApproval {
    pub thread: ThreadInfo,
    pub asked: InterruptView,
    /// The subject of the question; empty if it cannot be read.
    pub call: Approval,
}

impl Threads {
    /// Lists the calls that wait for approval, oldest first; threads that cannot be read are left out.
    pub async fn approvals(&self) -> Result<Vec<WaitingApproval>, Error> {
        let mut all = Vec::new();
        for status in WAITING {
            let filter = ThreadFilter { status: Some(status), ..ThreadFilter::default() };
            for thread in self.0.list(&filter).await? {
                let view = match ThreadView::read(self.0.as_ref(), thread.id).await {
                    // It was deleted after it was listed.
                    Err(checkpoint::Error::UnknownThread(_)) => continue,
                    Err(error) if error.is_of_thread() => {
                        tracing::warn!(thread = %thread.id, %error, "cannot read the questions of a thread");
                        continue;
                    }
                    view => view?,
                };
                let calls = view.open.into_iter().filter(|one| one.kind == kind::APPROVAL);
                all.extend(calls.map(|asked| {
                    let call = asked.question().into_approval();
                    WaitingApproval { thread: thread.clone(), asked, call }
                }));
            }
        }
        all.sort_by_key(|one| one.call.asked_at());
        Ok(all)
    }
}

impl WaitingApproval {
    pub fn is(&self, id: InterruptId) -> bool {
        self.asked.id == id.to_string()
    }
}
