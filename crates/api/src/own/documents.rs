//! Documents: added, as the body itself or as a file of a form; listed, read, searched, deleted.

use axum::body::{Body, Bytes};
use axum::extract::multipart::{Multipart, MultipartError};
use axum::extract::{FromRequest as _, Path, Request, State};
use axum::http::{StatusCode, header};
use axum::response::IntoResponse as _;
use axum::{BoxError, Json};
use chrono::{DateTime, Utc};
use futures::stream::{self, StreamExt as _};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

use super::kept::{Kept, without_document};
use crate::http::{JsonResult, Query, Refusal, ResponseResult, StatusResult};
use perihelion_runtime::{DEFAULT_COLLECTION, DocumentFilters, DocumentQuery, PageAt};

/// Hits of a search at most.
const MOST: usize = 1_000;

#[derive(Default, Deserialize, JsonSchema)]
#[serde(default)]
pub(super) struct Which {
    /// None: all collections.
    collection: Option<String>,
}

pub(super) async fn list(kept: State<Kept>, Query(which): Query<Which>) -> JsonResult {
    let documents = kept.documents().await?;
    let found = documents.list(which.collection.as_deref()).await.map_err(without_document)?;
    let room = documents.room().await.map_err(without_document)?;
    Ok(Json(json!({
        "documents": found, "usage": room.used, "limits": room.permitted,
        // The names of earlier versions.
        "used": room.used, "permitted": room.permitted,
    })))
}

/// Writes a document a line, with its text; one is in memory at a time.
pub(super) async fn export(kept: State<Kept>, Query(which): Query<Which>) -> ResponseResult {
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

pub(super) async fn search(kept: State<Kept>, Query(question): Query<Question>) -> JsonResult {
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
    kept: State<Kept>,
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

/// The page: its number, or a text on it.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(default)]
pub(super) struct WhichPage {
    /// From 1.
    number: Option<u32>,
    /// A place in characters, such as the start of a citation.
    at: Option<usize>,
}

pub(super) async fn page(
    kept: State<Kept>,
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
        Refusal::missing("this document has no pages; request /v1/documents/ID?start=…&end=…")
    })?;
    Ok(Json(json!(page)))
}

pub(super) async fn delete(kept: State<Kept>, Path(id): Path<String>) -> StatusResult {
    kept.documents().await?.delete(&id).await.map_err(without_document)?;
    Ok(StatusCode::NO_CONTENT)
}

/// Longest document.
pub(super) const LONGEST: usize = 64 << 20;

/// Longest name, title or collection of a form.
const LONGEST_FIELD: usize = 4 << 10;

/// The metadata of a document; a form has fields of these names.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(default)]
pub(super) struct About {
    /// The file's name, which determines the kind of document; the same name replaces it.
    name: Option<String>,
    collection: Option<String>,
    title: Option<String>,
}

pub(super) async fn add(
    kept: State<Kept>,
    Query(mut about): Query<About>,
    request: Request,
) -> JsonResult {
    let documents = kept.documents().await?;
    let bytes = if is_form(&request) {
        let form = Multipart::from_request(request, &()).await;
        read_form(form.map_err(|error| Refusal(error.status(), error.body_text()))?, &mut about)
            .await?
    } else {
        let bytes = Bytes::from_request(request, &()).await;
        bytes.map_err(|error| Refusal(error.status(), error.body_text()))?.to_vec()
    };
    let name = about.name.as_deref().map(plain).filter(|name| !name.is_empty());
    let name = name.ok_or_else(|| {
        Refusal::invalid("pass the file name, as ?name=report.pdf or in the form")
    })?;
    let collection = about.collection.as_deref().unwrap_or(DEFAULT_COLLECTION);
    let title = about.title.filter(|title| !title.trim().is_empty());
    let added = documents.add_sent(&name, bytes, collection, title).await;
    let added = added.map_err(without_document)?;
    Ok(Json(json!({
        "document": added.document,
        "unchanged": added.unchanged,
        "embedded": added.embedded,
        "by_words_only": added.by_words_only,
        "thread_id": added.thread,
    })))
}

fn is_form(request: &Request) -> bool {
    let kind = request.headers().get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
    kind.is_some_and(|kind| kind.to_ascii_lowercase().starts_with("multipart/form-data"))
}

async fn read_form(mut form: Multipart, about: &mut About) -> Result<Vec<u8>, Refusal> {
    let refused = |error: MultipartError| Refusal(error.status(), error.body_text());
    let mut file = None;
    while let Some(field) = form.next_field().await.map_err(refused)? {
        let name = field.name().unwrap_or_default().to_owned();
        if let Some(filename) = field.file_name().map(str::to_owned) {
            if file.is_some() {
                return Err(Refusal::invalid(
                    "a form can contain only one file; send each file separately",
                ));
            }
            about.name.get_or_insert(filename);
            file = Some(field.bytes().await.map_err(refused)?.to_vec());
            continue;
        }
        let text = field.text().await.map_err(refused)?;
        if text.len() > LONGEST_FIELD {
            return Err(Refusal::invalid(format!("the field is too long: {name}")));
        }
        match name.as_str() {
            "name" => about.name = Some(text),
            "collection" => about.collection = Some(text),
            "title" => about.title = Some(text),
            _ => return Err(Refusal::invalid(format!("unknown form field: {name}"))),
        }
    }
    file.ok_or_else(|| {
        Refusal(StatusCode::UNPROCESSABLE_ENTITY, "the form contains no file".into())
    })
}

/// Returns the part of a name after its last slash, without the directories.
fn plain(name: &str) -> String {
    let last = name.rsplit(['/', '\\']).next().unwrap_or_default();
    last.chars().filter(|letter| !letter.is_control()).collect::<String>().trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_a_name_its_last_part_stays() {
        for (given, kept) in [
            ("report.pdf", "report.pdf"),
            ("../../etc/passwd", "passwd"),
            ("C:\\papers\\lease.docx", "lease.docx"),
            ("a\u{0}\nb.md", "ab.md"),
            ("/", ""),
        ] {
            assert_eq!(plain(given), kept);
        }
    }
}
