//! QA: turns results into the answer, and always gives one (S1.13).

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use serde_json::json;

use super::citing::check_citations;
use super::ending::{EarlyEnd, FinishReason};
use super::model::{RecordedModel, stop_or_failure};
use super::parts::StarParts;
use super::result::{AgentResult, ResultStatus};
use super::state::{GraphState, GraphUpdate, Message, message_id};
use super::{node, taint, window};
use perihelion_engine::graph::{Context, Node, NodeError, NodeOutput};
use perihelion_llm::{ChatModel, ChatRequest, Error, Role, structured};
use perihelion_settings::metrics;

/// How long the answer may still be written when the run's time is up.
const GRACE: Duration = Duration::from_secs(30);

/// Name of the schema under which a structured answer is asked for.
const ANSWER: &str = "answer";

/// Writes the answer.
pub(super) struct Qa {
    pub parts: Arc<StarParts>,
}

#[async_trait]
impl Node<GraphState> for Qa {
    async fn run(&self, ctx: Context<GraphState>) -> Result<NodeOutput<GraphState>, NodeError> {
        let state = ctx.state();
        let model =
            RecordedModel::new(&ctx, &self.parts).remembering(state).streamed().with_grace(GRACE);
        let mut failure: Option<String> = None;
        let mut removed = 0;
        let answer = match self.ask(&ctx, &model).await {
            Ok(answer) if state.preferences.answer_schema.is_some() => answer,
            Ok(answer) if !answer.trim().is_empty() => {
                let checked = check_citations(&answer, state.results_of_turn().count());
                removed = checked.removed;
                checked.text
            }
            Ok(_) => without_model(state, failure.insert("the model gave an empty answer".into())),
            Err(error) => without_model(state, failure.insert(stop_or_failure(error)?.to_string())),
        };
        let message = Message {
            id: message_id(state.turn, ctx.place().step, node::QA),
            role: "assistant".into(),
            name: Some(node::QA.into()),
            content: answer.clone(),
            tainted_by: taint::of_talk(state),
            attached: Vec::new(),
            citations_removed: removed,
        };
        if model.was_live() {
            metrics::citations_removed(node::QA, removed);
        }
        let update = GraphUpdate::new()
            .answer(Some(answer))
            .messages(vec![message])
            .spent(model.spent())
            .next_step(vec![perihelion_engine::graph::END.to_owned()]);
        // An earlier reason stands: this one may follow from it.
        let update = match failure.filter(|_| state.finish_reason.is_none()) {
            None => update,
            Some(text) => {
                let text = format!("the answer could not be written by the model: {text}");
                update.finish_reason(Some(EarlyEnd { reason: FinishReason::ModelFailed, text }))
            }
        };
        Ok(NodeOutput::goto(update, []))
    }
}

impl Qa {
    async fn ask(
        &self,
        ctx: &Context<GraphState>,
        model: &RecordedModel<'_>,
    ) -> Result<String, Error> {
        let state = ctx.state();
        let prompt = json!({
            "request": state.input_request,
            "wishes": state.preferences.system_prompt,
            "style": self.parts.style.as_deref(),
            "context": window::context(state),
            "history": window::history(state),
            "results": window::results(state, window::ANSWER_CHARS),
            "failures": failures(state),
            "reason": reason(state),
            "is_object": state.preferences.answer_schema.is_some(),
        });
        let request = ChatRequest {
            role: Role::Qa,
            thread: self.parts.thread(ctx.place()),
            agent: None,
            stage: None,
            messages: self.parts.prompts.messages("qa", prompt)?,
            tools: Vec::new(),
            format: None,
        };
        if let Some(schema) = &state.preferences.answer_schema {
            let answer = structured::ask_value(model, request, ANSWER, schema).await?;
            return Ok(answer.value.to_string());
        }
        Ok(model.chat(&request, None).await?.content.trim().to_owned())
    }
}

fn reason(state: &GraphState) -> String {
    state
        .finish_reason
        .as_ref()
        .map_or("the supervisor judged the work to be done", |end| &end.text)
        .to_owned()
}

fn failures(state: &GraphState) -> Vec<String> {
    let failed = |result: &AgentResult| {
        result.error.as_ref().map(|error| format!("{} ({}): {error}", result.agent, result.task))
    };
    state.results_of_turn().filter_map(failed).chain(state.errors.iter().cloned()).collect()
}

/// Puts an answer together without a model: what was found, what failed, what would help.
fn without_model(state: &GraphState, problem: &str) -> String {
    let mut lines = vec![format!(
        "The answer could not be written by the model ({problem}). This is what the run has:"
    )];
    let found: Vec<String> = state
        .results_of_turn()
        .enumerate()
        .filter(|(_, result)| result.status == ResultStatus::Success)
        .map(|(index, result)| format!("[{}] {}: {}", index + 1, result.agent, result.output))
        .collect();
    if found.is_empty() {
        lines.push("Nothing was found.".into())
    } else {
        lines.push(format!("Found:\n{}", found.join("\n")))
    }
    let failed = failures(state);
    if !failed.is_empty() {
        lines.push(format!("Failed:\n- {}", failed.join("\n- ")));
    }
    if let Some(reason) = &state.finish_reason {
        lines.push(format!("The run ended early: {}.", reason.text));
    }
    if found.is_empty() {
        lines.push(
            "It would help to name the data, the period or the documents that are meant.".into(),
        );
    }
    lines.join("\n\n")
}
