//! A docling-serve that reads documents: <https://github.com/docling-project/docling-serve>, API `v1`.
//!
//! The document is sent as base64, its task is asked for until it ends, and Markdown comes back with a mark between two
//! pages. Which numbers the pages have docling says in its own form of the document only: a page without text gets no
//! mark. If the two differ, pages are left out instead of guessed.

use std::collections::BTreeSet;
use std::time::Duration;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use reqwest::{RequestBuilder, Response, StatusCode};
use secrecy::{ExposeSecret as _, SecretString};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::json;

use super::Failure;
use super::pages::Paged;
use super::program::plain_name;
use perihelion_clock as clock;

/// How long the server may keep a question for the end of a task.
const WAIT: Duration = Duration::from_secs(5);

/// How long it is until a question is asked again that was not answered, or answered at once.
const PAUSE: Duration = Duration::from_millis(200);

/// Bytes of an answer in sizes of the text in it: docling's own form of the document, with the place of every line.
const SWELLING: usize = 6;

/// Characters of a refusal that are shown.
const SHOWN: usize = 300;

#[derive(Clone, Debug)]
pub struct Docling {
    http: reqwest::Client,
    url: String,
    key: Option<SecretString>,
}

#[derive(Deserialize)]
struct Task {
    task_id: String,
    task_status: String,
    error_message: Option<String>,
}

#[derive(Deserialize)]
struct Outcome {
    #[serde(default)]
    document: Document,
    status: Option<String>,
    #[serde(default)]
    errors: Vec<Complaint>,
    failure: Option<serde_json::Value>,
}

#[derive(Deserialize)]
struct Complaint {
    #[serde(default)]
    error_message: String,
}

#[derive(Default, Deserialize)]
struct Document {
    md_content: Option<String>,
    json_content: Option<Places>,
}

/// The parts of docling's own document format that contain positions.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Places {
    texts: Vec<Item>,
    tables: Vec<Item>,
    pictures: Vec<Item>,
}

#[derive(Deserialize)]
struct Item {
    content_layer: Option<String>,
    #[serde(default)]
    prov: Vec<Provenance>,
}

#[derive(Deserialize)]
struct Provenance {
    page_no: u32,
}

impl Docling {
    /// Names a server by its base address; the key, if any, is sent as `X-Api-Key`.
    pub fn new(http: reqwest::Client, url: &str, key: Option<SecretString>) -> Self {
        Self { http, url: url.trim_end_matches('/').to_owned(), key }
    }

    pub(super) fn url(&self) -> &str {
        &self.url
    }

    /// Returns the server's Markdown for a document, up to a number of bytes; the error has the reason of a failure.
    ///
    /// It has no time limit; the caller decides how long.
    pub(super) async fn read(
        &self,
        path: &str,
        bytes: &[u8],
        most: usize,
    ) -> Result<Paged, Failure> {
        // Nothing in the document says the same by chance, nor on purpose.
        let mark = format!("<!-- {} -->", blake3::hash(bytes).to_hex());
        let body = json!({
            "options": {
                "to_formats": ["md", "json"],
                "image_export_mode": "placeholder",
                "md_page_break_placeholder": mark,
            },
            "sources": [{
                "kind": "file",
                "filename": plain_name(path),
                "base64_string": BASE64_STANDARD.encode(bytes),
            }],
        });
        let begin = self.http.post(format!("{}/v1/convert/source/async", self.url)).json(&body);
        let mut task: Task = self.ask(&begin, most).await?;
        drop((begin, body));
        let is_id = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
        if task.task_id.is_empty() || !task.task_id.chars().all(is_id) {
            let text = "it names a task by more than letters and digits";
            return Err(Failure::Task(text.to_owned()));
        }
        let poll = format!("{}/v1/status/poll/{}", self.url, task.task_id);
        let poll = self.http.get(format!("{poll}?wait={}", WAIT.as_secs()));
        loop {
            match task.task_status.as_str() {
                "success" | "partial_success" => break,
                "pending" | "started" => {}
                ended => {
                    let why = task.error_message.unwrap_or_default();
                    return Err(Failure::Task(shown(&format!("the task ended as {ended}. {why}"))));
                }
            }
            clock::sleep(PAUSE).await;
            task = self.ask(&poll, most).await?;
        }
        let result = self.http.get(format!("{}/v1/result/{}", self.url, task.task_id));
        let outcome: Outcome = self.ask(&result, most).await?;
        outcome.paged(&mark, most)
    }

