//! Retrieval: filters, then keyword and vector search, fused; the best results are reranked, and their parents are
//! read.

use std::collections::{BTreeMap, BTreeSet};

use perihelion_recall::{EmbeddingError, EmbeddingModel, Hit, QueryVector, Search};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use sqlx::AssertSqlSafe;

use crate::library::KIND;
use crate::prepare::Payload;
use crate::question::filter;
use crate::segments::Range;
use crate::{Error, Library, Query, Reranker, Result, reordered};

/// Children that are reranked.
const CANDIDATES: usize = 20;

/// A place in a document: `quote` is `text[start..end]`, counted in characters.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Source {
    /// Id of the document.
    pub document: String,
    pub title: String,
    /// Page, slide or sheet, from 1; null where the format has none.
    pub page: Option<u32>,
    /// Titles of the sections around it, outermost first, joined by ` › `; null outside of any.
    pub section: Option<String>,
    pub start: usize,
    pub end: usize,
    pub quote: String,
    /// The confidence, in percent, with which the quote was recognized in a picture; missing where it was not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recognized: Option<u8>,
    /// Comparable within one answer only; higher is better.
    pub score: f64,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Passage {
    /// From 1; the meaning of `[n]` in an answer.
    pub number: usize,
    pub source: Source,
    /// The parent's text, which holds the quote.
    pub text: String,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Retrieved {
    /// Best first, one per parent.
    pub passages: Vec<Passage>,
    /// The confidence that the passages contain the answer, from 0 to 1: the share of the question's words in the best
    /// ones.
    pub confidence: f64,
    pub by_meaning: bool,
    pub reranked: bool,
    /// Why only words counted: the embedding model did not answer, or made no document's vector. `None` if neither is
    /// so, or if there is no model.
    pub by_words_only: Option<String>,
}

/// The result of a search without ranking.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Found {
    /// Best first.
    pub hits: Vec<Source>,
    pub by_words_only: Option<String>,
}

struct Candidates {
    best: Vec<Candidate>,
    by_meaning: bool,
    by_words_only: Option<String>,
}

struct Candidate {
    payload: Payload,
    score: f64,
    coverage: f64,
    similarity: Option<f64>,
    quote: String,
    title: String,
}

/// A parent: the id of its document, and its number there.
type ParentKey = (String, usize);

impl Candidate {
    fn parent(&self) -> ParentKey {
        (self.payload.document.clone(), self.payload.parent)
    }
}

#[derive(Clone, Copy)]
enum Enough {
    Children(usize),
    /// The number of hits with enough parents, which are reranked.
    Parents(usize),
}

impl Enough {
    fn at_first(self) -> usize {
        match self {
            Self::Children(count) => count,
            Self::Parents(count) => CANDIDATES.max(count),
        }
    }

    /// Returns how many of these are enough; `None` if there are too few.
    fn of(self, hits: &[(Hit, Payload)]) -> Option<usize> {
        let Self::Parents(wanted) = self else { return Some(hits.len()) };
        let mut parents = BTreeSet::new();
        for (place, (_, payload)) in hits.iter().enumerate() {
            if parents.len() == wanted && place >= CANDIDATES {
                return Some(place);
            }
            parents.insert((payload.document.as_str(), payload.parent));
        }
        (parents.len() >= wanted).then_some(hits.len())
    }
}

