//! Calls of one server's tools by one agent for one task: gated, approved, sent once, tainted, recorded.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::{Map, Value};

use crate::approval::{self, Decision, Gated};
use crate::{
    AgentEvent, CallRecord, Job, Preferences, Result, Sources, Table, addresses::Shown,
    artifacts::Artifacts, breaker, seen, window::clip,
};
use perihelion_engine::clock;
use perihelion_engine::graph::TaskContext;
use perihelion_mcp::{CallPolicy, ToolDefinition, ToolOutcome};

/// Characters of a result that a listener is shown.
const PREVIEW_CHARS: usize = 200;

/// The result of a call; an error is data for the agent.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ToolReply {
    pub text: String,
    /// The result as JSON, if the server returned it.
    pub structured: Option<Value>,
    pub is_error: bool,
    /// A word for the agent from the person who approved the call.
    pub instruction: Option<String>,
    pub edited: Option<Map<String, Value>>,
    /// `server.tool` of the data of an artifact, if a piece of one was read.
    pub(super) source: Option<String>,
}

impl ToolReply {
    pub(super) fn of_text(text: String, is_error: bool) -> Self {
        Self { text, is_error, ..Self::default() }
    }

    pub(super) fn of_outcome(outcome: ToolOutcome) -> Self {
        let structured = outcome.structured;
        Self { structured, ..Self::of_text(outcome.text, outcome.is_error) }
    }

    /// Makes the reply to a call that could not be made or failed.
    pub(super) fn problem(text: String) -> Self {
        Self::of_text(text, true)
    }
}

pub(super) struct CallLog {
    pub calls: Vec<CallRecord>,
    pub artifacts: Artifacts,
    pub tainted_by: Sources,
    /// The last table that a tool gave.
    pub table: Option<Table>,
}

impl CallLog {
    /// Notes the end of a call: the event for listeners, and the source of its text.
    pub(super) fn note(
        &mut self,
        caller: &Caller<'_>,
        (tool, call_id): (&str, String),
        reply: &ToolReply,
        is_open: bool,
    ) {
        AgentEvent::ToolResult {
            agent: caller.job.agent.clone(),
            tool: tool.to_owned(),
            is_error: reply.is_error,
            preview: clip(&reply.text, PREVIEW_CHARS),
            call_id: Some(call_id),
        }
        .publish(caller.ctx);
        if is_open {
            self.tainted_by.insert(tool.to_owned());
        }
        let structured = reply.structured.as_ref().filter(|_| !reply.is_error);
        self.table = structured.and_then(Table::read).or(self.table.take());
    }
}

#[derive(Clone, Copy)]
pub(super) struct Caller<'a> {
    /// Of the agent's node, or of a stage below it.
    pub ctx: &'a TaskContext,
    pub job: &'a Job,
    /// Entries of the request's context for the server alone.
    pub beside: Option<&'a BTreeMap<String, String>>,
}

/// One call that may need a person's decision.
pub(super) struct PendingCall<'a> {
    tool: &'a ToolDefinition,
    arguments: &'a Value,
    /// An address among the arguments that needs an approval: no text of people or tools contains it.
    unknown: Option<String>,
}

