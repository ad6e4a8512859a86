//! A span as plain data: no dialect, no SDK, no cap.

use chrono::{DateTime, TimeDelta, Utc};
use serde::{Serialize, Serializer};

use super::{Labels, SpanId, Spent, TraceId};
use perihelion_engine::checkpoint::RunStatus;
use perihelion_engine::ids::ThreadId;
use perihelion_llm::{ChatRequest, ToolCall, Usage};
use perihelion_mcp::Via;

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Span {
    pub trace_id: TraceId,
    pub span_id: SpanId,
    /// None for the root.
    pub parent: Option<SpanId>,
    pub name: String,
    pub start: DateTime<Utc>,
    /// Never before `start`; for an open span, its last known time.
    pub end: DateTime<Utc>,
    pub status: Status,
    /// A resume may still change it: it is sent under a provisional id until it is final.
    pub open: bool,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub links: Vec<Link>,
    pub thread: ThreadId,
    /// The subgraph's thread in which it happened; `None` for the thread itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub within: Option<ThreadId>,
    /// Number of the trace's first run.
    pub run: u32,
    /// The super-step it belongs to; for a root, the newest one. With `within`, or else the thread, it names the checkpoint.
    pub step: u64,
    /// The node of the span; `None` for the root.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub node: Option<String>,
    /// The usage of the model calls in it and below it; `None` without any, and before [`bill`](super::bill).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub spent: Option<Spent>,
    #[serde(flatten)]
    pub about: About,
}

impl Span {
    pub fn duration(&self) -> TimeDelta {
        self.end - self.start
    }

    /// Returns the thread whose step it belongs to: the subgraph's own within a subgraph.
    pub fn checkpoint_thread(&self) -> ThreadId {
        self.within.unwrap_or(self.thread)
    }

    pub fn failed(&self) -> bool {
        matches!(self.status, Status::Error { .. })
    }
}

