//! An OpenAI-compatible embeddings endpoint: `POST /embeddings`.
//!
//! Enter at [`Endpoint`]. Invariants: a request is tried again only where that may help (429, 5xx, a lost connection);
//! no error carries the key; vectors come back in the order of their texts and in one length, or not at all. Deliberately
//! absent: a TLS provider, which the program installs before it makes the client.

use std::time::Duration;

use async_trait::async_trait;
use perihelion_recall::{EmbeddingError, EmbeddingModel};
use secrecy::{ExposeSecret as _, SecretString};
use serde::Deserialize;
use serde_json::json;

/// Where and how vectors are asked for.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Base address, up to and including `/v1`.
    pub url: String,
    pub model: String,
    pub api_key: Option<SecretString>,
    /// Numbers that a vector shall have; none: the model's own.
    pub dimension: Option<usize>,
    /// Texts of one request.
    pub batch: usize,
    pub timeout: Duration,
    /// Further attempts.
    pub retries: u32,
    /// First wait between attempts; doubles each time.
    pub backoff: Duration,
}

/// An embeddings endpoint.
#[derive(Clone, Debug)]
pub struct Endpoint {
    http: reqwest::Client,
    settings: Settings,
}

#[derive(Deserialize)]
struct Answer {
    data: Vec<Embedding>,
}

#[derive(Deserialize)]
struct Embedding {
    #[serde(default)]
    index: Option<usize>,
    embedding: Vec<f32>,
}

/// A failed attempt.
struct Failed {
    message: String,
    transient: bool,
}

/// Characters of a refusal that are shown.
const SHOWN: usize = 300;

impl Endpoint {
    pub fn new(http: reqwest::Client, settings: Settings) -> Self {
        Self { http, settings }
    }

    async fn attempt(&self, texts: &[String]) -> Result<Vec<Vec<f32>>, Failed> {
        let url = format!("{}/embeddings", self.settings.url.trim_end_matches('/'));
        let mut body =
            json!({ "model": self.settings.model, "input": texts, "encoding_format": "float" });
        if let Some(dimension) = self.settings.dimension {
            body["dimensions"] = json!(dimension);
        }
        let mut request = self.http.post(url).json(&body).timeout(self.settings.timeout);
        if let Some(key) = &self.settings.api_key {
            request = request.bearer_auth(key.expose_secret());
        }
        let lost = |error: reqwest::Error| Failed {
            message: error.without_url().to_string(),
            transient: true,
        };
        let response = request.send().await.map_err(lost)?;
        let status = response.status();
        if !status.is_success() {
            let message: String =
                response.text().await.unwrap_or_default().chars().take(SHOWN).collect();
            let transient = status.as_u16() == 429 || status.is_server_error();
            return Err(Failed {
                message: format!("status {}: {message}", status.as_u16()),
                transient,
            });
        }
        let answer: Answer = response.json().await.map_err(|error| Failed {
            message: format!("its answer cannot be read: {}", error.without_url()),
            transient: false,
        })?;
        self.in_order(answer, texts.len()).map_err(|message| Failed { message, transient: false })
    }

    fn in_order(&self, answer: Answer, wanted: usize) -> Result<Vec<Vec<f32>>, String> {
        let mut data = answer.data;
        if data.len() != wanted {
            return Err(format!("{} vectors for {wanted} texts", data.len()));
        }
        data.sort_by_key(|one| one.index.unwrap_or(0));
        let length = data.first().map_or(0, |one| one.embedding.len());
        let expected = self.settings.dimension.unwrap_or(length);
        match data.iter().find(|one| one.embedding.len() != expected || one.embedding.is_empty()) {
            Some(other) => {
                Err(format!("a vector of {} numbers in place of {expected}", other.embedding.len()))
            }
            None => Ok(data.into_iter().map(|one| one.embedding).collect()),
        }
    }
}

#[async_trait]
impl EmbeddingModel for Endpoint {
    fn model(&self) -> &str {
        &self.settings.model
    }

    fn dimension(&self) -> Option<usize> {
        self.settings.dimension
    }

    fn batch(&self) -> usize {
        self.settings.batch
    }

    async fn embed(&self, texts: &[String]) -> Result<Vec<Vec<f32>>, EmbeddingError> {
        let mut wait = self.settings.backoff;
        for left in (0..=self.settings.retries).rev() {
            match self.attempt(texts).await {
                Ok(vectors) => return Ok(vectors),
                Err(failed) if left == 0 || !failed.transient => {
                    return Err(EmbeddingError(format!(
                        "{}: {}",
                        self.settings.url, failed.message
                    )));
                }
                Err(_) => {
                    #[expect(
                        clippy::disallowed_methods,
                        reason = "the crate has no clock of the program"
                    )]
                    tokio::time::sleep(wait).await;
                    wait *= 2;
                }
            }
        }
        Err(EmbeddingError(self.settings.url.clone()))
    }
}
