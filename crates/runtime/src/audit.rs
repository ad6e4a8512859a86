//! The log of decisions, stored next to the threads.

use perihelion_people::{ApprovalRequest, ApprovalStatus, AuditEntry, People, far};
use serde_json::{Value, json};
use uuid::Uuid;

use super::accounts::open_database;
use super::{Error, Runtime};
use crate::graphs::Ended;
use perihelion_engine::clock;
use perihelion_engine::ids::{InterruptId, ThreadId};
use perihelion_settings::config::Settings;
use perihelion_star::AgentResult;
use perihelion_star::answer::{Action, ApprovalAnswer, Recorded, Word};
use perihelion_star::question::{Approval, Question};

/// The audit log, and the default name for its entries.
pub struct Audit {
    people: People,
    actor: String,
}

impl Audit {
    /// Writes into the database of the settings; nowhere for threads in memory.
    pub async fn open(settings: &Settings, actor: &str) -> Result<Option<Self>, Error> {
        match open_database(settings).await {
            Ok(database) => Ok(Some(Self::new(People::new(database), actor))),
            Err(Error::InMemory) => Ok(None),
            Err(error) => Err(error),
        }
    }

    pub fn new(people: People, actor: &str) -> Self {
        Self { people, actor: actor.to_owned() }
    }
}

pub(super) struct Decided<'a> {
    pub thread: ThreadId,
    pub interrupt: InterruptId,
    pub kind: &'a str,
    pub question: &'a Question,
    pub answer: &'a Recorded,
}

impl Runtime {
    /// Has answers of people written down from now on; the first one given stays.
    pub fn keep_audit(&self, audit: Audit) {
        // A second one would write into the same rows.
        let _ = self.audit.set(audit);
    }

    /// Stores an entry for a recorded answer; a failure is only logged, because the answer is recorded.
    pub(super) async fn note_decided(&self, by: Option<&str>, decided: Decided<'_>) {
        let Some(Audit { people, actor }) = self.audit.get() else { return };
        let tenant = match self.store().info(decided.thread).await {
            Ok(info) => info.tenant,
            Err(error) => {
                return tracing::error!(%error, "a decision is missing from the audit");
            }
        };
        let entry = AuditEntry {
            id: Uuid::now_v7(),
            at: clock::now(),
            tenant,
            actor: by.unwrap_or(actor).to_owned(),
            action: action(&decided),
            subject: decided.interrupt.to_string(),
            thread: Some(decided.thread.0),
            details: details(&decided),
        };
        if let Err(error) = people.note(&entry).await {
            tracing::error!(%error, thread = %decided.thread, "a decision is missing from the audit");
        }
        if let Recorded::Approval(answer) = decided.answer {
            let status = status(answer);
            let by = Some(entry.actor.as_str()).filter(|_| status != ApprovalStatus::TimedOut);
            let Decided { thread, interrupt, question, .. } = decided;
            let agent = question.agent().unwrap_or_default();
            let call = question.clone().into_approval();
            let asked = approval_request(&entry.tenant, thread, interrupt, agent, &call);
            let noted = async {
                // Requests of runs without a service have no row until they are decided.
                people.approval_asked(&asked).await?;
                people.approval_ended(asked.thread, asked.id, status, by, entry.at).await
            };
            if let Err(error) = noted.await {
                tracing::error!(%error, "cannot record the outcome of an approval request");
            }
        }
    }

    /// Stores the executions in a part of the present turn of a thread, which began with the step `since`, each one once.
    pub(super) async fn note_executed(&self, ended: &Ended, since: u64, results: &[AgentResult]) {
        let Some(Audit { people, actor }) = self.audit.get() else { return };
        let thread = ended.thread;
        for result in results {
            // After a return to an earlier step, a task has the ID of the one before.
            let name = format!("agent.executed/{}/{}", since, result.id);
            let entry = AuditEntry {
                id: Uuid::new_v5(&thread.0, name.as_bytes()),
                at: clock::now(),
                tenant: ended.tenant.to_string(),
                actor: actor.clone(),
                action: "agent.executed".to_owned(),
                subject: format!("{}/{}", result.agent, result.id),
                thread: Some(thread.0),
                details: executed(result),
            };
            if let Err(error) = people.note(&entry).await {
                tracing::error!(%error, %thread, "an execution is missing from the audit");
            }
        }
    }
}

/// Returns the row of an open request for approval.
pub fn approval_request(
    tenant: &str,
    thread: ThreadId,
    id: InterruptId,
    agent: &str,
    call: &Approval,
) -> ApprovalRequest {
    let asked_at = call.asked_at().unwrap_or_else(clock::now);
    ApprovalRequest {
        id: id.0,
        tenant: tenant.to_owned(),
        thread: thread.0,
        agent: agent.to_owned(),
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
    }
}

fn status(answer: &ApprovalAnswer) -> ApprovalStatus {
    if answer.timeout {
        return ApprovalStatus::TimedOut;
    }
    match answer.decision {
        Word::Approve => ApprovalStatus::Approved,
        Word::Deny => ApprovalStatus::Denied,
    }
}

fn action(decided: &Decided<'_>) -> String {
    let done = match decided.answer {
        Recorded::Approval(answer) => status(answer).as_str(),
        Recorded::Elicitation(answer) => match answer.action {
            Action::Accept => "accepted",
            Action::Decline => "declined",
        },
        Recorded::Outcome(_) | Recorded::Other(_) => "answered",
    };
    format!("{}.{done}", decided.kind)
}

/// Returns how an execution ended, without its content, which can contain secrets.
fn executed(result: &AgentResult) -> Value {
    json!({
        "agent": result.agent,
        "task": result.id,
        "status": result.status,
        "error": result.error.as_ref().map(|error| error.kind),
        "reflection": result.reflection,
        "attempts": result.attempts,
        "tools": result.tools.iter().map(|call| &call.tool).collect::<Vec<_>>(),
        "usage": result.usage,
        "latency_ms": result.latency_ms,
    })
}

/// Returns the call of the decision, without its arguments, which can contain secrets.
fn details(decided: &Decided<'_>) -> Value {
    let [server, tool, sha256]: [&str; 3] = match decided.question {
        Question::Approval(asked) => [&asked.server, &asked.tool, &asked.call_sha256],
        Question::Elicitation(asked) => [&asked.server, &asked.tool, ""],
        Question::OutcomeUnknown(asked) => ["", &asked.tool, ""],
        Question::Clarification(_) | Question::Other(_) => [""; 3],
    };
    let (reason, edited) = match decided.answer {
        Recorded::Approval(answer) => (answer.reason.as_deref(), answer.arguments.is_some()),
        Recorded::Elicitation(answer) => (answer.reason.as_deref(), false),
        Recorded::Outcome(_) | Recorded::Other(_) => (None, false),
    };
    json!({
        "agent": decided.question.agent(),
        "server": named(server),
        "tool": named(tool),
        "call_sha256": named(sha256),
        "reason": reason,
        "edited": edited,
    })
}

fn named(text: &str) -> Option<&str> {
    Some(text).filter(|text| !text.is_empty())
}
