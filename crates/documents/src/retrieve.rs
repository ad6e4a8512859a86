//! Retrieval: filters, then words and meaning, fused; the best reranked; what is read are their parents.

use std::collections::{BTreeMap, BTreeSet};

use chrono::{DateTime, Utc};
use perihelion_database::query;
use perihelion_parse::Format;
use perihelion_recall::{
    EmbeddingModel, Filter, Hit, Index as _, QueryVector, Scope, Search, Weights,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use sqlx::AssertSqlSafe;

use crate::library::KIND;
use crate::prepare::Payload;
use crate::{Error, Library, Reranker, people, reordered, text};

/// Children that are reranked.
const CANDIDATES: usize = 20;

/// Parents that are read.
const PASSAGES: usize = 8;

/// What a document must be to be found at all.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Filters {
    /// Name of the collection.
    pub collection: Option<String>,
    /// Ids of documents.
    pub documents: Vec<String>,
    /// Format, such as pdf or docx; endings of files are understood.
    pub format: Option<String>,
    /// Title of the section, in full.
    pub section: Option<String>,
    /// Name of an author, in full or one word of it.
    pub person: Option<String>,
    /// Changed at this time or later.
    pub since: Option<DateTime<Utc>>,
    /// Changed before this time.
    pub until: Option<DateTime<Utc>>,
}

/// A question to the documents of a scope.
#[derive(Clone, Debug)]
pub struct Query {
    pub text: String,
    pub filters: Filters,
    pub weights: Weights,
    /// Passages wanted at most.
    pub limit: usize,
}

impl Query {
    pub fn new(text: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            filters: Filters::default(),
            weights: Weights::default(),
            limit: PASSAGES,
        }
    }
}

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
    /// Comparable within one answer only; higher is better.
    pub score: f64,
}

/// What a model reads: a hit and the text around it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Passage {
    /// From 1; what `[n]` in an answer refers to.
    pub number: usize,
    pub source: Source,
    /// The parent's text, which holds the quote.
    pub text: String,
}

/// What was found.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Retrieved {
    /// Best first, one per parent.
    pub passages: Vec<Passage>,
    /// How sure it is that the passages answer, 0 to 1: what the question's words weigh that stands in the best ones.
    pub confidence: f64,
    pub by_meaning: bool,
    pub reranked: bool,
}

/// A child that was found.
struct Candidate {
    payload: Payload,
    score: f64,
    coverage: f64,
    similarity: Option<f64>,
    quote: String,
    title: String,
}

impl Library {
    /// Finds what answers a question among the documents of a scope.
    ///
    /// Without a model, or when it fails, it looks by words alone; when the reranker fails, the fused order stays.
    ///
    /// # Errors
    /// [`Error::EmptyQuery`], [`Error::Database`].
    pub async fn retrieve(
        &self,
        scope: &Scope,
        asked: &Query,
        model: Option<&dyn EmbeddingModel>,
        reranker: Option<&dyn Reranker>,
    ) -> Result<Retrieved, Error> {
        let (candidates, by_meaning) = self.candidates(scope, asked, model, CANDIDATES).await?;
        let texts: Vec<String> =
            candidates.iter().map(|one| format!("{}\n{}", one.title, one.quote)).collect();
        let ranking = match reranker {
            Some(reranker) if candidates.len() > 1 => reranker.rank(&asked.text, &texts).await,
            _ => None,
        };
        let reranked = ranking.is_some();
        let order = reordered(ranking, candidates.len());
        let confidence = confidence(&candidates, &order);
        let mut passages: Vec<Passage> = Vec::new();
        let mut seen = Vec::new();
        for candidate in order.iter().filter_map(|place| candidates.get(*place)) {
            let parent = (candidate.payload.document.clone(), candidate.payload.parent);
            if passages.len() == asked.limit || seen.contains(&parent) {
                continue;
            }
            let text = self.parent_text(scope, &parent.0, parent.1).await?;
            passages.push(Passage {
                number: passages.len() + 1,
                source: source(candidate),
                text: text.unwrap_or_else(|| candidate.quote.clone()),
            });
            seen.push(parent);
        }
        Ok(Retrieved { passages, confidence, by_meaning, reranked })
    }

    /// Finds pieces by words and meaning, without rerank; the hits of a search that a person or a tool asks for.
    ///
    /// # Errors
    /// As [`Library::retrieve`].
    pub async fn search(
        &self,
        scope: &Scope,
        asked: &Query,
        model: Option<&dyn EmbeddingModel>,
    ) -> Result<Vec<Source>, Error> {
        let (candidates, _) = self.candidates(scope, asked, model, asked.limit).await?;
        Ok(candidates.iter().map(source).collect())
    }