impl Library {
    /// Finds passages for a question among the documents of a scope: as many parents as requested, if there are enough.
    ///
    /// Without a model, or when it fails, it looks by words alone; when the reranker fails, the fused order stays.
    ///
    /// # Errors
    /// [`Error::EmptyQuery`], [`Error::Database`].
    pub async fn retrieve(
        &self,
        asked: &Query,
        model: Option<&dyn EmbeddingModel>,
        reranker: Option<&dyn Reranker>,
    ) -> Result<Retrieved> {
        let enough = Enough::Parents(asked.limit);
        let Candidates { best: candidates, by_meaning, by_words_only } =
            self.candidates(asked, model, enough).await?;
        let best = candidates.get(..CANDIDATES).unwrap_or(&candidates);
        let texts: Vec<String> =
            best.iter().map(|one| format!("{}\n{}", one.title, one.quote)).collect();
        let ranking = match reranker {
            Some(reranker) if texts.len() > 1 => reranker.rank(&asked.text, &texts).await,
            _ => None,
        };
        let reranked = ranking.is_some();
        let mut order = reordered(ranking, texts.len());
        order.extend(texts.len()..candidates.len());
        let confidence = confidence(&candidates, &order);
        let mut seen: BTreeSet<ParentKey> = BTreeSet::new();
        let ordered = order.iter().filter_map(|place| candidates.get(*place));
        let first = ordered.filter(|candidate| seen.insert(candidate.parent())).take(asked.limit);
        let first: Vec<&Candidate> = first.collect();
        let parents: Vec<ParentKey> = first.iter().map(|one| one.parent()).collect();
        let mut texts = self.parent_texts(parents).await?;
        let passages = (1..).zip(first).map(|(number, candidate)| Passage {
            number,
            source: source(candidate),
            text: texts.remove(&candidate.parent()).unwrap_or_else(|| candidate.quote.clone()),
        });
        let passages = passages.collect();
        Ok(Retrieved { passages, confidence, by_meaning, reranked, by_words_only })
    }

    /// Finds pieces by words and meaning, without rerank; the hits of a search that a person or a tool asks for.
    pub async fn search(&self, asked: &Query, model: Option<&dyn EmbeddingModel>) -> Result<Found> {
        let enough = Enough::Children(asked.limit);
        let found = self.candidates(asked, model, enough).await?;
        let hits = found.best.iter().map(source).collect();
        Ok(Found { hits, by_words_only: found.by_words_only })
    }

    async fn candidates(
        &self,
        asked: &Query,
        model: Option<&dyn EmbeddingModel>,
        enough: Enough,
    ) -> Result<Candidates> {
        if asked.text.trim().is_empty() {
            return Err(Error::EmptyQuery);
        }
        let vector = match model {
            Some(model) => vector(model, &asked.text).await.map(Some),
            None => Ok(None),
        };
        let mut failed = vector.as_ref().err().map(ToString::to_string);
        let asked_by = vector.as_ref().ok().and_then(|vector| Some(vector.as_ref()?.model.clone()));
        let mut search = Search::new(&self.scope, KIND, &asked.text)
            .limit(enough.at_first())
            .with_vector(vector.ok().flatten())
            .with_filter(filter(&asked.filters));
        search.weights = asked.weights.unwrap_or(self.weights);
        let (hits, by_meaning) = loop {
            let found = match self.index.search(&search).await {
                Err(error @ perihelion_recall::Error::Dimension { .. }) => {
                    failed = Some(error.to_string());
                    search.vector = None;
                    continue;
                }
                found => found?,
            };
            let are_all = found.hits.len() < search.limit;
            let hits = found.hits.into_iter().filter_map(|hit| {
                let payload: Payload = serde_json::from_value(hit.payload.clone()).ok()?;
                Some((hit, payload))
            });
            let mut hits: Vec<(Hit, Payload)> = hits.collect();
            match enough.of(&hits) {
                None if !are_all => search.limit *= 2,
                count => {
                    hits.truncate(count.unwrap_or(hits.len()));
                    break (hits, found.by_meaning);
                }
            }
        };
        let unknown = asked_by.filter(|_| !by_meaning).map(|model| {
            format!(
                "no document has a vector of the model {model}; run `perihelion documents reindex`"
            )
        });
        let by_words_only = failed.or(unknown);
        let titles = self.titles(&hits).await?;
        let ranges = hits.iter().map(|(_, payload)| payload.range());
        let quotes = self.texts(&ranges.collect::<Vec<_>>()).await?;
        let candidates = hits.into_iter().zip(quotes).filter_map(|((hit, payload), quote)| {
            let title = titles.get(&payload.document)?.clone();
            let Hit { score, coverage, similarity, .. } = hit;
            Some(Candidate { payload, score, coverage, similarity, quote: quote?, title })
        });
        let mut best: Vec<Candidate> = candidates.collect();
        let quotes = best.iter().filter(|one| one.payload.page.is_some());
        let quotes = quotes.map(|one| (one.payload.range(), one.quote.as_str()));
        let pages = self.pages_of_matches(&asked.text, &quotes.collect::<Vec<_>>()).await?;
        let paged = best.iter_mut().filter(|one| one.payload.page.is_some());
        for (candidate, page) in paged.zip(pages) {
            candidate.payload.page = page.or(candidate.payload.page);
        }
        Ok(Candidates { best, by_meaning, by_words_only })
    }

