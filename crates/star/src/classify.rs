//! Asks how an instruction stands to the task of the agent whose call was approved (S3.10).

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::instruction::{Instruction, InstructionKind};
use super::model::{RecordedModel, stop_or_failure};
use super::parts::StarParts;
use super::window;
use perihelion_engine::graph::{NodeError, TaskContext};
use perihelion_llm::{self as llm, ChatRequest, Role};

/// Name of the stage that classifies instructions.
const STAGE: &str = "instruction";

/// What the classifier answers, under the schema name `instruction_kind`.
#[derive(Clone, Copy, Debug, Serialize, Deserialize, JsonSchema)]
struct Classified {
    /// `override` only where the instruction says to do something else in place of the task.
    kind: InstructionKind,
}

/// Asks how an instruction stands to a task; where no model says so, it adds to it.
///
/// # Errors
/// [`NodeError`] when the run stops.
pub(super) async fn classify(
    model: &RecordedModel<'_>,
    (ctx, star): (&TaskContext, &StarParts),
    agent: &str,
    task: &str,
    text: String,
) -> Result<Instruction, NodeError> {
    let prompt = json!({ "task": task, "instruction": text });
    let messages = star.prompts.messages(STAGE, prompt).map_err(window::prompt_failed)?;
    let request = ChatRequest::new(Role::Classifier, star.thread(ctx.place()), messages);
    let request = request.agent(agent).stage(STAGE);
    let kind = match llm::ask::<Classified>(model, request, "instruction_kind").await {
        Ok(answer) => answer.value.kind,
        Err(error) => {
            let error = stop_or_failure(error)?;
            tracing::debug!(%error, "an instruction could not be classified; it adds to the task");
            InstructionKind::default()
        }
    };
    Ok(Instruction { kind, text })
}
