//! Documents: listed, read, found by what they say, deleted.

use axum::body::Body;
use axum::extract::{Path, State};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use axum::{BoxError, Json};
use chrono::{DateTime, Utc};
use futures::stream::{self, StreamExt as _};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

use super::kept::{Kept, without_document};
use crate::http::{JsonResult, Query, Refusal};
use perihelion_runtime::{DocumentFilters, DocumentQuery, PageAt};

/// Hits of a search at most.
const MOST: usize = 1_000;

#[derive(Default, Deserialize, JsonSchema)]
#[serde(default)]
pub(super) struct Which {
    /// None: all collections.
    collection: Option<String>,
}

pub(super) async fn list(State(kept): State<Kept>, Query(which): Query<Which>) -> JsonResult {
    let documents = kept.documents().await?;
    let found = documents.list(which.collection.as_deref()).await.map_err(without_document)?;
    let room = documents.room().await.map_err(without_document)?;
    Ok(Json(json!({ "documents": found, "used": room.used, "permitted": room.permitted })))
}

/// Writes a document a line, with its text; one is in memory at a time.
pub(super) async fn export(
    State(kept): State<Kept>,
    Query(which): Query<Which>,
) -> Result<Response, Refusal> {
    let documents = kept.documents().await?;
    let found = documents.list(which.collection.as_deref()).await.map_err(without_document)?;
    let lines = stream::iter(found).then(move |document| {
        let documents = documents.clone();
        async move {
            let Some(exported) = documents.exported(document).await? else {
                return Ok(Vec::new());
            };
            let mut line = serde_json::to_vec(&exported)?;
            line.push(b'\n');
            // An error breaks the answer off, so that no client takes a part for the whole.
            Ok::<_, BoxError>(line)
        }
    });
    let headers = [
        (header::CONTENT_TYPE, "application/x-ndjson"),
        (header::CONTENT_DISPOSITION, "attachment; filename=\"documents.jsonl\""),
    ];
    Ok((headers, Body::from_stream(lines)).into_response())
}

#[derive(Default, Deserialize, JsonSchema)]
#[serde(default)]
pub(super) struct Question {
    text: String,
    collection: Option<String>,
    /// Id of the document that alone is searched.
    document: Option<String>,
    /// Format, such as pdf.
    format: Option<String>,
    /// Title of the section, in full.
    section: Option<String>,
    /// Name of an author, in full or one word of it.
    person: Option<String>,
    /// Only in documents changed at this time or later.
    since: Option<DateTime<Utc>>,
    /// Only in documents changed before this time.
    until: Option<DateTime<Utc>>,
    limit: Option<usize>,
}

pub(super) async fn search(
    State(kept): State<Kept>,
    Query(question): Query<Question>,
) -> JsonResult {
    let mut wanted = DocumentQuery::new(question.text);
    wanted.limit = question.limit.unwrap_or(wanted.limit).clamp(1, MOST);
    wanted.filters = DocumentFilters {
        collection: question.collection,
        documents: question.document.into_iter().collect(),
        format: question.format,
        section: question.section,
        person: question.person,
        since: question.since,
        until: question.until,
    };
    let found = kept.documents().await?.search(&wanted).await.map_err(without_document)?;
    Ok(Json(json!(found)))
}

#[derive(Default, Deserialize, JsonSchema)]
#[serde(default)]
pub(super) struct Part {
    /// In characters.
    start: Option<usize>,
    end: Option<usize>,
}

pub(super) async fn get(
    State(kept): State<Kept>,
    Path(id): Path<String>,
    Query(part): Query<Part>,
) -> JsonResult {
    let documents = kept.documents().await?;
    let mut shown = json!(documents.find(&id).await.map_err(without_document)?);
    let read = documents.read(&id, part.start, part.end).await.map_err(without_document)?;
    shown["text"] = json!(read.text);
    shown["start"] = json!(read.start);
    shown["end"] = json!(read.end);
    Ok(Json(shown))
}

/// Which page is meant: its number, or what stands on it.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(default)]
pub(super) struct WhichPage {
    /// From 1.
    number: Option<u32>,
    /// A place in characters, such as the start of a citation.
    at: Option<usize>,
}

pub(super) async fn page(
    State(kept): State<Kept>,
    Path(id): Path<String>,
    Query(which): Query<WhichPage>,
) -> JsonResult {
    let at = match (which.number, which.at) {
        (Some(number), None) => PageAt::Number(number),
        (None, Some(at)) => PageAt::Character(at),
        _ => return Err(Refusal::invalid("pass either ?number=1 or ?at=CHARACTER")),
    };
    let found = kept.documents().await?.page(&id, at).await.map_err(without_document)?;
    let page = found.ok_or_else(|| {
        Refusal::missing("this document has no pages; read a range with ?start=…&end=…")
    })?;
    Ok(Json(json!(page)))
}

pub(super) async fn delete(
    State(kept): State<Kept>,
    Path(id): Path<String>,
) -> Result<StatusCode, Refusal> {
    kept.documents().await?.delete(&id).await.map_err(without_document)?;
    Ok(StatusCode::NO_CONTENT)
}