    /// Asks until there is an answer: a server that is full or starting is asked again.
    async fn ask<T: DeserializeOwned>(
        &self,
        request: &RequestBuilder,
        most: usize,
    ) -> Result<T, Failure> {
        loop {
            let again = || Failure::Task("the request cannot be sent again".to_owned());
            let request = request.try_clone().ok_or_else(again)?;
            let request = match &self.key {
                Some(key) => request.header("X-Api-Key", key.expose_secret()),
                None => request,
            };
            let response = request.send().await?;
            let status = response.status();
            if matches!(status, StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE) {
                clock::sleep(PAUSE).await;
                continue;
            }
            let answer = body(response, most.saturating_mul(SWELLING)).await?;
            if status == StatusCode::UNAUTHORIZED || status == StatusCode::FORBIDDEN {
                return Err(Failure::Key(status.as_u16()));
            }
            if !status.is_success() {
                let text = shown(&String::from_utf8_lossy(&answer));
                return Err(Failure::Status { status: status.as_u16(), text });
            }
            return Ok(serde_json::from_slice(&answer)?);
        }
    }
}

impl Outcome {
    fn paged(self, mark: &str, most: usize) -> Result<Paged, Failure> {
        let is_read = matches!(self.status.as_deref(), None | Some("success" | "partial_success"));
        let is_partial = self.status.as_deref() == Some("partial_success");
        let errors = self.errors.into_iter().map(|one| one.error_message);
        let Some(text) = self.document.md_content.filter(|_| is_read) else {
            let output = errors.chain(self.failure.map(|failure| failure.to_string()));
            let output = output.collect::<Vec<_>>().join("; ");
            return Err(Failure::Task(shown(&format!("it ended without a text. {output}"))));
        };
        if text.len() > most {
            return Err(Failure::TooLong(most));
        }
        let numbers = self.document.json_content.unwrap_or_default().pages();
        let texts: Vec<&str> = text.split(mark).collect();
        let mut paged = if numbers.len() == texts.len() {
            Paged::new(numbers.into_iter().zip(texts))
        } else {
            Paged::without_pages(texts.concat())
        };
        let unread = errors.map(|error| shown(&error)).filter(|error| !error.is_empty());
        let mut unread: Vec<String> = unread.collect();
        if is_partial && unread.is_empty() {
            unread.push("pages that docling does not name".to_owned());
        }
        paged.unread = unread;
        Ok(paged)
    }
}

impl Places {
    /// Returns the pages with text of the body.
    fn pages(&self) -> BTreeSet<u32> {
        let items = self.texts.iter().chain(&self.tables).chain(&self.pictures);
        let is_body = |item: &&Item| item.content_layer.as_deref().is_none_or(|at| at == "body");
        items.filter(is_body).filter_map(|item| Some(item.prov.first()?.page_no)).collect()
    }
}

/// Reads an answer up to a number of bytes.
async fn body(mut response: Response, most: usize) -> Result<Vec<u8>, Failure> {
    let mut read = Vec::new();
    while let Some(piece) = response.chunk().await? {
        if read.len() + piece.len() > most {
            return Err(Failure::TooLong(most));
        }
        read.extend_from_slice(&piece);
    }
    Ok(read)
}

fn shown(output: &str) -> String {
    output.split_whitespace().collect::<Vec<_>>().join(" ").chars().take(SHOWN).collect()
}
