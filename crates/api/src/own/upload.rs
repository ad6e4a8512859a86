//! Documents that are sent: as the body itself, or as a file of a form.

use axum::Json;
use axum::body::Bytes;
use axum::extract::multipart::{Multipart, MultipartError};
use axum::extract::{FromRequest as _, Request, State};
use axum::http::{StatusCode, header};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

use super::kept::{Kept, without_document};
use crate::http::{JsonResult, Query, Refusal};
use perihelion_runtime::DEFAULT_COLLECTION;

/// Longest document.
pub(super) const LONGEST: usize = 64 << 20;

/// Longest name, title or collection of a form.
const LONGEST_FIELD: usize = 4 << 10;

/// What is said of a document beside its bytes; a form says it in fields of these names.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(default)]
pub(super) struct About {
    /// The file's name, which says what kind of document it is; the same name replaces it.
    name: Option<String>,
    collection: Option<String>,
    title: Option<String>,
}

pub(super) async fn add(
    State(kept): State<Kept>,
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

/// Leaves of a name what stands behind its last slash: nobody's directories are of interest.
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
