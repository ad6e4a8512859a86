//! Vectors: how they are named, stored and compared, and the models that turn text into them.

use async_trait::async_trait;

use crate::{Result, Scope, StoredIndex};

/// Names a text for which there is a vector: equal texts of a tenant share it.
pub type ContentHash = [u8; 32];

pub fn content_hash(text: &str) -> ContentHash {
    *blake3::hash(text.as_bytes()).as_bytes()
}

/// Scales a vector to length 1, so that a dot product is the cosine; one of zeros stays.
pub(crate) fn unit(values: &[f32]) -> Vec<f32> {
    let length = values.iter().map(|value| f64::from(*value).powi(2)).sum::<f64>().sqrt();
    let scale = if length > 0.0 { 1.0 / length } else { 0.0 };
    values.iter().map(|value| (f64::from(*value) * scale) as f32).collect()
}

/// Returns the dot product, added up in a fixed order: the same numbers on every machine.
pub(crate) fn dot(one: &[f32], other: &[f32]) -> f64 {
    // Sums side by side, over arrays whose length the compiler knows: it turns them into vector instructions.
    const SIDE: usize = 16;
    let (ones, one) = one.as_chunks::<SIDE>();
    let (others, other) = other.as_chunks::<SIDE>();
    let rest: f32 = one.iter().zip(other).map(|(one, other)| one * other).sum();
    let mut sums = [0.0_f32; SIDE];
    // Zipped iterators stay calls here, five times as slow.
    for (one, other) in ones.iter().zip(others) {
        for at in 0..SIDE {
            sums[at] += one[at] * other[at];
        }
    }
    f64::from(sums.iter().sum::<f32>() + rest)
}

/// Returns the cosine of the angle between two vectors, -1 to 1; 0 when their lengths differ.
pub fn cosine(one: &[f32], other: &[f32]) -> f64 {
    if one.len() == other.len() { dot(&unit(one), &unit(other)) } else { 0.0 }
}

pub(crate) fn to_bytes(values: &[f32]) -> Vec<u8> {
    values.iter().flat_map(|value| value.to_le_bytes()).collect()
}

pub(crate) fn from_bytes(bytes: &[u8]) -> Vec<f32> {
    let (numbers, _) = bytes.as_chunks::<4>();
    numbers.iter().map(|number| f32::from_le_bytes(*number)).collect()
}

/// A model that turns text into vectors of one length.
#[async_trait]
pub trait EmbeddingModel: Send + Sync {
    /// Returns the model's name, the key of its vectors.
    fn model(&self) -> &str;

    /// Returns the maximum number of texts in one request.
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
pub enum EmbeddingError {
    #[error("the embeddings endpoint failed: {0}")]
    Failed(String),
    /// It does not take one of the texts, such as one that is too long, whenever it is asked.
    #[error("the embeddings endpoint failed: {0}")]
    Refused(String),
}

/// Turns texts into vectors, in their order; texts that are rejected together are sent again in halves.
///
/// A text that is refused alone gets a vector of zeros, which is like no other, so that it stops no other text.
///
/// # Errors
/// [`EmbeddingError`] when the endpoint fails, also by refusing whatever it is given.
pub async fn embed_each(
    model: &dyn EmbeddingModel,
    texts: &[String],
) -> Result<Vec<Vec<f32>>, EmbeddingError> {
    let mut vectors: Vec<Vec<f32>> = Vec::with_capacity(texts.len());
    let mut most = texts.len();
    while vectors.len() < texts.len() {
        let rest = &texts[vectors.len()..];
        let part = &rest[..most.min(rest.len())];
        match model.embed(part).await {
            Ok(found) if found.len() == part.len() => vectors.extend(found),
            Ok(found) => {
                let message = format!("{} vectors for {} texts", found.len(), part.len());
                return Err(EmbeddingError::Failed(message));
            }
            Err(EmbeddingError::Refused(_)) if part.len() > 1 => most = part.len() / 2,
            Err(EmbeddingError::Refused(why)) => {
                let plain = model.embed(&["text".to_owned()]).await;
                let plain = plain.map_err(|_| EmbeddingError::Failed(why))?;
                vectors.push(vec![0.0; plain.first().map_or(0, Vec::len)]);
                most = texts.len();
            }
            Err(failed) => return Err(failed),
        }
    }
    Ok(vectors)
}

/// Embeds texts without a vector of this model, in batches, and returns how many.
///
/// Vectors from before an error stay; the next call continues there. A run makes the same calls one by one, each
/// request an effect: [`StoredIndex::pending`], [`embed_each`], [`StoredIndex::put_vectors`].
///
/// # Errors
/// [`Embedding`](crate::Error::Embedding), [`Dimension`](crate::Error::Dimension), and those of the store.
pub async fn embed_pending(
    index: &StoredIndex,
    scope: &Scope,
    model: &dyn EmbeddingModel,
) -> Result<u64> {
    let mut done = 0;
    loop {
        let pending = index.pending(scope, model.model(), model.batch()).await?;
        if pending.is_empty() {
            return Ok(done);
        }
        let texts: Vec<String> = pending.iter().map(|one| one.text.clone()).collect();
        let vectors = embed_each(model, &texts).await?;
        let pairs: Vec<_> = pending.iter().map(|one| one.hash).zip(vectors).collect();
        index.put_vectors(scope, model.model(), &pairs).await?;
        done += pairs.len() as u64;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn vectors_are_compared_by_angle_and_survive_being_stored() {
        let one = [3.0, 4.0];
        let other = [6.0, 8.0];
        assert!((cosine(&one, &other) - 1.0).abs() < 1e-6);
        assert!((cosine(&one, &[-4.0, 3.0])).abs() < 1e-6);
        assert_eq!(cosine(&one, &[1.0]), 0.0);
        assert_eq!(cosine(&[0.0, 0.0], &one), 0.0);
        let long: Vec<f32> = (0..19).map(|n| n as f32).collect();
        assert_eq!(dot(&long, &long), f64::from((0..19).map(|n| (n * n) as f32).sum::<f32>()));
        assert_eq!(from_bytes(&to_bytes(&long)), long);
    }
}
