//! `documents search`.

use chrono::{DateTime, NaiveDate, Utc};

use super::{InCollection, placed};
use crate::cli::{Error, Exit, output};
use perihelion_runtime::{DocumentFilters, DocumentQuery, Documents};

/// Most hits of one search.
const MOST: usize = 1_000;

#[derive(Debug, clap::Args)]
#[group(skip)]
pub struct Args {
    /// Question, or keywords of the answer
    #[arg(value_name = "TEXT")]
    text: String,
    #[command(flatten)]
    place: InCollection,
    /// Maximum number of hits
    #[arg(long, value_name = "N", default_value_t = 8)]
    limit: usize,
    /// Only search this document, by ID. Repeatable
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

fn day(text: &str) -> Result<DateTime<Utc>, String> {
    let date: NaiveDate =
        text.parse().map_err(|_| format!("expected a date such as 2026-01-31: {text}"))?;
    date.and_hms_opt(0, 0, 0)
        .map(|time| time.and_utc())
        .ok_or_else(|| format!("no such date: {text}"))
}

pub(super) async fn run(documents: &Documents, args: &Args, json: bool) -> Result<Exit, Error> {
    let mut wanted = Vec::new();
    for given in &args.document {
        wanted.push(documents.find(given).await?.id);
    }
    let mut query = DocumentQuery::new(&args.text);
    query.limit = args.limit.clamp(1, MOST);
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
            output::json(&found)?;
            return Ok(Exit::Done);
        }
        for passage in &found.passages {
            let source = &passage.source;
            let at = placed(source.page, source.section.as_deref());
            output::text(&format!(
                "[{}] {} {at}\n{}\n",
                passage.number, source.title, passage.text
            ))?;
        }
        return Ok(Exit::Done);
    }
    let found = documents.search(&query).await?;
    warn(found.by_words_only.as_deref());
    if json {
        output::json(&found)?;
        return Ok(Exit::Done);
    }
    let hits = found.hits;
    if hits.is_empty() {
        output::note("no matching passages");
    }
    for (number, hit) in (1..).zip(&hits) {
        let at = placed(hit.page, hit.section.as_deref());
        let id: String = hit.document.chars().take(12).collect();
        output::text(&format!(
            "[{number}] {}  {at}  ({id} {}..{})\n{}\n",
            hit.title, hit.start, hit.end, hit.quote
        ))?;
    }
    Ok(Exit::Done)
}

/// Says why a search went without the meaning of the words.
fn warn(by_words_only: Option<&str>) {
    if let Some(why) = by_words_only {
        output::warning(&format!(
            "used keyword search only, because the embeddings endpoint failed: {why}"
        ));
    }
}
