//! Answers from the passages alone, and checks what the answer cites.

use serde_json::{Value, json};

use super::passage::Passage;
use super::{Work, WorkUpdate};
use crate::pipeline::{Ask, Finding, Role, Source, Stage, StageError, StageResult, Step};

/// How sure an agent is that found nothing.
pub(crate) const NOTHING: f64 = 0.1;

pub(crate) async fn answer(stage: Stage<Work>) -> StageResult<Work> {
    if stage.state().passages.is_empty() {
        return Ok(Step::done(Finding::text(nothing(stage.state())).confidence(NOTHING)));
    }
    let written = write(&stage, json!({})).await?;
    Ok(Step::done_with(WorkUpdate::new(), finding(&stage, &written)))
}

/// Says that nothing was found, and why, where the search said so.
pub(crate) fn nothing(state: &Work) -> String {
    let mut output = "Nothing that was found says anything about this.".to_owned();
    if !state.remarks.is_empty() {
        output.push_str(&format!(" The search reported: {}", state.remarks.join("; ")));
    }
    output
}

/// Has the model write the answer; `more` are variables beside the usual ones.
pub(crate) async fn write(stage: &Stage<Work>, more: Value) -> Result<String, StageError> {
    let state = stage.state();
    let passages: Vec<_> = (1..)
        .zip(&state.passages)
        .map(|(number, passage)| {
            json!({
                "number": number,
                "title": passage.title,
                "page": passage.page,
                "section": passage.section,
                "text": passage.context.as_deref().unwrap_or(&passage.quote),
            })
        })
        .collect();
    let mut variables = stage.variables(more);
    variables["question"] = json!(stage.task());
    variables["remarks"] = json!(state.remarks);
    variables["passages"] = json!(passages);
    stage.ask_text(Ask::new(Role::Agent, "answer", "").prompt("documents_answer", variables)).await
}

/// Makes what was written a finding: citations that name no passage are removed and counted, those that do become sources.
pub(crate) fn finding(stage: &Stage<Work>, written: &str) -> Finding {
    let passages = &stage.state().passages;
    let checked = stage.check_citations(written, passages.len());
    let mut finding = Finding::text(checked.text.trim())
        .confidence(confidence(&checked.cited))
        .citations_removed(checked.removed);
    for passage in checked.cited.iter().filter_map(|number| passages.get(number - 1)) {
        finding = finding.source(source(stage, passage));
    }
    finding
}

/// An answer that cites nothing is one that the documents do not bear out.
fn confidence(cited: &[usize]) -> f64 {
    match cited.len() {
        0 => 0.3,
        1 => 0.75,
        _ => 0.85,
    }
}

fn source(stage: &Stage<Work>, passage: &Passage) -> Source {
    let tool = stage.tool("search").map(|tool| tool.name.clone()).unwrap_or_default();
    Source {
        source: format!("{}.{tool}", stage.agent()),
        reference: Some(passage.reference()),
        quote: Some(passage.quote.clone()),
        place: passage.place(),
    }
}
