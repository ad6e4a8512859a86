//! `documents search`.

use chrono::{DateTime, NaiveDate, Utc};
use serde_json::json;

use super::{InCollection, placed};
use crate::cli::{Error, Exit, output};
use perihelion_runtime::{DocumentFilters, DocumentQuery, Documents};

#[derive(Debug, clap::Args)]
#[group(skip)]
pub struct Args {
    /// The question, or words of its answer
    #[arg(value_name = "TEXT")]
    text: String,
    #[command(flatten)]
    place: InCollection,
    /// Hits at most
    #[arg(long, value_name = "N", default_value_t = 8)]
    limit: usize,
    /// Only in these documents, by id
    #[arg(long, value_name = "ID")]
    document: Vec<String>,
    /// Only in documents of this format, such as pdf
    #[arg(long, value_name = "FORMAT")]
    format: Option<String>,
    /// Only in sections of this title
    #[arg(long, value_name = "TITLE")]
    section: Option<String>,
    /// Only in documents of this author: the name in full, or one word of it
    #[arg(long, value_name = "NAME")]
    person: Option<String>,
    /// Only in documents changed on this day or later, as 2026-01-31
    #[arg(long, value_name = "DATE", value_parser = day)]
    since: Option<DateTime<Utc>>,
    /// Only in documents changed before this day
    #[arg(long, value_name = "DATE", value_parser = day)]
    until: Option<DateTime<Utc>>,
    /// Let the model rank what was found, and show the text around it
    #[arg(long)]
    rerank: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

fn day(text: &str) -> Result<DateTime<Utc>, String> {
    let date: NaiveDate =
        text.parse().map_err(|_| format!("expected a day as 2026-01-31: {text}"))?;
    date.and_hms_opt(0, 0, 0)
        .map(|time| time.and_utc())
        .ok_or_else(|| format!("no such day: {text}"))
}

pub(super) async fn run(documents: &Documents, args: &Args) -> Result<Exit, Error> {
    let mut wanted = Vec::new();
    for given in &args.document {
        wanted.push(documents.find(given).await?.id);
    }
    let mut query = DocumentQuery::new(&args.text);
    query.limit = args.limit.clamp(1, 100);
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
        if args.json {
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
    let hits = documents.search(&query).await?;
    if args.json {
        output::json(&json!({ "hits": hits }))?;
        return Ok(Exit::Done);
    }
    if hits.is_empty() {
        output::note("nothing was found");
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
