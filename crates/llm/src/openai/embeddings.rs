//! Asks an OpenAI-compatible endpoint for the vectors of texts.

use async_openai::config::Config as _;
use async_trait::async_trait;
use perihelion_recall::{EmbeddingError, EmbeddingModel};
use serde_json::{Value, json};

use super::transport::{self, Credentials};
use super::{retry, wire};
use crate::Error;
use perihelion_engine::clock;
use perihelion_settings::config::{self, Embeddings};

/// The embedding model behind an OpenAI-compatible endpoint.
pub struct OpenAiEmbeddings {
    http: reqwest::Client,
    credentials: Credentials,
    settings: Embeddings,
}

/// One attempt that failed: why, and whether the next one may go better.
struct Failed {
    error: EmbeddingError,
    is_transient: bool,
    retry_after: Option<std::time::Duration>,
}

impl OpenAiEmbeddings {
    /// Prepares the client; connects to nothing.
    ///
    /// # Errors
    /// [`Error::Unreachable`] when no HTTP client can be made.
    pub fn new(settings: &Embeddings) -> Result<Self, Error> {
        config::tls::install();
        let direct = transport::is_loopback(&settings.url);
        let http = transport::client(settings.connect_timeout, direct)?;
        let credentials = Credentials::new(&settings.url, settings.api_key.clone());
        Ok(Self { http, credentials, settings: settings.clone() })
    }

    async fn attempt(&self, texts: &[String]) -> Result<Vec<Vec<f32>>, Failed> {
        let mut body =
            json!({ "model": self.settings.model, "input": texts, "encoding_format": "float" });
        if let Some(dimension) = self.settings.dimension {
            body["dimensions"] = json!(dimension);
        }
        let shown = self.credentials.api_base();
        let for_now = |reason: String| Failed {
            error: EmbeddingError(format!("{shown}: {reason}")),
            is_transient: true,
            retry_after: None,
        };
        let request = self
            .http
            .post(self.credentials.url("/embeddings"))
            .query(&self.credentials.query())
            .headers(self.credentials.headers())
            .timeout(self.settings.timeout)
            .json(&body);
        let response =
            request.send().await.map_err(|error| for_now(error.without_url().to_string()))?;
        let status = response.status().as_u16();
        let retry_after = retry::retry_after(response.headers());
        let text = transport::read_up_to(response, transport::WHOLE_BYTES).await;
        let text = text.map_err(|error| for_now(error.without_url().to_string()))?;
        if status >= 300 {
            let message = wire::refusal_message(&text);
            return Err(Failed {
                error: EmbeddingError(format!("{shown} refused with status {status}: {message}")),
                is_transient: retry::is_transient(status),
                retry_after,
            });
        }
        read(&text, texts.len()).map_err(|reason| Failed {
            error: EmbeddingError(format!("{shown} sent an answer that cannot be read: {reason}")),
            is_transient: false,
            retry_after: None,
        })
    }
}

#[async_trait]
impl EmbeddingModel for OpenAiEmbeddings {
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
        let waits = retry::delays(
            self.settings.max_retries,
            self.settings.backoff,
            self.settings.backoff_max,
        );
        let mut waits = waits.into_iter();
        loop {
            let failed = match self.attempt(texts).await {
                Ok(vectors) => return Ok(vectors),
                Err(failed) => failed,
            };
            let wait = if failed.is_transient { waits.next() } else { None };
            let Some(wait) = wait else { return Err(failed.error) };
            tracing::warn!(error = %failed.error, ?wait, "asking for embeddings again");
            let asked = failed.retry_after.map(|asked| asked.min(self.settings.backoff_max));
            clock::sleep(asked.unwrap_or(wait)).await;
        }
    }
}

/// Reads vectors in the order of their texts.
fn read(text: &str, count: usize) -> Result<Vec<Vec<f32>>, String> {
    let answer: Value = serde_json::from_str(text).map_err(|error| error.to_string())?;
    let data = answer["data"].as_array().ok_or("no `data`")?;
    let mut vectors: Vec<Vec<f32>> = vec![Vec::new(); count];
    for (place, one) in data.iter().enumerate() {
        let index = one["index"].as_u64().map_or(place, |index| index as usize);
        let numbers = one["embedding"].as_array().ok_or("an entry without `embedding`")?;
        let numbers: Option<Vec<f32>> =
            numbers.iter().map(|number| number.as_f64().map(|number| number as f32)).collect();
        let slot = vectors.get_mut(index).ok_or("more vectors than texts")?;
        *slot = numbers.ok_or("an embedding that is not of numbers")?;
    }
    let length = vectors.first().map_or(0, Vec::len);
    if vectors.iter().all(|vector| !vector.is_empty() && vector.len() == length) {
        Ok(vectors)
    } else {
        Err("vectors are missing, or differ in length".to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn vectors_are_read_in_the_order_of_their_texts_and_anything_else_is_refused() {
        let answer =
            r#"{"data": [{"index": 1, "embedding": [0, 1]}, {"index": 0, "embedding": [1, 0.5]}]}"#;
        assert_eq!(read(answer, 2).unwrap(), [[1.0, 0.5], [0.0, 1.0]]);
        for bad in
            ["", "{}", r#"{"data": []}"#, r#"{"data": [{"embedding": ["x"]}, {"embedding": [1]}]}"#]
        {
            assert!(read(bad, 2).is_err(), "{bad}");
        }
        assert!(read(answer, 1).is_err() && read(answer, 3).is_err());
    }
}
