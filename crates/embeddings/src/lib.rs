//! An OpenAI-compatible embeddings endpoint (`POST /embeddings`).
//!
//! Enter at [`Endpoint`]. Invariants: a request is retried only if that can help. Errors never contain the key. Vectors
//! are returned in the order of their texts and in one length, or not at all. Deliberately absent: the use of vectors.

use std::time::Duration;

use async_trait::async_trait;
use perihelion_clock as clock;
use perihelion_http::reach::{self, Credentials};
use perihelion_recall::{EmbeddingError, EmbeddingModel};
use perihelion_settings::config::{self, Embeddings};
use serde::Deserialize;
use serde_json::json;

pub use perihelion_http::reach::cause;

#[derive(Clone, Debug)]
pub struct Endpoint {
    http: reqwest::Client,
    credentials: Credentials,
    settings: Embeddings,
}

/// One attempt that failed: why, and whether the next one may go better.
struct Failed {
    reason: String,
    is_transient: bool,
    /// Another text may be taken.
    is_of_text: bool,
    retry_after: Option<Duration>,
}

impl Failed {
    fn lost(error: reqwest::Error) -> Self {
        let reason = cause(&error.without_url());
        Self { reason, is_transient: true, is_of_text: false, retry_after: None }
    }
}

#[derive(Deserialize)]
struct Answer {
    data: Vec<Embedding>,
}

#[derive(Deserialize)]
struct Embedding {
    index: Option<usize>,
    embedding: Vec<f32>,
}

impl Endpoint {
    /// Prepares the client without connecting.
    pub fn new(settings: &Embeddings) -> Result<Self, reqwest::Error> {
        config::tls::install();
        let http = reach::client(settings.connect_timeout, &settings.url)?;
        let credentials = Credentials::new(&settings.url, settings.api_key.clone());
        Ok(Self { http, credentials, settings: settings.clone() })
    }

    async fn attempt(&self, texts: &[String]) -> Result<Vec<Vec<f32>>, Failed> {
        let mut body =
            json!({ "model": self.settings.model, "input": texts, "encoding_format": "float" });
        if let Some(dimension) = self.settings.dimension {
            body["dimensions"] = json!(dimension);
        }
        let request = self.credentials.post(&self.http, "/embeddings");
        let sent = request.timeout(self.settings.timeout).json(&body).send().await;
        let response = sent.map_err(Failed::lost)?;
        let status = response.status().as_u16();
        let retry_after = reach::retry_after(response.headers());
        let text = reach::read_up_to(response, reach::WHOLE_BYTES).await.map_err(Failed::lost)?;
        if status >= 300 {
            let message = reach::refusal_message(&text);
            let reason = format!("it refused with status {status}: {message}");
            // llama.cpp refuses a long text so, with status 500.
            let is_too_large = message.contains("too large to process");
            let is_of_text = matches!(status, 400 | 413 | 422) || is_too_large;
            let is_transient = reach::is_transient(status) && !is_too_large;
            return Err(Failed { reason, is_transient, is_of_text, retry_after });
        }
        read(&text, texts.len(), self.settings.dimension).map_err(|reason| Failed {
            reason: format!("it sent an answer that cannot be read: {reason}"),
            is_transient: false,
            is_of_text: false,
            retry_after: None,
        })
    }
}

#[async_trait]
impl EmbeddingModel for Endpoint {
    fn model(&self) -> &str {
        &self.settings.model
    }

    fn batch(&self) -> usize {
        self.settings.batch
    }

    async fn embed(&self, texts: &[String]) -> Result<Vec<Vec<f32>>, EmbeddingError> {
        let Embeddings { max_retries, backoff, backoff_max, .. } = self.settings;
        let mut waits = reach::delays(max_retries, backoff, backoff_max);
        loop {
            let failed = match self.attempt(texts).await {
                Ok(vectors) => return Ok(vectors),
                Err(failed) => failed,
            };
            let reason = format!("{}: {}", self.credentials.base(), failed.reason);
            let error = if failed.is_of_text {
                EmbeddingError::Refused(reason)
            } else {
                EmbeddingError::Failed(reason)
            };
            if failed.is_of_text && texts.len() == 1 {
                tracing::warn!(%error, "a text is found by its words alone");
            }
            let wait = if failed.is_transient { waits.next() } else { None };
            let Some(wait) = wait else { return Err(error) };
            tracing::warn!(%error, ?wait, "asking for embeddings again");
            let asked = failed.retry_after.map(|asked| asked.min(backoff_max));
            clock::sleep(asked.unwrap_or(wait)).await;
        }
    }
}

/// Reads vectors in the order of their texts.
fn read(
    text: &str,
    count: usize,
    dimension: Option<usize>,
) -> Result<Vec<Vec<f32>>, Box<dyn std::error::Error + Send + Sync>> {
    let answer: Answer = serde_json::from_str(text)?;
    let mut vectors: Vec<Vec<f32>> = vec![Vec::new(); count];
    for (place, one) in answer.data.into_iter().enumerate() {
        let slot = vectors.get_mut(one.index.unwrap_or(place)).ok_or("more vectors than texts")?;
        *slot = one.embedding;
    }
    let length = dimension.unwrap_or_else(|| vectors.first().map_or(0, Vec::len));
    match vectors.iter().find(|one| one.is_empty() || one.len() != length) {
        Some(other) => Err(format!("a vector of {} numbers in place of {length}", other.len()))?,
        None => Ok(vectors),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn vectors_are_read_in_the_order_of_their_texts_and_anything_else_is_refused() {
        let answer =
            r#"{"data": [{"index": 1, "embedding": [0, 1]}, {"index": 0, "embedding": [1, 0.5]}]}"#;
        assert_eq!(read(answer, 2, None).unwrap(), [[1.0, 0.5], [0.0, 1.0]]);
        assert!(read(answer, 2, Some(3)).is_err(), "another length than was asked for");
        for bad in
            ["", "{}", r#"{"data": []}"#, r#"{"data": [{"embedding": ["x"]}, {"embedding": [1]}]}"#]
        {
            assert!(read(bad, 2, None).is_err(), "{bad}");
        }
        assert!(read(answer, 1, None).is_err() && read(answer, 3, None).is_err());
    }
}
