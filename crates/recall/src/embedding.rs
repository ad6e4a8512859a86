//! Models that turn text into vectors.

use async_trait::async_trait;

use crate::{Error, Scope, StoredIndex};

/// A model that turns text into vectors of one length.
#[async_trait]
pub trait EmbeddingModel: Send + Sync {
    /// Returns the model's name, under which its vectors are kept.
    fn model(&self) -> &str;

    /// Returns the length of its vectors, where it is configured.
    fn dimension(&self) -> Option<usize>;

    /// Returns how many texts one request may hold.
    fn batch(&self) -> usize {
        64
    }

    /// Turns texts into vectors, in their order; at most [`EmbeddingModel::batch`] of them.
    ///
    /// # Errors
    /// [`EmbeddingError`] when the endpoint fails or answers with something else.
    async fn embed(&self, texts: &[String]) -> Result<Vec<Vec<f32>>, EmbeddingError>;
}

/// Why there are no vectors.
#[derive(Clone, Debug, thiserror::Error)]
#[error("the embeddings endpoint failed: {0}")]
pub struct EmbeddingError(pub String);

/// Embeds what has no vector by this model yet, in batches, and returns how many texts that were.
///
/// What was embedded before an error stays; the next call continues there. A run makes the same calls one
/// by one, each request an effect: [`StoredIndex::pending`], [`EmbeddingModel::embed`], [`StoredIndex::put_vectors`].
///
/// # Errors
/// [`Error::Embedding`], [`Error::Dimension`], [`Error::Database`].
pub async fn embed_pending(
    index: &StoredIndex,
    scope: &Scope,
    model: &dyn EmbeddingModel,
) -> Result<u64, Error> {
    let mut done = 0;
    loop {
        let pending = index.pending(scope, model.model(), model.batch()).await?;
        if pending.is_empty() {
            return Ok(done);
        }
        let texts: Vec<String> = pending.iter().map(|one| one.text.clone()).collect();
        let vectors = model.embed(&texts).await?;
        if vectors.len() != texts.len() {
            let message = format!("{} vectors for {} texts", vectors.len(), texts.len());
            return Err(EmbeddingError(message).into());
        }
        let pairs: Vec<_> = pending.iter().map(|one| one.hash).zip(vectors).collect();
        index.put_vectors(scope, model.model(), &pairs).await?;
        done += pairs.len() as u64;
    }
}
