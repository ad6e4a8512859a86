//! Tri-state reflection: a separate call judges the work of an agent (S1.07).

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::model::{RecordedModel, stop_or_failure};
use crate::{
    AgentError, AgentEvent, Assignment, CallRecord, ErrorKind, GraphState, Instruction, Job,
    ReflectionVerdict, Result, Spent, assignment, breaker, seen, window,
};
use perihelion_engine::graph::TaskContext;
use perihelion_llm::{self as llm, ChatModel, ChatRequest, Error, Role, Structured};
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
    #[schemars(length(max = 600))]
    pub feedback: Option<String>,
}

/// The verdict on an output, and the next step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Judged {
    pub verdict: ReflectionVerdict,
    /// The replacement for a fixed output; for other verdicts, the reason why the output was changed.
    pub text: String,
}

pub(super) struct Attempted<'a> {
    /// Of the agent's node, or of a stage below it.
    pub ctx: &'a TaskContext,
    pub job: &'a Job,
    pub calls: &'a [CallRecord],
    pub instructions: &'a [Instruction],
    pub output: &'a str,
    /// From 1.
    pub number: u32,
    /// What the work has cost without the judging model.
    pub spent: Spent,
}

/// Why an output without a source is not approved.
const UNSUPPORTED: &str =
    "the agent called no tool and was given nothing, so nothing supports its output";

/// Returns whether an agent received input besides its task on which an output can be based.
fn is_given(state: &GraphState, assignment: &Assignment) -> bool {
    !assignment.dependency_outputs.is_empty() || !state.global_state.is_empty() || state.turn > 1
}

pub(super) async fn judge(model: &RecordedModel<'_>, attempt: Attempted<'_>) -> Result<Judged> {
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
        of: job.limits().max_reflections.saturating_add(1),
        feedback: has_feedback.then(|| judged.text.clone()),
    }
    .publish(ctx);
    Ok(judged)
}

async fn verdict_on(model: &RecordedModel<'_>, attempt: &Attempted<'_>) -> Result<Judged> {
    let Attempted { job, calls, instructions, output, .. } = attempt;
    let unverified = |why: String| Judged { verdict: ReflectionVerdict::Unverified, text: why };
    let mut spent = attempt.spent;
    spent += model.spent();
    if let Some(spent) = breaker::overspent(job.ctx.state(), &job.star.limits, spent) {
        return Ok(unverified(spent.reason));
    }
    let task = assignment::effective(&job.assignment.described(), instructions);
    let shown = |call: &CallRecord| {
        let CallRecord { tool, arguments, output, is_error, .. } = call;
        json!({ "tool": tool, "arguments": arguments.to_string(), "output": output, "is_error": is_error })
    };
    let shown: Vec<_> = calls.iter().map(shown).collect();
    let direct = job.assignment.is_direct().then(|| window::history(job.ctx.state()));
    let shapes = &job.star.reviews;
    let noted = format!("{} {}", seen::SHAPE, attempt.number);
    let is_compact = attempt.ctx.observe_unless(&noted, &false, &shapes.is_compact()).await?;
    let prompt = json!({
        "task": task, "tool_calls": shown, "output": output, "history": direct, "compact": is_compact,
    });
    let messages = job.star.prompts.messages("reflector", prompt).map_err(window::prompt_failed)?;
    let thread = job.star.thread(job.ctx.place());
    let request = ChatRequest::new(Role::Reflector, thread, messages).agent(&job.agent);
    let answer = ask(model, request, is_compact).await;
    if !job.ctx.port().is_replay() {
        shapes.learn(&answer);
    }
    let judged = match answer {
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

/// Asks for a verdict; in the compact form it corrects nothing, which small models do worse than the agent again.
async fn ask(
    model: &dyn ChatModel,
    mut request: ChatRequest,
    is_compact: bool,
) -> Result<Structured<Reflection>, Error> {
    if !is_compact {
        return llm::ask(model, request, "reflection").await;
    }
    request.manner.is_watched = true;
    let sent = json!({
        "type": "object",
        "properties": {
            "status": { "type": "string", "enum": ["APPROVED", "REJECTED"] },
            "feedback": { "type": "string", "maxLength": 240, "description": "What to do instead." },
        },
        "required": ["status", "feedback"],
        "additionalProperties": false,
    });
    let accepted = llm::strict_schema::<Reflection>();
    llm::ask_as(model, request, "reflection_choice", &sent, &accepted).await
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

pub(super) fn rejected(attempts: u32, feedback: &str) -> AgentError {
    let message = format!("the output was rejected {attempts} times, last because: {feedback}");
    AgentError::new(ErrorKind::Rejected, message)
}