    async fn candidates(
        &self,
        scope: &Scope,
        asked: &Query,
        model: Option<&dyn EmbeddingModel>,
        count: usize,
    ) -> Result<(Vec<Candidate>, bool), Error> {
        if asked.text.trim().is_empty() {
            return Err(Error::EmptyQuery);
        }
        let vector = match model {
            Some(model) => self.vector(model, &asked.text).await,
            None => None,
        };
        let mut search = Search::new(scope, KIND, &asked.text)
            .limit(count)
            .with_vector(vector)
            .with_filter(filter(&asked.filters));
        search.weights = asked.weights;
        let found = self.index.search(&search).await?;
        let hits = found.hits.into_iter().filter_map(|hit| {
            let payload: Payload = serde_json::from_value(hit.payload.clone()).ok()?;
            Some((hit, payload))
        });
        let hits: Vec<(Hit, Payload)> = hits.collect();
        let documents: BTreeSet<&str> =
            hits.iter().map(|(_, payload)| payload.document.as_str()).collect();
        let bodies = self.titled_bodies(scope, documents).await?;
        let mut candidates = Vec::new();
        for (hit, payload) in hits {
            let Some((title, body)) = bodies.get(&payload.document) else { continue };
            let Some(quote) = text::part(body, payload.start, payload.end) else { continue };
            candidates.push(candidate(&hit, payload, quote.to_owned(), title.clone()));
        }
        Ok((candidates, found.by_meaning))
    }

    async fn vector(&self, model: &dyn EmbeddingModel, text: &str) -> Option<QueryVector> {
        let vectors = model.embed(&[text.to_owned()]).await.ok()?;
        let values = vectors.into_iter().next()?;
        Some(QueryVector { model: model.model().to_owned(), values })
    }

    /// Returns titles and texts of documents, by their ids.
    async fn titled_bodies(
        &self,
        scope: &Scope,
        ids: BTreeSet<&str>,
    ) -> Result<BTreeMap<String, (String, String)>, Error> {
        if ids.is_empty() {
            return Ok(BTreeMap::new());
        }
        let database = self.database_of(scope);
        let each = database.dialect().each("$3");
        let sql = format!(
            "SELECT d.id, d.title, t.body FROM document d JOIN document_text t
             ON t.tenant = d.tenant AND t.owner = d.owner AND t.id = d.id
             WHERE d.tenant = $1 AND d.owner = $2 AND d.id IN {each}"
        );
        let ids: Vec<String> = ids.into_iter().map(str::to_owned).collect();
        let read = query(AssertSqlSafe(sql)).bind(scope.tenant()).bind(scope.owner()).bind(ids);
        let rows = database.fetch_all(&read).await?;
        rows.iter().map(|row| Ok((row.get(0)?, (row.get(1)?, row.get(2)?)))).collect()
    }

    async fn parent_text(
        &self,
        scope: &Scope,
        id: &str,
        number: usize,
    ) -> Result<Option<String>, Error> {
        let read = query(
            "SELECT substr(t.body, CAST(p.first + 1 AS INTEGER), CAST(p.past - p.first AS INTEGER))
             FROM document_parent p JOIN document_text t
             ON t.tenant = p.tenant AND t.owner = p.owner AND t.id = p.id
             WHERE p.tenant = $1 AND p.owner = $2 AND p.id = $3 AND p.number = $4",
        );
        let number = i64::try_from(number).unwrap_or(i64::MAX);
        let read = read.bind(scope.tenant()).bind(scope.owner()).bind(id).bind(number);
        match self.database_of(scope).fetch_optional(&read).await? {
            Some(row) => Ok(Some(row.get(0)?)),
            None => Ok(None),
        }
    }
}

fn candidate(hit: &Hit, payload: Payload, quote: String, title: String) -> Candidate {
    Candidate {
        payload,
        score: hit.score,
        coverage: hit.coverage,
        similarity: hit.similarity,
        quote,
        title,
    }
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
        score: candidate.score,
    }
}

/// Returns the name under which a format is kept: `markdown` for `md`.
fn format(wanted: &str) -> String {
    let known = Format::by_name(&format!("a.{wanted}"));
    known.map_or_else(|| wanted.to_lowercase(), |format| format.as_str().to_owned())
}

fn filter(filters: &Filters) -> Filter {
    let section = filters.section.as_ref().map(|section| section.to_lowercase());
    let attributes = [
        ("collection", filters.collection.clone()),
        ("format", filters.format.as_deref().map(format)),
        ("section", section),
    ];
    let person = filters.person.as_deref().map(|name| (people::key(name), people::IS.to_owned()));
    Filter {
        attributes: attributes
            .into_iter()
            .filter_map(|(name, value)| Some((name.to_owned(), value?)))
            .chain(person)
            .collect(),
        parents: filters.documents.clone(),
        since: filters.since,
        until: filters.until,
    }
}

/// How much the three best say of the question: by its words, or by its meaning where that is more.
fn confidence(candidates: &[Candidate], order: &[usize]) -> f64 {
    let best = order.iter().take(3).filter_map(|place| candidates.get(*place));
    let sure = best.map(|one| one.coverage.max(one.similarity.unwrap_or(0.0)));
    sure.fold(0.0, f64::max).clamp(0.0, 1.0)
}
