//! How a stage calls tools: validated, gated, sent once, recorded.

use std::collections::BTreeMap;
use std::sync::atomic::Ordering;

use futures::future::join_all;
use serde_json::Value;

use super::{stage::Stage, state::StageError};
use crate::approval::{self, Decision};
use crate::caller::Caller;
use crate::{
    AgentError, CallRecord, CheckedCitations, ErrorKind, Sources, ToolReply, addresses::Shown,
    check_citations, question, window,
};
use perihelion_engine::graph::State;
use perihelion_mcp::ToolDefinition;
use perihelion_settings::metrics;

/// Characters of a result that are stored as evidence for reflection; the journal has the whole.
const EVIDENCE_CHARS: usize = 6_000;

/// Why a call was not made.
pub const NO_CALLS: &str = "the limit of tool calls for one task was reached";

struct Made {
    call_id: String,
    arguments: Value,
    reply: ToolReply,
}

impl<W: State> Stage<W> {
    /// Calls the tool that plays a role: validated, gated, sent once, recorded; a failure of the tool is a reply.
    ///
    /// # Errors
    /// [`StageError`], to be passed on with `?`: a person must decide first, no tool plays the role, or the bound on
    /// calls is reached.
    pub async fn call(&self, role: &str, arguments: Value) -> Result<ToolReply, StageError> {
        self.call_beside(role, arguments, &BTreeMap::new()).await
    }

    /// Does the same with entries of the request's context beside the arguments, which are neither shown nor recorded.
    ///
    /// # Errors
    /// As [`Stage::call`].
    pub async fn call_beside(
        &self,
        role: &str,
        arguments: Value,
        beside: &BTreeMap<String, String>,
    ) -> Result<ToolReply, StageError> {
        let tainted_by = self.left.log.lock().tainted_by.clone();
        let caller = Caller { beside: Some(beside), ..self.caller() };
        let replies = self.make(caller, role, vec![arguments], &tainted_by).await?;
        Ok(replies.into_iter().next().unwrap_or_default())
    }

    /// Makes several calls of one tool at once, with arguments that results or the task contain literally, and returns
    /// the replies in the order of the arguments; those that exceed the bound on calls are left out.
    ///
    /// These arguments do not come from a model of this agent, so open-world content does not hold up the calls. They
    /// wait for a person if the tool itself needs an approval, or if a supervisor invented an address in its task; then
    /// the person decides on all of them before the first is made. They are recorded in their order, whichever ends
    /// first, so that a replay sees the same.
    ///
    /// # Errors
    /// As [`Stage::call`].
    pub async fn follow_all(
        &self,
        role: &str,
        arguments: impl IntoIterator<Item = Value>,
    ) -> Result<Vec<ToolReply>, StageError> {
        // Without any left, the first one says so.
        let left = self.budget().tool_calls.max(1);
        let arguments: Vec<Value> = arguments.into_iter().take(left).collect();
        if arguments.is_empty() {
            return Ok(Vec::new());
        }
        self.make(self.caller(), role, arguments, &Sources::default()).await
    }

    fn caller(&self) -> Caller<'_> {
        Caller { ctx: &self.ctx, job: &self.job, beside: None }
    }

    async fn make(
        &self,
        caller: Caller<'_>,
        role: &str,
        arguments: Vec<Value>,
        tainted_by: &Sources,
    ) -> Result<Vec<ToolReply>, StageError> {
        let Some(tool) = self.job.tools.get(role) else {
            let message = format!("no tool of {} plays the role: {role}", self.job.server.name);
            return Err(AgentError::new(ErrorKind::Configuration, message).into());
        };
        if self.budget().tool_calls == 0 {
            return Err(AgentError::new(ErrorKind::Budget, NO_CALLS).into());
        }
        let first = self.left.answers.fetch_add(arguments.len(), Ordering::Relaxed) + 1;
        let call_policies = caller.call_policies(std::iter::once(tool), first).await?;
        let tool = &match call_policies.get(&tool.name) {
            Some(call_policy) => tool.under(*call_policy),
            None => tool.clone(),
        };
        let shown = self.shown();
        let mut wanted = Vec::new();
        for arguments in &arguments {
            wanted.push(caller.pending(&shown, tool, arguments).await?);
        }
        let decisions = caller.ask_people(&wanted, tainted_by, first).await?;
        if decisions.contains(&Some(Decision::Skipped)) {
            return Err(approval::not_waited(&caller.full_name(tool)).into());
        }
        for instruction in decisions.iter().flatten().filter_map(Decision::instruction) {
            self.take_in(instruction.clone()).await?;
        }
        let decided = arguments.into_iter().zip(decisions);
        let calls = (first..).zip(decided).map(async |(number, (arguments, decision))| {
            let edited = decision.as_ref().and_then(Decision::edited).cloned();
            let arguments = edited.clone().map_or(arguments, Value::Object);
            let place = self.ctx.place();
            let task = &self.job.assignment.id;
            let call_id = format!("{task}/{}.{}.{number}", place.step, place.task);
            let reply = caller.perform(tool, &call_id, &arguments, decision).await?;
            Ok(Made { call_id, arguments, reply: ToolReply { edited, ..reply } })
        });
        let made = question::all(join_all(calls).await)?;
        Ok(made.into_iter().map(|made| self.record(tool, made)).collect())
    }

    /// Returns the known addresses: those that the agent saw when it began, and those of the calls recorded since.
    fn shown(&self) -> Shown<'_> {
        let mut shown = Shown::at_opening(self.job.ctx.state());
        let state = self.ctx.state();
        state.calls.iter().for_each(|call| shown.add(&call.output));
        state.instructions.iter().for_each(|instruction| shown.add(&instruction.text));
        self.left.log.lock().calls.iter().for_each(|call| shown.add(&call.output));
        self.left.instructions.lock().iter().for_each(|instruction| shown.add(&instruction.text));
        shown
    }

    fn record(&self, tool: &ToolDefinition, made: Made) -> ToolReply {
        let Made { call_id, arguments, reply } = made;
        let caller = self.caller();
        let full_name = caller.full_name(tool);
        let mut log = self.left.log.lock();
        log.note(&caller, (&full_name, call_id), &reply, tool.open_world);
        log.calls.push(CallRecord {
            tool: tool.name.clone(),
            arguments,
            output: window::clip(&reply.text, EVIDENCE_CHARS),
            is_error: reply.is_error,
            source: full_name,
        });
        reply
    }

    /// Removes citations beyond the number of passages.
    pub fn check_citations(&self, written: &str, passages: usize) -> CheckedCitations {
        let checked = check_citations(written, passages);
        let removed = checked.removed;
        if removed > 0 {
            self.progress(format!("removed {removed} citation(s) that named no passage"));
            metrics::citations_removed(&self.job.agent, removed);
        }
        checked
    }
}
