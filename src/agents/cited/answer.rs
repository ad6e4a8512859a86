//! Answers from the passages alone, and checks what the answer cites.

use perihelion_documents::check;
use serde_json::json;

use super::passage::Passage;
use super::{Work, WorkUpdate};
use crate::agents::pipeline::{Ask, Finding, Role, Source, Stage, StageResult, Step};

pub(in crate::agents) async fn answer(stage: Stage<Work>) -> StageResult<Work> {
    let state = stage.state();
    if state.passages.is_empty() {
        let mut output = "Nothing that was found says anything about this.".to_owned();
        if !state.remarks.is_empty() {
            output.push_str(&format!(" The search reported: {}", state.remarks.join("; ")));
        }
        return Ok(Step::done(Finding::text(output).confidence(0.1)));
    }
    let passages: Vec<_> = (1..)
        .zip(&state.passages)
        .map(|(number, passage)| {
            json!({
                "number": number,
                "title": passage.title,
                "page": passage.page,
                "section": passage.section,
                "text": passage.around.as_deref().unwrap_or(&passage.quote),
            })
        })
        .collect();
    let upstream: Vec<_> = stage
        .assignment()
        .dependency_outputs
        .iter()
        .map(|one| json!({ "agent": one.agent, "output": one.output }))
        .collect();
    let variables = json!({
        "question": stage.task(),
        "request": stage.request(),
        "remarks": state.remarks,
        "passages": passages,
        "upstream": upstream,
        "feedback": stage.feedback(),
    });
    let ask = Ask::new(Role::Agent, "answer", "").prompt("documents_answer", variables);
    let written = stage.ask_text(ask).await?;
    let checked = check(&written, state.passages.len());
    if checked.removed > 0 {
        stage.progress(format!("removed {} citation(s) that named no passage", checked.removed));
    }
    let mut finding = Finding::text(checked.text.trim()).confidence(confidence(&checked.cited));
    for passage in checked.cited.iter().filter_map(|number| state.passages.get(number - 1)) {
        finding = finding.source(source(&stage, passage));
    }
    Ok(Step::done_with(WorkUpdate::new(), finding))
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
    }
}
