//! Measures retrieval on a user's own judgements: questions, and what should be found for each.

use perihelion_recall::{EmbeddingModel, Weights};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Error, Library, Query, Reranker, Result};

/// A question and its answer: one line of JSON in a file of judgments.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Judgement {
    pub question: String,
    /// Words of the passage with the answer.
    pub quote: Option<String>,
    /// Path, title or id of the document that answers it.
    pub document: Option<String>,
}

/// How well retrieval does, over all questions.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Measures {
    pub questions: usize,
    /// Share of the questions whose answer is among the first ten.
    pub recall_at_10: f64,
    /// Mean of one over the rank of the first right one.
    pub mean_reciprocal_rank: f64,
    pub ndcg_at_10: f64,
    /// Questions whose answer was not found.
    pub missed: Vec<String>,
}

/// Reads judgements, one object of JSON a line.
///
/// # Errors
/// [`Error::Judgement`] naming the line.
pub fn read_judgements(text: &str) -> Result<Vec<Judgement>> {
    let lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
    let judgements = lines.map(|(number, line)| {
        let refused = |reason| Error::Judgement { line: number + 1, reason };
        let judgement: Judgement =
            serde_json::from_str(line).map_err(|error| refused(error.into()))?;
        if judgement.quote.is_none() && judgement.document.is_none() {
            Err(refused("it needs `quote`, `document` or both".into()))
        } else {
            Ok(judgement)
        }
    });
    judgements.collect()
}

#[derive(Clone, Copy, Default)]
pub struct Asking<'a> {
    /// The library's defaults.
    pub weights: Option<Weights>,
    pub model: Option<&'a dyn EmbeddingModel>,
    /// Ranks the results; then each hit is a parent, as an agent reads it.
    pub reranker: Option<&'a dyn Reranker>,
}

/// Hits that count.
const FIRST: usize = 10;

impl Library {
    pub async fn evaluate(&self, judgements: &[Judgement], asking: Asking<'_>) -> Result<Measures> {
        let mut measures = Measures { questions: judgements.len(), ..Measures::default() };
        let documents = self.list(None).await?;
        for judgement in judgements {
            let hits = self.ask(&judgement.question, asking).await?;
            let right: Vec<bool> = hits
                .iter()
                .map(|(id, text)| {
                    let of_document = judgement.document.as_ref().is_none_or(|wanted| {
                        let document = documents.iter().find(|one| one.id == *id);
                        document.is_some_and(|one| {
                            one.id == *wanted || one.title == *wanted || one.path.ends_with(wanted)
                        })
                    });
                    let says = judgement
                        .quote
                        .as_ref()
                        .is_none_or(|quote| plain(text).contains(&plain(quote)));
                    of_document && says
                })
                .collect();
            match right.iter().position(|right| *right) {
                Some(rank) => {
                    measures.recall_at_10 += 1.0;
                    measures.mean_reciprocal_rank += 1.0 / (rank as f64 + 1.0);
                    measures.ndcg_at_10 += 1.0 / (rank as f64 + 2.0).log2();
                }
                None => measures.missed.push(judgement.question.clone()),
            }
        }
        let count = judgements.len().max(1) as f64;
        measures.recall_at_10 /= count;
        measures.mean_reciprocal_rank /= count;
        measures.ndcg_at_10 /= count;
        Ok(measures)
    }

    async fn ask(&self, question: &str, asking: Asking<'_>) -> Result<Vec<(String, String)>> {
        let mut query = Query::new(question);
        query.limit = FIRST;
        query.weights = asking.weights;
        if asking.reranker.is_none() {
            let found = self.search(&query, asking.model).await?;
            return Ok(found.hits.into_iter().map(|hit| (hit.document, hit.quote)).collect());
        }
        let found = self.retrieve(&query, asking.model, asking.reranker).await?;
        Ok(found.passages.into_iter().map(|one| (one.source.document, one.text)).collect())
    }
}

fn plain(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ").to_lowercase()
}