pub(super) fn last_run(spans: &[Span]) -> Option<&RunOfTrace> {
    match &spans.first()?.about {
        About::Workflow { runs, .. } => runs.last(),
        _ => None,
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "code", rename_all = "snake_case")]
pub enum Status {
    /// No status: an inner step, or not finished.
    Unset,
    Ok,
    /// The message is the program's own and free of content; with content, it may quote a model, an endpoint or a node.
    Error {
        message: String,
    },
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Link {
    pub trace_id: TraceId,
    pub span_id: SpanId,
    /// `previous_run` or `judged`.
    pub kind: &'static str,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RunOfTrace {
    pub number: u32,
    /// `running` where its process died.
    pub status: RunStatus,
    pub started_at: DateTime<Utc>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ToolCount {
    /// `server.tool`.
    pub tool: String,
    pub calls: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, strum::IntoStaticStr)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum Reason {
    /// The graph has only this way.
    Edge,
    Decision,
    /// The supervisor looked for further agents.
    Search,
    NextStage,
    /// The circuit breaker or a budget ended the turn.
    Breaker,
    /// The supervisor's decision could not be used and was fed back.
    Refused,
    Clarification,
    Edit,
    Undecided,
}

impl Reason {
    pub fn as_str(self) -> &'static str {
        self.into()
    }
}

/// The subject of a span. Fields marked *content* were written by people, models or tools.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum About {
    /// The whole: a run and what continued with it.
    Workflow {
        graph: String,
        runs: Vec<RunOfTrace>,
        /// Tokens of all its model calls.
        usage: Usage,
        tools: Vec<ToolCount>,
        /// As in the request; those of the settings are added at the export.
        labels: Labels,
        /// Content.
        #[serde(skip_serializing_if = "Option::is_none")]
        question: Option<String>,
        /// Content.
        #[serde(skip_serializing_if = "Option::is_none")]
        answer: Option<String>,
        /// Content: the open questions at its end.
        #[serde(skip_serializing_if = "Option::is_none")]
        asks: Option<String>,
        /// Content: the answers of people before it began.
        #[serde(rename = "told", skip_serializing_if = "Option::is_none")]
        note: Option<String>,
    },
    /// A node that decides the route, or the route after a node's work.
    Transition {
        from: String,
        to: Vec<String>,
        reason: Reason,
        /// Agents the supervisor named for the whole plan, of which `to` start now.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        candidates: Vec<String>,
        /// Content: the supervisor's reasoning, or the reason for the end of the turn.
        #[serde(skip_serializing_if = "Option::is_none")]
        thought: Option<String>,
    },
    Chat {
        role: String,
        #[serde(skip_serializing_if = "Option::is_none")]
        agent: Option<String>,
        /// As the endpoint named it; `None` without an answer.
        #[serde(skip_serializing_if = "Option::is_none")]
        model: Option<String>,
        /// If the protocol tells it.
        #[serde(skip_serializing_if = "Option::is_none")]
        provider: Option<String>,
        usage: Usage,
        #[serde(skip_serializing_if = "Option::is_none")]
        finish_reason: Option<String>,
        /// Times it was sent, crashes included.
        attempts: u32,
        /// Content: the request; shown with its messages alone.
        #[serde(skip_serializing_if = "Option::is_none", serialize_with = "messages")]
        input: Option<Box<ChatRequest>>,
        /// Content.
        #[serde(skip_serializing_if = "Option::is_none")]
        output: Option<String>,
        /// Content: the calls it asked for.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        calls: Vec<ToolCall>,
    },
    /// An agent's work on one task, or QA's on the answer.
    Agent {
        agent: String,
        /// `APPROVED`, `FIXED`, `REJECTED` or `UNVERIFIED`, once it is known.
        #[serde(skip_serializing_if = "Option::is_none")]
        reflection_status: Option<String>,
        /// Rounds of work, each judged once.
        #[serde(skip_serializing_if = "Option::is_none")]
        attempts: Option<u32>,
        usage: Usage,
        tools: Vec<ToolCount>,
        /// Content.
        #[serde(skip_serializing_if = "Option::is_none")]
        task: Option<String>,
        /// Content.
        #[serde(skip_serializing_if = "Option::is_none")]
        output: Option<String>,
        /// Content.
        #[serde(skip_serializing_if = "Option::is_none")]
        error: Option<String>,
    },
    Stage {
        agent: String,
        stage: String,
        /// Content.
        #[serde(skip_serializing_if = "Option::is_none")]
        error: Option<String>,
    },
    Tool {
        agent: String,
        /// Empty if the call did not get that far.
        server: String,
        tool: String,
        /// The model's id of the call.
        #[serde(skip_serializing_if = "Option::is_none")]
        call_id: Option<String>,
        /// Sent with the call, the same on every attempt; `None` if it was not sent.
        #[serde(skip_serializing_if = "Option::is_none")]
        idempotency_key: Option<String>,
        /// Times it was sent; 0 when it was refused before.
        attempts: u32,
        /// Its connection; `None` before the answer.
        #[serde(skip_serializing_if = "Option::is_none")]
        via: Option<Via>,
        /// Content.
        #[serde(skip_serializing_if = "Option::is_none")]
        arguments: Option<String>,
        /// Content.
        #[serde(skip_serializing_if = "Option::is_none")]
        result: Option<String>,
    },
    Reflection {
        agent: String,
        /// As in [`About::Agent`]; `None` while it is unknown.
        #[serde(skip_serializing_if = "Option::is_none")]
        verdict: Option<String>,
        /// From 1.
        attempt: u32,
        /// Rounds that the settings allow.
        #[serde(skip_serializing_if = "Option::is_none")]
        of: Option<u32>,
        /// Content.
        #[serde(skip_serializing_if = "Option::is_none")]
        feedback: Option<String>,
    },
    /// A question to a person; the wait for the answer is no part of it.
    Question {
        interrupt: String,
        interrupt_kind: String,
        answered: bool,
        /// Content.
        #[serde(skip_serializing_if = "Option::is_none")]
        question: Option<String>,
        /// Content.
        #[serde(skip_serializing_if = "Option::is_none")]
        answer: Option<String>,
    },
}

fn messages<S: Serializer>(input: &Option<Box<ChatRequest>>, to: S) -> Result<S::Ok, S::Error> {
    input.as_ref().map(|request| &request.messages).serialize(to)
}
