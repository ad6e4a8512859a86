//! The embeddings section: the model that turns text into vectors.

use std::time::Duration;

use secrecy::SecretString;

use super::apis::PUBLIC_ENDPOINT;
use super::models::Models;
use super::resolve::{Sources, any, http_url, if_any, not_empty, positive, section};

/// Default model if there is a separate address without a name.
const DEFAULT_MODEL: &str = "text-embedding-3-small";

section! {
    /// Keys of the embeddings section.
    EmbeddingKeys, EmbeddingsFile, "embeddings" {
        /// Base address of an endpoint with `/embeddings`; by default the models' endpoint, if `model` is set.
        url: Option<String> = None, "PERIHELION_EMBEDDINGS_URL", if_any(http_url);
        /// Model name sent with each request; without `url` and `model` everything is found by words alone.
        model: Option<String> = None, "PERIHELION_EMBEDDINGS_MODEL", any;
        /// Dimensions of a vector; by default the model's own.
        dimension: Option<u32> = None, "PERIHELION_EMBEDDINGS_DIMENSION", if_any(positive);
        /// Environment variable with the API key, if the address is not the models'.
        api_key_env: String = "PERIHELION_EMBEDDINGS_API_KEY".to_owned(), "PERIHELION_EMBEDDINGS_API_KEY_ENV", not_empty;
        /// Texts of one request.
        batch: u32 = 64, "PERIHELION_EMBEDDINGS_BATCH", positive;
    }
}

#[derive(Clone, Debug)]
pub struct Embeddings {
    pub url: String,
    pub model: String,
    pub dimension: Option<usize>,
    pub batch: usize,
    pub api_key: Option<SecretString>,
    pub timeout: Duration,
    pub connect_timeout: Duration,
    pub max_retries: u32,
    pub backoff: Duration,
    pub backoff_max: Duration,
}

impl EmbeddingKeys {
    /// Returns the settings of calls; `None` without an address or a model, or without an endpoint.
    pub(super) fn embeddings(self, models: &Models, sources: &Sources<'_>) -> Option<Embeddings> {
        if self.url.is_none() && self.model.is_none() {
            return None;
        }
        let of_models = models.for_role("agent");
        // A key belongs to the address that it was given for.
        let is_same = self.url.is_none() || self.url == of_models.url;
        let own_key = sources.secret(&self.api_key_env);
        let api_key = own_key.or_else(|| of_models.api_key.clone().filter(|_| is_same));
        let has_key = api_key.is_some();
        let url =
            self.url.or(of_models.url).or_else(|| has_key.then(|| PUBLIC_ENDPOINT.to_owned()))?;
        Some(Embeddings {
            url,
            api_key,
            model: self.model.unwrap_or_else(|| DEFAULT_MODEL.to_owned()),
            dimension: self.dimension.map(|dimension| dimension as usize),
            batch: self.batch as usize,
            timeout: of_models.timeout,
            connect_timeout: of_models.connect_timeout,
            max_retries: of_models.max_retries,
            backoff: of_models.backoff,
            backoff_max: of_models.backoff_max,
        })
    }
}
