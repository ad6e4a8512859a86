//! Requests for approval beside their threads: a row each, and an end for those that nobody decides on.

use std::sync::atomic::Ordering;

use chrono::TimeDelta;
use perihelion_people::{ApprovalRequest, ApprovalStatus, far};
use uuid::Uuid;

use super::answering::is_closed;
use super::{Error, Service};
use perihelion_engine::checkpoint;
use perihelion_engine::clock;
use perihelion_engine::ids::{InterruptId, ThreadId};
use perihelion_runtime::{self as runtime, Answer};
use perihelion_star::question::kind;

/// Requests of one look.
const PAGE: u32 = 64;

/// Requests that are looked at when a process begins.
const STALE: u32 = 10_000;

/// How long a request that is no longer asked may be pending: another process is about to note what became of it.
const SETTLING: TimeDelta = TimeDelta::seconds(60);

impl Service {
    /// Notes the requests for approval that a thread waits for where its run has ended, and which it does not any more.
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

    /// Lists the requests of the tenant, newest first; what is not asked any more is noted before it is shown.
    ///
    /// # Errors
    /// [`Error::People`].
    pub async fn approvals(&self, limit: Option<u32>) -> Result<Vec<ApprovalRequest>, Error> {
        let all = self.people().approvals(self.tenant(), limit).await?;
        let pending: Vec<ApprovalRequest> =
            all.iter().filter(|one| one.status == ApprovalStatus::Pending).cloned().collect();
        if pending.is_empty() || !self.parts.are_stale_expired.load(Ordering::Acquire) {
            return Ok(all);
        }
        self.note_withdrawn(&pending).await?;
        Ok(self.people().approvals(self.tenant(), limit).await?)
    }

    /// Marks those of these requests as withdrawn that their threads do not ask any more.
    async fn note_withdrawn(&self, pending: &[ApprovalRequest]) -> Result<(), Error> {
        for one in pending {
            if !self.is_asked(one).await {
                let status = ApprovalStatus::Withdrawn;
                self.people().approval_ended(one.id, status, None, clock::now()).await?;
            }
        }
        Ok(())
    }

    async fn note_open(&self, thread: ThreadId) -> Result<(), Error> {
        let open = self.runtime().threads().view(thread).await?.open;
        for one in open.iter().filter(|one| one.kind == kind::APPROVAL) {
            let Ok(InterruptId(id)) = one.id.parse() else { continue };
            let call = one.question().into_approval();
            let asked_at = call.asked_at().unwrap_or_else(clock::now);
            let asked = ApprovalRequest {
                id,
                tenant: self.tenant().to_owned(),
                thread: thread.0,
                agent: one.agent.clone(),
                tool: call.name(),
                status: ApprovalStatus::Pending,
                asked_at,
                expires_at: if call.expires_at.is_empty() {
                    // A graph of the program's own asks without an end.
                    far()
                } else {
                    call.expires_at().unwrap_or(asked_at)
                },
                decided_at: None,
                decided_by: None,
            };
            self.people().approval_asked(&asked).await?;
        }
        Ok(())
    }

    /// Denies the requests that ran out, and continues with their threads.
    pub(super) async fn time_out(&self) -> Result<(), Error> {
        let now = clock::now();
        for one in self.people().approvals_due(now, PAGE).await? {
            if !self.drives(&one.tenant) {
                continue;
            }
            let thread = ThreadId(one.thread);
            let id = InterruptId(one.id);
            let service = self.driving_for(&one.tenant);
            if let Err(Error::UserDisabled(_)) = service.check_enabled(thread).await {
                // Nothing continues with it, a denial neither.
                self.expire(one.id).await?;
                continue;
            }
            match service.accept_answer(thread, id, Answer::TimedOut).await {
                Ok(_) => {}
                Err(error) if is_closed(&error) => {
                    if one.expires_at + SETTLING < now {
                        self.expire(one.id).await?;
                    }
                }
                Err(error) => {
                    tracing::warn!(%error, %thread, "could not expire an approval request")
                }
            }
        }
        Ok(())
    }

    /// Marks pending requests as expired that are not asked any more: their threads continued without this service.
    pub(super) async fn expire_stale(&self) -> Result<(), Error> {
        let settled = clock::now() - SETTLING;
        for one in self.people().approvals_due(far(), STALE).await? {
            if !self.drives(&one.tenant) || one.asked_at > settled {
                continue;
            }
            if !self.is_asked(&one).await {
                self.expire(one.id).await?;
            }
        }
        Ok(())
    }

    /// Returns whether a thread waits for this decision; one that cannot be read may.
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

    async fn expire(&self, id: Uuid) -> Result<(), Error> {
        let status = ApprovalStatus::Expired;
        self.people().approval_ended(id, status, None, clock::now()).await?;
        Ok(())
    }
}
