//! Ranks the passages, answers from them alone, and checks the citations.

use std::collections::BTreeSet;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{Passage, READ, Work, WorkUpdate};
use crate::pipeline::{Ask, Finding, Role, Source, Stage, StageError, StageResult, Step};
use perihelion_documents::reordered;

/// The confidence of an agent without findings.
pub(crate) const NOTHING: f64 = 0.1;

pub(crate) async fn answer(stage: Stage<Work>) -> StageResult<Work> {
    if stage.state().passages.is_empty() {
        return Ok(Step::done(Finding::text(nothing(stage.state())).confidence(NOTHING)));
    }
    let written = write(&stage, json!({})).await?;
    Ok(Step::done_with(WorkUpdate::new(), finding(&stage, &written).await?))
}

/// Reports that there are no findings, with the search's reason if there is one.
pub(crate) fn nothing(state: &Work) -> String {
    let mut output = "Nothing that was found says anything about this.".to_owned();
    if !state.remarks.is_empty() {
        output.push_str(&format!(" The search reported: {}", state.remarks.join("; ")));
    }
    output
}

/// Makes the model write the answer; `more` are variables in addition to the usual ones.
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
                "recognized": passage.recognized,
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

/// Turns the text into a finding: citations without a passage are removed and counted, the rest
/// are numbered as the sources that they become.
pub(crate) async fn finding(stage: &Stage<Work>, written: &str) -> Result<Finding, StageError> {
    let passages = &stage.state().passages;
    let checked = stage.check_citations(written, passages.len()).renumbered();
    let mut finding = Finding::text(checked.text.trim())
        .confidence(confidence(&checked.cited))
        .citations_removed(checked.removed);
    for (number, statements) in &checked.statements {
        if let Some(passage) = passages.get(number - 1) {
            let quoted = passage.quoted_for(stage, statements).await?;
            finding = finding.source(source(stage, &quoted));
        }
    }
    Ok(finding)
}

/// An answer without citations is not supported by the documents.
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

/// Characters of a passage that the ranking model reads.
const PREVIEW: usize = 1_200;

/// What the model answers: the given numbers, best first.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
struct Rerank {
    #[schemars(length(max = 64))]
    ranking: Vec<u32>,
}

pub(crate) async fn rerank(stage: Stage<Work>) -> StageResult<Work> {
    let passages = stage.state().passages.clone();
    let ranking = match passages.len() {
        0 | 1 => None,
        _ => {
            let previews: Vec<_> = (1..)
                .zip(&passages)
                .map(|(number, passage)| {
                    let text: String = passage.quote.chars().take(PREVIEW).collect();
                    json!({ "number": number, "title": passage.title, "section": passage.section, "text": text })
                })
                .collect();
            let variables = json!({ "question": stage.task(), "passages": previews });
            let ask =
                Ask::new(Role::Reranker, "rerank", "rerank").prompt("documents_rerank", variables);
            match stage.ask::<Rerank>(ask).await {
                Ok(answer) => {
                    Some(answer.ranking.into_iter().map(|number| number as usize).collect())
                }
                Err(StageError::Failed(error)) => {
                    tracing::warn!(%error, "what was found keeps its order");
                    None
                }
                Err(stop) => return Err(stop),
            }
        }
    };
    let order = reordered(ranking, passages.len());
    Ok(Step::next(WorkUpdate::new().passages(best(&order, &passages))))
}

/// Takes the best, and an equal share of each compared side, if it has enough.
fn best(order: &[usize], passages: &[Passage]) -> Vec<Passage> {
    let sides = passages.iter().map(|passage| passage.side + 1).max().unwrap_or(1);
    let share = (READ / sides).max(1);
    let ranked: Vec<&Passage> = order.iter().filter_map(|place| passages.get(*place)).collect();
    let mut of_side = vec![0; sides];
    let mut taken: BTreeSet<usize> = BTreeSet::new();
    for (rank, passage) in ranked.iter().enumerate() {
        if of_side[passage.side] < share {
            of_side[passage.side] += 1;
            taken.insert(rank);
        }
    }
    // What the sides leave free is the best's.
    for rank in 0..ranked.len() {
        if taken.len() >= READ {
            break;
        }
        taken.insert(rank);
    }
    taken.into_iter().take(READ).filter_map(|rank| ranked.get(rank).copied().cloned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// S3.06
    #[test]
    fn each_side_keeps_its_share_of_passages_whatever_the_ranking_prefers() {
        let passage = |n: usize| Passage {
            document: n.to_string(),
            side: usize::from(n >= 10),
            ..Passage::default()
        };
        let passages: Vec<Passage> = (0..14).map(passage).collect();
        let order: Vec<usize> = (0..14).collect();
        let of = |passages: &[Passage]| -> Vec<String> {
            best(&order, passages).iter().map(|passage| passage.document.clone()).collect()
        };
        assert_eq!(of(&passages), ["0", "1", "2", "3", "10", "11", "12", "13"]);
        // One of the sides has little: the other one gets the rest.
        assert_eq!(of(&passages[..11]), ["0", "1", "2", "3", "4", "5", "6", "10"]);
        assert_eq!(of(&passages[..10]).len(), READ);
    }

    /// The agent reads as many passages as the library's own retrieval does.
    #[test]
    fn as_many_passages_are_read_as_retrieval_gives() {
        assert_eq!(READ, perihelion_documents::Query::new("a question").limit);
    }
}