impl Caller<'_> {
    /// Returns the facts that a person needs before a call that changes something: the open-world sources that led to
    /// it.
    fn taint_of(&self, tool: &ToolDefinition, tainted_by: &Sources) -> Sources {
        let is_free = tool.read_only || tool.approved_in_advance;
        if self.job.star.limits.asks_about_taint && !is_free {
            tainted_by.clone()
        } else {
            Sources::new()
        }
    }

    /// Prepares a call for a person's decision; addresses in `shown` need none.
    pub(super) async fn pending<'c>(
        &self,
        shown: &Shown<'_>,
        tool: &'c ToolDefinition,
        arguments: &'c Value,
    ) -> Result<PendingCall<'c>> {
        let limits = &self.job.star.limits;
        let is_asked = limits.asks_about_taint && tool.open_world && !tool.approved_in_advance;
        let unknown = match arguments {
            Value::Object(arguments) if is_asked => {
                shown.unknown(self.ctx, tool, arguments).await?
            }
            _ => None,
        };
        Ok(PendingCall { tool, arguments, unknown })
    }

    /// Reads the present policy of the tools: an operator may have made it stricter since the agent began.
    ///
    /// Relaxed policies apply to agents that begin later. `answer` counts the times that the task asked.
    pub(super) async fn call_policies(
        &self,
        tools: impl Iterator<Item = &ToolDefinition>,
        answer: usize,
    ) -> Result<BTreeMap<String, CallPolicy>> {
        let usual: BTreeMap<String, CallPolicy> =
            tools.map(|tool| (tool.name.clone(), tool.call_policy())).collect();
        let now = usual.iter().map(|(tool, call_policy)| {
            let present = self.job.star.tools.call_policy(&self.job.server.name, tool);
            (tool.clone(), present.map_or(*call_policy, |present| call_policy.stricter(present)))
        });
        let name = format!("{} {answer}", seen::GATES);
        self.ctx.observe_unless(&name, &usual, &now.collect()).await
    }

    /// Asks people about all calls that need an approval at once; `None` means that a call needs none.
    ///
    /// Arguments that do not fit the tool's schema are never shown for approval: if there is a decision, they fit.
    /// A call that was asked about stays one, whatever the rules have become since. `answer` is the one of
    /// [`Self::call_policies`].
    pub(super) async fn ask_people(
        &self,
        wanted: &[PendingCall<'_>],
        tainted_by: &Sources,
        answer: usize,
    ) -> Result<Vec<Option<Decision>>> {
        let note = format!("{} {answer}", seen::ASKED);
        let asked: Vec<usize> = self.ctx.noted(&note)?.unwrap_or_default();
        let mut decisions: Vec<Option<Decision>> = vec![None; wanted.len()];
        let mut places = Vec::new();
        let mut gated = Vec::new();
        for (place, PendingCall { tool, arguments, unknown }) in wanted.iter().enumerate() {
            let Value::Object(arguments) = arguments else { continue };
            let tainted_by = self.taint_of(tool, tainted_by);
            let unknown = unknown.clone();
            let is_gated = tool.needs_approval || !tainted_by.is_empty() || unknown.is_some();
            let needs_word = is_gated || asked.contains(&place);
            if needs_word && tool.input_schema.check(&tool.name, arguments).is_ok() {
                let agent = self.job.agent.as_str();
                let server = self.job.server.name.as_str();
                places.push(place);
                let timeout = self.time_for(tool);
                gated.push(Gated { agent, server, tool, arguments, tainted_by, unknown, timeout });
            }
        }
        if gated.is_empty() {
            return Ok(decisions);
        }
        let decided = if self.preferences().skip_approvals {
            approval::skip(self.ctx, &gated)
        } else {
            self.ctx.observe(&note, &places).await?;
            approval::decide(self.ctx, &gated).await?
        };
        for (place, decision) in places.into_iter().zip(decided) {
            decisions[place] = Some(decision);
        }
        Ok(decisions)
    }

    fn preferences(&self) -> &Preferences {
        &self.job.ctx.state().preferences
    }

    /// Waits until the work of the run must end; forever without a limit.
    pub(super) async fn until_late(&self) {
        let state = self.job.ctx.state();
        let now = self.ctx.port().unrecorded_now_micros();
        let began = breaker::began(state, self.job.ctx.place());
        match breaker::time_left(began, self.job.limits().work_time(), now) {
            Some(left) => clock::sleep(left).await,
            None => std::future::pending().await,
        }
    }

    fn time_for(&self, tool: &ToolDefinition) -> Duration {
        let limits = &self.job.star.limits;
        let of_tool = tool.approval_timeout_sec.map(|sec| Duration::from_secs(sec.into()));
        of_tool.unwrap_or(if self.preferences().interactive {
            limits.interactive_approval_timeout.min(limits.approval_timeout)
        } else {
            limits.approval_timeout
        })
    }

    pub(super) fn full_name(&self, tool: &ToolDefinition) -> String {
        format!("{}.{}", self.job.server.name, tool.name)
    }
}
