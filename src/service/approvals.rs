//! Requests for approval beside their threads: a row each, and an end for those that nobody decides on.

use chrono::{DateTime, TimeDelta, Utc};
use perihelion_people::{ApprovalRequest, ApprovalStatus, far};
use serde_json::{Value, json};
use uuid::Uuid;

use super::kept::{Multitask, RunFilter};
use super::{Accept, Asked, Error, Order, Service};
use crate::checkpoint;
use crate::clock;
use crate::ids::{InterruptId, ThreadId};
use crate::runtime::{self, Answer, AnswerError, ThreadView};
use crate::swarm::GRAPH;

/// Requests of one look.
const PAGE: u32 = 64;

/// Requests that are looked at when a process begins.
const STALE: u32 = 10_000;

/// How long a request that is no longer asked may be pending: another process is about to note what became of it.
const SETTLING: TimeDelta = TimeDelta::seconds(60);

impl Service {
    /// Notes the requests for approval that a thread waits for.
    pub(super) async fn note_asked(&self, thread: ThreadId) {
        if let Err(error) = self.try_note_asked(thread).await {
            tracing::error!(%error, %thread, "a request for approval has no row of its own");
        }
    }

    async fn try_note_asked(&self, thread: ThreadId) -> Result<(), Error> {
        let open = ThreadView::read(self.runtime().store().as_ref(), thread).await?.open;
        for one in open.iter().filter(|one| one.kind == "approval") {
            let text = |key: &str| one.payload.get(key).and_then(Value::as_str).unwrap_or_default();
            let time = |key: &str| text(key).parse::<DateTime<Utc>>().ok();
            let Ok(InterruptId(id)) = one.id.parse() else { continue };
            let asked_at = time("asked_at").unwrap_or_else(clock::now);
            let asked = ApprovalRequest {
                id,
                tenant: self.tenant().to_owned(),
                thread: thread.0,
                agent: one.agent.clone(),
                tool: format!("{}.{}", text("server"), text("tool")),
                status: ApprovalStatus::Pending,
                asked_at,
                expires_at: time("expires_at").unwrap_or(asked_at),
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
            let id = Some(InterruptId(one.id));
            match self.runtime().answer_by(Some("timeout"), thread, id, Answer::TimedOut).await {
                Ok(()) => {
                    self.driving_for(&one.tenant).go_on_with(thread, one.id).await?;
                }
                Err(error) if is_closed(&error) => {
                    if one.expires_at + SETTLING < now {
                        self.expire(one.id).await?;
                    }
                }
                Err(error) => tracing::warn!(%error, %thread, "a request could not be timed out"),
            }
        }
        Ok(())
    }

    /// Marks pending requests as expired that are not asked any more: their threads went on without this service.
    pub(super) async fn expire_stale(&self) -> Result<(), Error> {
        let settled = clock::now() - SETTLING;
        let store = self.runtime().store().as_ref();
        for one in self.people().approvals_due(far(), STALE).await? {
            if !self.drives(&one.tenant) || one.asked_at > settled {
                continue;
            }
            let id = InterruptId(one.id).to_string();
            let is_asked = match ThreadView::read(store, ThreadId(one.thread)).await {
                Ok(view) => view.open.iter().any(|open| open.id == id),
                Err(error) => {
                    tracing::debug!(%error, "a thread with a request for approval cannot be read");
                    true
                }
            };
            if !is_asked {
                self.expire(one.id).await?;
            }
        }
        Ok(())
    }

    async fn expire(&self, id: Uuid) -> Result<(), Error> {
        let status = ApprovalStatus::Expired;
        self.people().approval_ended(id, status, None, clock::now()).await?;
        Ok(())
    }

    /// Resumes a thread of which a question was answered.
    async fn go_on_with(&self, thread: ThreadId, answered: Uuid) -> Result<(), Error> {
        let last = RunFilter { status: None, limit: 1, offset: 0 };
        let Some(last) = self.kept().runs(thread.0, &last).await?.pop() else { return Ok(()) };
        let accept = Accept {
            thread,
            assistant: last.assistant,
            order: Order::new(Asked::GoOn),
            shown: json!({ "input": null, "command": { "resume": answered } }),
            metadata: json!({ "created_by": "system", "graph_id": GRAPH }),
            multitask: Multitask::Enqueue,
            temporary: false,
            due_at: None,
            deliveries: Vec::new(),
        };
        self.accept(accept).await.map(|_| ())
    }
}

/// Tells whether an answer came to nothing because the question is not asked any more.
fn is_closed(error: &runtime::Error) -> bool {
    use checkpoint::Error::{InterruptClosed, UnknownThread};
    match error {
        runtime::Error::Store(InterruptClosed(_) | UnknownThread(_)) => true,
        runtime::Error::Answer(error) => {
            matches!(error, AnswerError::NothingOpen(_) | AnswerError::NotOpen { .. })
        }
        runtime::Error::Run(crate::runner::Error::Store(error)) => {
            matches!(error, InterruptClosed(_) | UnknownThread(_))
        }
        _ => false,
    }
}
