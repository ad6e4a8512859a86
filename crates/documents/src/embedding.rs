//! Requests to an embedding model: each text once, even if several documents with it are added at the same time.

use std::collections::BTreeSet;
use std::sync::Arc;

use parking_lot::Mutex;
use perihelion_database::Row;
use perihelion_recall::{ContentHash, EmbeddingError, EmbeddingModel, content_hash, embed_each};
use tokio::sync::Notify;

use crate::library::KIND;
use crate::{Library, Result};

/// A text that a model is asked for a tenant.
type Key = (String, String, ContentHash);

/// Texts that this process is asking for.
#[derive(Clone, Default)]
pub(crate) struct UnderWay(Arc<Shared>);

#[derive(Default)]
struct Shared {
    texts: Mutex<BTreeSet<Key>>,
    answered: Notify,
}

/// Texts without another request in this process.
struct Alone<'a> {
    shared: &'a Shared,
    keys: Vec<Key>,
}

impl UnderWay {
    /// Waits until none of these texts is requested; all or none are taken, so that there is no deadlock.
    async fn alone(&self, keys: Vec<Key>) -> Alone<'_> {
        let shared = &*self.0;
        loop {
            let answered = shared.answered.notified();
            {
                let mut texts = shared.texts.lock();
                if keys.iter().all(|key| !texts.contains(key)) {
                    texts.extend(keys.iter().cloned());
                    return Alone { shared, keys };
                }
            }
            answered.await;
        }
    }
}

impl Drop for Alone<'_> {
    fn drop(&mut self) {
        let mut texts = self.shared.texts.lock();
        for key in &self.keys {
            texts.remove(key);
        }
        self.shared.answered.notify_waiters();
    }
}

impl Library {
    /// Asks for the vectors of a batch that are not kept yet, and keeps them; returns how many texts were asked.
    ///
    /// # Errors
    /// [`Recall`](crate::Error::Recall) if the model fails, or its vectors do not fit; then the batch stores none.
    pub async fn embed_batch(
        &self,
        model: &dyn EmbeddingModel,
        batch: &[(ContentHash, String)],
    ) -> Result<usize> {
        let key =
            |hash: &ContentHash| (self.scope.tenant().to_owned(), model.model().to_owned(), *hash);
        let keys = batch.iter().map(|(hash, _)| key(hash)).collect();
        let _alone = self.asking.alone(keys).await;
        let missing = self.missing(model.model(), batch).await?;
        if missing.is_empty() {
            return Ok(0);
        }
        let texts: Vec<String> = missing.iter().map(|(_, text)| text.clone()).collect();
        let vectors = embed_each(model, &texts).await.map_err(perihelion_recall::Error::from)?;
        self.keep_vectors(model.model(), &missing, vectors).await?;
        Ok(missing.len())
    }

    /// Returns the texts of a stored document that have no vector by a model, such as after a failed request.
    ///
    /// If searches use another model, there are none: [`Library::reindex`] embeds all documents before they use this one.
    pub async fn unembedded(
        &self,
        document: &str,
        model: &str,
    ) -> Result<Vec<(ContentHash, String)>> {
        let read = self.query(
            "SELECT DISTINCT i.meaning FROM recall_item i JOIN recall_space s ON s.id = i.space
             WHERE s.tenant = $1 AND s.owner = $2 AND s.kind = $3 AND i.parent = $4 AND i.meaning <> ''
                AND NOT EXISTS (SELECT 1 FROM recall_model m
                    WHERE m.tenant = $1 AND m.model <> $5 AND m.is_active)
                AND NOT EXISTS (SELECT 1 FROM recall_vector v
                    WHERE v.tenant = $1 AND v.model = $5 AND v.hash = i.hash)",
        );
        let rows = self.database().fetch_all(&read.binds((KIND, document, model))).await?;
        let text = |row: &Row| row.get(0).map(|text: String| (content_hash(&text), text));
        Ok(rows.iter().map(text).collect::<Result<_, _>>()?)
    }

    /// Returns the texts that have no vector by a model yet.
    pub async fn missing(
        &self,
        model: &str,
        texts: &[(ContentHash, String)],
    ) -> Result<Vec<(ContentHash, String)>> {
        let hashes: Vec<ContentHash> = texts.iter().map(|(hash, _)| *hash).collect();
        let known: BTreeSet<ContentHash> =
            self.index.embedded(&self.scope, model, &hashes).await?.into_iter().collect();
        Ok(texts.iter().filter(|(hash, _)| !known.contains(hash)).cloned().collect())
    }

    /// Keeps the vectors of a batch of texts.
    ///
    /// # Errors
    /// [`Recall`](crate::Error::Recall) if their number differs from the texts', or they do not fit the model's others.
    pub async fn keep_vectors(
        &self,
        model: &str,
        batch: &[(ContentHash, String)],
        vectors: Vec<Vec<f32>>,
    ) -> Result<()> {
        if vectors.len() != batch.len() {
            let message = format!("{} vectors for {} texts", vectors.len(), batch.len());
            return Err(perihelion_recall::Error::from(EmbeddingError::Failed(message)).into());
        }
        let pairs: Vec<_> = batch.iter().map(|(hash, _)| *hash).zip(vectors).collect();
        Ok(self.index.put_vectors(&self.scope, model, &pairs).await?)
    }
}
