//! Tri-state reflection: a separate call judges what an agent did (S1.07).

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::model::{RecordedModel, stop_or_failure};
use crate::{
    AgentError, AgentEvent, Assignment, CallRecord, ErrorKind, GraphState, Instruction, Job,
    ReflectionVerdict, assignment, window,
};
use perihelion_engine::graph::{NodeError, TaskContext};
use perihelion_llm::{self as llm, ChatRequest, Role};
use perihelion_settings::metrics;

/// The three verdicts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "UPPERCASE")]
pub enum ReflectionStatus {
    /// The output stands.
    Approved,
    /// The output is replaced by the refined one.
    Fixed,
    /// The agent tries again with the feedback.
    Rejected,
}

/// What the reflector answers, under the schema name `reflection`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Reflection {
    pub status: ReflectionStatus,
    /// The whole corrected output when FIXED; otherwise null.
    pub refined_output: Option<String>,
    /// What to do differently when REJECTED; otherwise null.
    pub feedback: Option<String>,
}

/// What became of an output, and what follows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Judged {
    pub verdict: ReflectionVerdict,
    /// The output in place of a fixed one; of others, why it did not stand as it was.
    pub text: String,
}

/// What an agent did in one attempt.
pub(super) struct Attempted<'a> {
    /// Of the agent's node, or of a stage below it.
    pub ctx: &'a TaskContext,
    pub job: &'a Job,
    pub calls: &'a [CallRecord],
    pub instructions: &'a [Instruction],
    pub output: &'a str,
    /// From 1.
    pub number: u32,
}

/// Why an output that rests on nothing is not approved.
const UNSUPPORTED: &str =
    "the agent called no tool and was given nothing, so nothing supports its output";

/// Tells whether an agent was given something beside its task that an output may rest on.
fn is_given(state: &GraphState, assignment: &Assignment) -> bool {
    !assignment.dependency_outputs.is_empty() || !state.global_state.is_empty() || state.turn > 1
}

/// Has an attempt judged, counts the verdict and publishes it.
pub(super) async fn judge(
    model: &RecordedModel<'_>,
    attempt: Attempted<'_>,
) -> Result<Judged, NodeError> {
    let Attempted { ctx, job, number, .. } = attempt;
    model.was_live();
    let judged = verdict_on(model, &attempt).await?;
    let status = judged.verdict;
    if model.was_live() {
        metrics::reflected(&job.agent, status.as_str());
    }
    let has_feedback =
        matches!(status, ReflectionVerdict::Rejected | ReflectionVerdict::Unverified);
    AgentEvent::Reflection {
        agent: job.agent.clone(),
        status,
        attempt: number,
        of: job.limits().max_reflections + 1,
        feedback: has_feedback.then(|| judged.text.clone()),
    }
    .publish(ctx);
    Ok(judged)
}

async fn verdict_on(
    model: &RecordedModel<'_>,
    attempt: &Attempted<'_>,
) -> Result<Judged, NodeError> {
    let Attempted { job, calls, instructions, output, .. } = attempt;
    let task = assignment::effective(&job.assignment.described(), instructions);
    let shown = |call: &CallRecord| {
        let CallRecord { tool, arguments, output, is_error, .. } = call;
        json!({ "tool": tool, "arguments": arguments.to_string(), "output": output, "is_error": is_error })
    };
    let shown: Vec<_> = calls.iter().map(shown).collect();
    let prompt = json!({ "task": task, "tool_calls": shown, "output": output });
    let messages = job.star.prompts.messages("reflector", prompt).map_err(window::prompt_failed)?;
    let thread = job.star.thread(job.ctx.place());
    let request = ChatRequest::new(Role::Reflector, thread, messages).agent(&job.agent);
    let unverified = |why: String| Judged { verdict: ReflectionVerdict::Unverified, text: why };
    let judged = match llm::ask::<Reflection>(model, request, "reflection").await {
        Ok(answer) => verdict(answer.value),
        Err(error) => return Ok(unverified(stop_or_failure(error)?.to_string())),
    };
    // A reflector has nothing to hold such an output against.
    let is_unsupported = calls.is_empty() && !is_given(job.ctx.state(), &job.assignment);
    if is_unsupported && judged.verdict != ReflectionVerdict::Rejected {
        return Ok(unverified(UNSUPPORTED.to_owned()));
    }
    Ok(judged)
}

fn verdict(reflection: Reflection) -> Judged {
    let text = |text: Option<String>| text.filter(|text| !text.trim().is_empty());
    let refined = text(reflection.refined_output);
    match (reflection.status, refined) {
        (ReflectionStatus::Fixed, Some(text)) => Judged { verdict: ReflectionVerdict::Fixed, text },
        (ReflectionStatus::Rejected, _) => Judged {
            verdict: ReflectionVerdict::Rejected,
            text: text(reflection.feedback)
                .unwrap_or_else(|| "the output does not fulfil the task".into()),
        },
        // FIXED without a text fixes nothing: the output stands.
        _ => Judged { verdict: ReflectionVerdict::Approved, text: String::new() },
    }
}

/// Says that no attempt was good enough.
pub(super) fn rejected(attempts: u32, feedback: &str) -> AgentError {
    let message = format!("the output was rejected {attempts} times, last because: {feedback}");
    AgentError::new(ErrorKind::Rejected, message)
}
