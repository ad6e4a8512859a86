//! Requests for approval, stored next to their threads: one row each, and an end for expired ones.

use std::sync::atomic::Ordering;

use chrono::TimeDelta;
use perihelion_people::{ApprovalRequest, ApprovalStatus, far};
use uuid::Uuid;

use super::answering::is_closed;
use super::monitor::{PAGE, Place};
use super::{Error, Result, Service};
use perihelion_engine::checkpoint;
use perihelion_engine::clock;
use perihelion_engine::ids::{InterruptId, ThreadId};
use perihelion_runtime::{self as runtime, Answer, approval_request};
use perihelion_star::question::kind;

/// Requests that are looked at when a process begins.
const STALE: u32 = 10_000;

/// How long a request that is no longer asked may be pending: another process is about to note what became of it.
const SETTLING: TimeDelta = TimeDelta::seconds(60);

impl Service {
    /// Stores the requests for approval for which a thread waits after its run, and closes the others.
    pub(super) async fn note_asked(&self, thread: ThreadId, waits: bool) {
        let noted = async {
            if waits {
                self.note_open(thread).await?;
            }
            let pending = self.people().approvals_pending(self.tenant(), thread.0).await?;
            self.note_withdrawn(&pending).await
        };
        if let Err(error) = noted.await {
            tracing::error!(%error, %thread, "could not store the status of an approval request");
        }
    }

    /// Lists the requests of the tenant or of one of its threads, newest first. Withdrawn ones are marked first.
    ///
    /// # Errors
    /// [`Error::People`].
    pub async fn approvals(
        &self,
        thread: Option<Uuid>,
        limit: Option<u32>,
    ) -> Result<Vec<ApprovalRequest>> {
        let all = self.people().approvals(self.tenant(), thread, limit).await?;
        let pending: Vec<ApprovalRequest> =
            all.iter().filter(|one| one.status == ApprovalStatus::Pending).cloned().collect();
        if pending.is_empty() || !self.parts.are_stale_expired.load(Ordering::Acquire) {
            return Ok(all);
        }
        self.note_withdrawn(&pending).await?;
        Ok(self.people().approvals(self.tenant(), thread, limit).await?)
    }

    /// Marks those requests as withdrawn for which their threads no longer wait.
    async fn note_withdrawn(&self, pending: &[ApprovalRequest]) -> Result<()> {
        for one in pending {
            if !self.is_asked(one).await {
                self.mark(one, ApprovalStatus::Withdrawn).await?;
            }
        }
        Ok(())
    }

    async fn note_open(&self, thread: ThreadId) -> Result<()> {
        let open = self.runtime().threads().view(thread).await?.open;
        for one in open.iter().filter(|one| one.kind == kind::APPROVAL) {
            let Ok(id) = one.id.parse() else { continue };
            let call = one.question().into_approval();
            let asked = approval_request(self.tenant(), thread, id, &one.agent, &call);
            self.people().approval_asked(&asked).await?;
        }
        Ok(())
    }

    /// Denies the requests that ran out, and continues with their threads.
    pub(super) async fn time_out(&self, place: &mut Place) -> Result<()> {
        let now = clock::now();
        let due = self.people().approvals_due(now, PAGE, place.passed).await?;
        let count = due.len();
        let mut left = 0;
        for one in due {
            if !self.drives(&one.tenant) {
                left += 1;
                continue;
            }
            let thread = ThreadId(one.thread);
            let id = InterruptId(one.id);
            let service = self.driving_for(&one.tenant);
            if let Err(Error::UserDisabled(_)) = service.check_enabled(thread).await {
                // Nothing continues with it, a denial neither.
                self.mark(&one, ApprovalStatus::Expired).await?;
                continue;
            }
            let Err(error) = service.accept_answer(thread, id, Answer::TimedOut).await else {
                continue;
            };
            // An answer to it may wait for its turn.
            let is_taken = is_closed(&error) || matches!(error, Error::Busy);
            let is_late = one.expires_at + SETTLING < now && !error.is_passing();
            if is_late && !(is_taken && self.is_asked(&one).await) {
                // It is not asked any more, or no process can deny it, such as one of a removed graph.
                tracing::warn!(%error, %thread, "an approval request expired without a denial");
                self.mark(&one, ApprovalStatus::Expired).await?;
                continue;
            }
            left += 1;
            if !is_taken {
                tracing::warn!(%error, %thread, "could not expire an approval request");
            }
        }
        place.move_on(count, left);
        Ok(())
    }

    /// Marks pending requests as expired if their threads continued without this service.
    pub(super) async fn expire_stale(&self) -> Result<()> {
        let settled = clock::now() - SETTLING;
        for one in self.people().approvals_due(far(), STALE, 0).await? {
            if self.parts.stop.is_cancelled() {
                return Ok(());
            }
            if !self.drives(&one.tenant) || one.asked_at > settled {
                continue;
            }
            if !self.is_asked(&one).await {
                self.mark(&one, ApprovalStatus::Expired).await?;
            }
        }
        Ok(())
    }

    /// Returns whether a thread waits for this decision; true if it cannot be read.
    async fn is_asked(&self, request: &ApprovalRequest) -> bool {
        let id = InterruptId(request.id).to_string();
        let thread = ThreadId(request.thread);
        match self.runtime().threads().view(thread).await {
            Ok(view) => view.open.iter().any(|open| open.id == id),
            Err(runtime::Error::Store(checkpoint::Error::UnknownThread(_))) => false,
            Err(error) => {
                tracing::debug!(%error, %thread, "could not read a thread with an approval request");
                true
            }
        }
    }

    async fn mark(&self, one: &ApprovalRequest, status: ApprovalStatus) -> Result<()> {
        self.people().approval_ended(one.thread, one.id, status, None, clock::now()).await?;
        Ok(())
    }
}
