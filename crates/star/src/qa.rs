//! QA: turns results into the answer, and always gives one (S1.13).

use std::sync::Arc;

use async_trait::async_trait;
use serde_json::json;

use crate::model::{RecordedModel, stop_or_failure};
use crate::{
    AgentResult, EarlyEnd, FinishReason, GraphState, GraphUpdate, Message, MessagePiece, Result,
    ResultStatus, StarParts, check_citations, dispatch, node, taint, window,
};
use perihelion_engine::graph::{Context, Node, NodeOutput};
use perihelion_llm::{ChatModel, ChatRequest, Error, Role, structured};
use perihelion_settings::metrics;

/// The beginning of an answer without successful work.
const NOTHING_WORKED: &str = "The request could not be answered: none of the work succeeded.";

const ANSWER: &str = "answer";

pub(super) struct Qa {
    pub parts: Arc<StarParts>,
}

#[async_trait]
impl Node<GraphState> for Qa {
    async fn run(&self, ctx: Context<GraphState>) -> Result<NodeOutput<GraphState>> {
        let state = ctx.state();
        let model = RecordedModel::new(&ctx, &self.parts).in_turn(state, ctx.place());
        let model = model.remembering(state).answering();
        let mut early: Option<EarlyEnd> = None;
        let mut removed = 0;
        let direct = self.direct(state);
        // It was judged as a whole, and is shown from here on as a model's answer is.
        for piece in direct.into_iter().flat_map(|text| text.split_inclusive(' ')) {
            MessagePiece::publish(ctx.port(), piece);
        }
        let written = if direct.is_some() || nothing_worked(state) {
            None
        } else {
            Some(self.ask(&ctx, &model).await)
        };
        let is_live = model.was_live();
        let answer = match written {
            None => direct.map_or_else(|| by_rule(state, NOTHING_WORKED), str::to_owned),
            Some(Ok(Written { text, .. })) if state.preferences.answer_schema.is_some() => text,
            Some(Ok(Written { text, cut })) => {
                let checked = check_citations(&text, state.results_of_turn().count());
                removed = checked.removed;
                match cut {
                    None => checked.text,
                    Some(why) => {
                        let note = format!("\n\n[The answer was cut off here: {why}.]");
                        if is_live {
                            MessagePiece::publish(ctx.port(), &note);
                        }
                        let text = format!("the answer was cut off: {why}");
                        early = Some(EarlyEnd { reason: FinishReason::Truncated, text });
                        checked.text + &note
                    }
                }
            }
            Some(Err(error)) => {
                let problem = stop_or_failure(error)?.to_string();
                let text = format!("the answer could not be written by the model: {problem}");
                early = Some(EarlyEnd { reason: FinishReason::ModelFailed, text });
                let opening = format!("The answer could not be written by the model ({problem}).");
                by_rule(state, &opening)
            }
        };
        let place = (state.turn, ctx.place().step, node::QA);
        let message = Message {
            name: Some(node::QA.into()),
            tainted_by: taint::of_talk(state),
            citations_removed: removed,
            ..Message::new(place, "assistant", answer.clone())
        };
        if is_live {
            metrics::citations_removed(node::QA, removed);
        }
        let update = GraphUpdate::new()
            .answer(Some(answer))
            .messages([message].into_iter().collect())
            .spent(model.spent())
            .next_step(vec![perihelion_engine::graph::END.to_owned()]);
        // An earlier reason stands: this one may follow from it.
        let finish_reason = early.filter(|_| state.finish_reason.is_none()).map(Some);
        Ok(NodeOutput::goto(GraphUpdate { finish_reason, ..update }, []))
    }
}

struct Written {
    text: String,
    cut: Option<&'static str>,
}

impl Qa {
    /// Returns the answer of the only agent there is, where nothing is to be added to it.
    fn direct<'a>(&self, state: &'a GraphState) -> Option<&'a str> {
        let is_free = self.parts.style.is_none()
            && state.preferences.answer_schema.is_none()
            && state.finish_reason.is_none()
            && state.errors.is_empty();
        let result = dispatch::direct(state).filter(|_| is_free)?;
        // Numbers of an agent's own passages mean something else in an answer.
        let is_cited = check_citations(&result.output, 0).removed > 0;
        let is_whole = result.instructions.is_empty() && !result.is_unverified() && !is_cited;
        is_whole.then_some(result.output.as_str())
    }

    async fn ask(
        &self,
        ctx: &Context<GraphState>,
        model: &RecordedModel<'_>,
    ) -> Result<Written, Error> {
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
        let messages = self.parts.prompts.messages("qa", prompt)?;
        let request = ChatRequest::new(Role::Qa, self.parts.thread(ctx.place()), messages);
        if let Some(schema) = &state.preferences.answer_schema {
            let answer = structured::ask_value(model, request, ANSWER, schema).await?;
            return Ok(Written { text: answer.value.to_string(), cut: None });
        }
        let response = model.chat(&request, None).await?;
        match response.cut() {
            Some(why) if !response.content.trim().is_empty() => {
                Ok(Written { text: response.content.trim().to_owned(), cut: Some(why) })
            }
            _ => Ok(Written { text: response.into_text()?, cut: None }),
        }
    }
}

fn reason(state: &GraphState) -> String {
    let end = state.finish_reason.as_ref();
    end.map_or("the supervisor judged the work to be done", |end| &end.text).to_owned()
}

fn failures(state: &GraphState) -> Vec<String> {
    let failed = |result: &AgentResult| {
        result.error.as_ref().map(|error| format!("{} ({}): {error}", result.agent, result.task))
    };
    state.results_of_turn().filter_map(failed).chain(state.errors.iter().cloned()).collect()
}

/// Returns whether there was work without a result: a model would invent an answer.
fn nothing_worked(state: &GraphState) -> bool {
    let is_empty =
        |result: &AgentResult| result.status == ResultStatus::Failed && part_of(result).is_none();
    // Without any agent there is talk, and no work that could fail.
    let is_cut_short = |end: &EarlyEnd| end.reason != FinishReason::NoAgents;
    let had_work = state.results_of_turn().next().is_some();
    (had_work || state.finish_reason.as_ref().is_some_and(is_cut_short))
        && state.results_of_turn().all(is_empty)
}

/// Composes an answer without a model: findings, failures, suggestions.
fn by_rule(state: &GraphState, opening: &str) -> String {
    let mut lines = vec![format!("{opening} This is what the run has:")];
    let found: Vec<String> = (1..)
        .zip(state.results_of_turn())
        .filter(|(_, result)| result.status == ResultStatus::Success)
        .map(|(number, result)| format!("[{number}] {}: {}", result.agent, result.uncited_output()))
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
    let parts: Vec<&str> = state.results_of_turn().filter_map(part_of).collect();
    if !parts.is_empty() {
        lines.push(parts.join("\n"));
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

/// Returns the tool results before the work was cut off; a rejected output is not a finding.
fn part_of(result: &AgentResult) -> Option<&str> {
    let error = result.error.as_ref()?;
    (error.is_cut_off() && !result.output.is_empty()).then_some(result.output.as_str())
}
