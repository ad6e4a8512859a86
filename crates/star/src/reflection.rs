//! Tri-state reflection: a separate call judges what an agent did (S1.07).

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::assignment::Assignment;
use super::model::{RecordedModel, stop_or_failure};
use super::report::CallRecord;
use super::state::GraphState;
use super::verdict::ReflectionVerdict;
use super::window;
use perihelion_engine::graph::NodeError;
use perihelion_llm::{self as llm, ChatRequest, Prompts, Role};

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

/// What follows from a verdict.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Judged {
    Approved,
    Fixed(String),
    Rejected(String),
    /// No verdict could be had; the output is passed on and marked.
    Unverified(String),
}

impl Judged {
    /// Returns the verdict without what was said with it.
    pub(super) fn verdict(&self) -> ReflectionVerdict {
        match self {
            Self::Approved => ReflectionVerdict::Approved,
            Self::Fixed(_) => ReflectionVerdict::Fixed,
            Self::Rejected(_) => ReflectionVerdict::Rejected,
            Self::Unverified(_) => ReflectionVerdict::Unverified,
        }
    }

    /// Returns why the output did not stand as it was, where that was said.
    pub(super) fn feedback(&self) -> Option<&str> {
        match self {
            Self::Rejected(text) | Self::Unverified(text) => Some(text),
            Self::Approved | Self::Fixed(_) => None,
        }
    }
}

/// What is judged.
pub(super) struct Subject<'a> {
    pub thread: String,
    pub agent: &'a str,
    pub task: &'a str,
    pub calls: &'a [CallRecord],
    /// The agent was given something that its output may rest on.
    pub is_given: bool,
    pub output: &'a str,
}

/// Why an output that rests on nothing is not approved.
const UNSUPPORTED: &str =
    "the agent called no tool and was given nothing, so nothing supports its output";

/// Tells whether an agent was given something beside its task that an output may rest on.
pub(super) fn is_given(state: &GraphState, assignment: &Assignment) -> bool {
    !assignment.dependency_outputs.is_empty() || !state.global_state.is_empty() || state.turn > 1
}

/// Has an output judged.
///
/// # Errors
/// [`NodeError`] only when the node must stop; a reflector that fails gives [`Judged::Unverified`].
pub(super) async fn judge(
    model: &RecordedModel<'_>,
    prompts: &Prompts,
    subject: Subject<'_>,
) -> Result<Judged, NodeError> {
    let shown = |call: &CallRecord| {
        let CallRecord { tool, arguments, output, is_error, .. } = call;
        json!({ "tool": tool, "arguments": arguments.to_string(), "output": output, "is_error": is_error })
    };
    let calls: Vec<_> = subject.calls.iter().map(shown).collect();
    let prompt = json!({ "task": subject.task, "tool_calls": calls, "output": subject.output });
    let request = ChatRequest {
        role: Role::Reflector,
        thread: subject.thread,
        agent: Some(subject.agent.to_owned()),
        stage: None,
        messages: prompts.messages("reflector", prompt).map_err(window::prompt_failed)?,
        tools: Vec::new(),
        format: None,
    };
    match llm::ask::<Reflection>(model, request, "reflection").await {
        Ok(answer) => Ok(match verdict(answer.value) {
            // A reflector has nothing to hold such an output against.
            Judged::Approved | Judged::Fixed(_)
                if subject.calls.is_empty() && !subject.is_given =>
            {
                Judged::Unverified(UNSUPPORTED.to_owned())
            }
            judged => judged,
        }),
        Err(error) => Ok(Judged::Unverified(stop_or_failure(error)?.to_string())),
    }
}

fn verdict(reflection: Reflection) -> Judged {
    let text = |text: Option<String>| text.filter(|text| !text.trim().is_empty());
    match reflection.status {
        ReflectionStatus::Approved => Judged::Approved,
        // FIXED without a text fixes nothing: the output stands.
        ReflectionStatus::Fixed => {
            text(reflection.refined_output).map_or(Judged::Approved, Judged::Fixed)
        }
        ReflectionStatus::Rejected => Judged::Rejected(
            text(reflection.feedback)
                .unwrap_or_else(|| "the output does not fulfil the task".into()),
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// S1.07
    #[test]
    fn each_verdict_leads_to_its_consequence_and_an_empty_one_does_no_harm() {
        let reflect = |status, refined: Option<&str>, feedback: Option<&str>| {
            verdict(Reflection {
                status,
                refined_output: refined.map(Into::into),
                feedback: feedback.map(Into::into),
            })
        };
        assert_eq!(reflect(ReflectionStatus::Approved, None, None), Judged::Approved);
        assert_eq!(reflect(ReflectionStatus::Fixed, Some("x"), None), Judged::Fixed("x".into()));
        assert_eq!(reflect(ReflectionStatus::Fixed, None, None), Judged::Approved);
        assert_eq!(
            reflect(ReflectionStatus::Rejected, None, Some("y")),
            Judged::Rejected("y".into())
        );
        assert!(matches!(reflect(ReflectionStatus::Rejected, None, None), Judged::Rejected(_)));
    }
}
