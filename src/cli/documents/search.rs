//! `documents search` and `evaluate`.

use std::path::PathBuf;

use chrono::{DateTime, NaiveDate, NaiveTime, Utc};

use super::{InCollection, known_as, placed};
use crate::cli::{Exit, Result, files, output};
use perihelion_runtime::{
    DocumentFilters, DocumentQuery, Documents, SearchWeights, read_judgements,
};
use perihelion_settings::config::Invalid;

const MOST: usize = 1_000;

#[derive(Debug, clap::Args)]
#[group(skip)]
pub struct Args {
    /// Question, or keywords of the answer
    #[arg(value_name = "TEXT")]
    text: String,
    #[command(flatten)]
    place: InCollection,
    /// Maximum number of hits, or 0 for as many as possible
    #[arg(long, value_name = "N", default_value_t = 8)]
    limit: usize,
    /// Only search this document, by ID or path. Repeatable
    #[arg(long, value_name = "ID")]
    document: Vec<String>,
    /// Only search documents of this format, such as pdf
    #[arg(long, value_name = "FORMAT")]
    format: Option<String>,
    /// Only search sections with this title
    #[arg(long, value_name = "TITLE")]
    section: Option<String>,
    /// Only search documents by this author. Use the full name or one word of it
    #[arg(long, value_name = "NAME")]
    person: Option<String>,
    /// Only search documents changed on or after this day, such as 2026-01-31
    #[arg(long, value_name = "DATE", value_parser = day)]
    since: Option<DateTime<Utc>>,
    /// Only search documents changed before this day
    #[arg(long, value_name = "DATE", value_parser = day)]
    until: Option<DateTime<Utc>>,
    /// Rank the hits with the model, and show the text around them
    #[arg(long)]
    rerank: bool,
}

fn day(text: &str) -> Result<DateTime<Utc>, Invalid> {
    let expected = "a date such as 2026-01-31";
    let date: Result<NaiveDate, _> = text.parse();
    let date = date.map_err(|_| Invalid::Expected { expected, found: text.to_owned() })?;
    Ok(date.and_time(NaiveTime::MIN).and_utc())
}

pub(super) async fn run(documents: &Documents, args: &Args, json: bool) -> Result<()> {
    let mut wanted = Vec::new();
    for given in &args.document {
        wanted.push(documents.find(&known_as(documents, given).await).await?.id);
    }
    let mut query = DocumentQuery::new(&args.text);
    query.limit = if args.limit == 0 { MOST } else { args.limit.min(MOST) };
    query.filters = DocumentFilters {
        collection: args.place.collection.clone(),
        documents: wanted,
        format: args.format.clone(),
        section: args.section.clone(),
        person: args.person.clone(),
        since: args.since,
        until: args.until,
    };
    if args.rerank {
        let found = documents.retrieve(&query).await?;
        warn(found.by_words_only.as_deref());
        if json {
            return output::json(&found);
        }
        for passage in &found.passages {
            let source = &passage.source;
            let at = placed(source.page, source.section.as_deref(), source.recognized);
            output::text(&format!(
                "[{}] {} {at}\n{}\n",
                passage.number, source.title, passage.text
            ))?;
        }
        return Ok(());
    }
    let found = documents.search(&query).await?;
    warn(found.by_words_only.as_deref());
    if json {
        return output::json(&found);
    }
    let hits = found.hits;
    if hits.is_empty() {
        output::note("no matching passages");
    }
    for (number, hit) in (1..).zip(&hits) {
        let at = placed(hit.page, hit.section.as_deref(), hit.recognized);
        let id: String = hit.document.chars().take(12).collect();
        output::text(&format!(
            "[{number}] {}  {at}  ({id} {}..{})\n{}\n",
            hit.title, hit.start, hit.end, hit.quote
        ))?;
    }
    Ok(())
}

fn warn(by_words_only: Option<&str>) {
    if let Some(why) = by_words_only {
        output::warning(&format!("used keyword search only: {why}"));
    }
}

#[derive(Debug, clap::Args)]
#[group(skip)]
pub struct EvaluateArgs {
    /// Judgements as JSON Lines, each with a `question` and a `quote`, a `document` or both
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Fail if recall among the first ten hits is lower
    #[arg(long, value_name = "0-1")]
    least_recall: Option<f64>,
    /// Weight of keyword search. Defaults to the settings
    #[arg(long, alias = "words", value_name = "N", value_parser = weight, requires = "vector_weight")]
    keyword_weight: Option<f64>,
    /// Weight of vector search. Defaults to the settings
    #[arg(long, alias = "meaning", value_name = "N", value_parser = weight, requires = "keyword_weight")]
    vector_weight: Option<f64>,
    /// Rank the hits with the model, as the documents agent does, and check whole passages
    #[arg(long)]
    rerank: bool,
}

fn weight(text: &str) -> Result<f64, &'static str> {
    let weight = text.parse().ok().filter(|weight: &f64| weight.is_finite() && *weight >= 0.0);
    weight.ok_or("expected a number of at least 0")
}

pub(super) async fn evaluate(
    documents: &Documents,
    args: &EvaluateArgs,
    json: bool,
) -> Result<Exit> {
    let judgements =
        read_judgements(&files::read(&args.file)?).map_err(perihelion_runtime::Error::from)?;
    let weights = args.keyword_weight.zip(args.vector_weight);
    let weights = weights.map(|(words, meaning)| SearchWeights { words, meaning });
    let measures = documents.evaluate(&judgements, weights, args.rerank).await?;
    if json {
        output::json(&measures)?;
    } else {
        output::text(&format!(
            "questions  {}\nrecall@10  {:.3}\nMRR        {:.3}\nnDCG@10    {:.3}",
            measures.questions,
            measures.recall_at_10,
            measures.mean_reciprocal_rank,
            measures.ndcg_at_10
        ))?;
        for missed in &measures.missed {
            output::note(&format!("not found: {missed}"));
        }
    }
    let enough = args.least_recall.is_none_or(|least| measures.recall_at_10 >= least);
    Ok(if enough { Exit::Done } else { Exit::Failed })
}
