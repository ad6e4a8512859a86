//! An embeddings model that counts the texts of its requests.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use async_trait::async_trait;
use perihelion_documents::{EmbeddingError, EmbeddingModel};

/// A listener for the number of embedded texts so far.
pub type Counting = Arc<dyn Fn(u64) + Send + Sync>;

/// Reports to a listener after each request.
pub(super) struct Counted<'a> {
    pub model: &'a dyn EmbeddingModel,
    pub done: AtomicU64,
    pub listener: Counting,
}

#[async_trait]
impl EmbeddingModel for Counted<'_> {
    fn model(&self) -> &str {
        self.model.model()
    }

    fn batch(&self) -> usize {
        self.model.batch()
    }

    async fn embed(&self, texts: &[String]) -> Result<Vec<Vec<f32>>, EmbeddingError> {
        let vectors = self.model.embed(texts).await?;
        let more = texts.len() as u64;
        (self.listener)(self.done.fetch_add(more, Ordering::Relaxed) + more);
        Ok(vectors)
    }
}