    async fn titles(&self, hits: &[(Hit, Payload)]) -> Result<BTreeMap<String, String>> {
        let ids: BTreeSet<&String> = hits.iter().map(|(_, payload)| &payload.document).collect();
        if ids.is_empty() {
            return Ok(BTreeMap::new());
        }
        let database = self.database();
        let one_of = database.dialect().one_of("$3");
        let sql = format!(
            "SELECT id, title FROM document WHERE tenant = $1 AND owner = $2 AND id {one_of}"
        );
        let ids: Vec<String> = ids.into_iter().cloned().collect();
        let read = self.query(AssertSqlSafe(sql)).bind(ids);
        let rows = database.fetch_all(&read).await?;
        rows.iter().map(|row| Ok((row.get(0)?, row.get(1)?))).collect()
    }

    async fn parent_texts(&self, parents: Vec<ParentKey>) -> Result<BTreeMap<ParentKey, String>> {
        if parents.is_empty() {
            return Ok(BTreeMap::new());
        }
        let wanted = parents.iter().map(|(id, number)| (id.as_str(), *number));
        let rows = self.numbered("document_parent", "t.first, t.past", wanted).await?;
        let mut keys = Vec::new();
        let mut ranges = Vec::new();
        for row in &rows {
            let count =
                |column| Ok::<_, Error>(usize::try_from(row.get::<i64>(column)?).unwrap_or(0));
            let document: String = row.get(0)?;
            keys.push((document.clone(), count(1)?));
            ranges.push(Range { document, start: count(2)?, end: count(3)? });
        }
        let texts = self.texts(&ranges).await?;
        Ok(keys.into_iter().zip(texts).filter_map(|(key, text)| Some((key, text?))).collect())
    }
}

async fn vector(model: &dyn EmbeddingModel, text: &str) -> Result<QueryVector, EmbeddingError> {
    let vectors = model.embed(&[text.to_owned()]).await?;
    let none = || EmbeddingError::Failed("the endpoint answered without a vector".to_owned());
    let values = vectors.into_iter().next().ok_or_else(none)?;
    Ok(QueryVector { model: model.model().to_owned(), values })
}

fn source(candidate: &Candidate) -> Source {
    let payload = &candidate.payload;
    Source {
        document: payload.document.clone(),
        title: candidate.title.clone(),
        page: payload.page,
        section: (!payload.section.is_empty()).then(|| payload.section.join(" › ")),
        start: payload.start,
        end: payload.end,
        quote: candidate.quote.clone(),
        recognized: payload.recognized,
        score: candidate.score,
    }
}

/// The share of the question that the three best contain: by words, or by meaning if that is higher.
fn confidence(candidates: &[Candidate], order: &[usize]) -> f64 {
    let best = order.iter().take(3).filter_map(|place| candidates.get(*place));
    let sure = best.map(|one| one.coverage.max(one.similarity.unwrap_or(0.0)));
    sure.fold(0.0, f64::max).clamp(0.0, 1.0)
}
