//! Lets a model rank what was found; whatever goes wrong, the order that was there stays.

use perihelion_documents::reordered;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::{READ, Work, WorkUpdate};
use crate::agents::pipeline::{Ask, Role, Stage, StageError, StageResult, Step};

/// Characters of a passage that the ranking model reads.
const PREVIEW: usize = 1_200;

/// What the model answers: the given numbers, best first.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
struct Rerank {
    ranking: Vec<u32>,
}

pub(in crate::agents) async fn rerank(stage: Stage<Work>) -> StageResult<Work> {
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
    let best = order.into_iter().take(READ).filter_map(|place| passages.get(place).cloned());
    Ok(Step::next(WorkUpdate::new().passages(best.collect())))
}
