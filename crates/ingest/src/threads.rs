//! Documents that are added and deleted with the threads that do it, for all who let people or programs do so.

use std::sync::Arc;

use perihelion_documents::{
    Attempt, Deleted, Document, EmbeddingModel, Library, Scope, Step, stored_title,
};
use tokio::sync::OnceCell;
use tokio_util::sync::CancellationToken;

use super::adding::{Listener, Parts, Reading, STOPPED, failure, run};
use super::nodes::WorkUpdate;
use perihelion_engine::checkpoint::{self, Store};
use perihelion_engine::clock;
use perihelion_engine::graph::{BuildError, EngineError};
use perihelion_engine::ids::ThreadId;
use perihelion_engine::runner::{self, RunResult};
use perihelion_llm::{self as llm, ChatModel};

/// The parts for adding documents; cheap to clone.
#[derive(Clone)]
pub struct DocumentThreads {
    pub library: Library,
    pub store: Arc<dyn Store>,
    /// Describes documents; without it, they are stored without descriptions.
    pub model: Option<Arc<dyn ChatModel>>,
    /// Turns chunks into vectors; without it, keyword search finds them.
    pub embeddings: Option<Arc<dyn EmbeddingModel>>,
    /// Stops active work after the sent request; the same call continues it later.
    pub stop: CancellationToken,
}

#[derive(Clone, Debug)]
pub struct NewDocument {
    /// As errors name it.
    pub shown: String,
    /// The same for the same document each time.
    pub name: String,
    pub collection: String,
    /// Instead of the title that the document gives itself.
    pub title: Option<String>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct AddedDocument {
    pub document: Document,
    /// These bytes were stored before.
    pub unchanged: bool,
    /// Texts that the embedding model was asked.
    pub embedded: u64,
    /// Why it is found by words alone.
    pub by_words_only: Option<String>,
    pub thread: ThreadId,
}

/// Why a document was not added or deleted.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// `class` is the reason in one word.
    #[error("cannot add {path}: {reason}")]
    Document { path: String, class: String, reason: String },
    #[error(transparent)]
    Documents(#[from] perihelion_documents::Error),
    #[error(transparent)]
    Graph(#[from] BuildError),
    #[error(transparent)]
    Run(#[from] runner::Error),
    #[error(transparent)]
    Store(#[from] checkpoint::Error),
    #[error(transparent)]
    Model(#[from] llm::Error),
}

impl DocumentThreads {
    /// Returns the documents of another scope of the same database.
    #[must_use]
    pub fn within(&self, scope: &Scope) -> Self {
        Self { library: self.library.within(scope), ..self.clone() }
    }

    /// Adds a document on a separate thread; after a kill at any point, the next call with the same bytes for the same
    /// place continues.
    ///
    /// # Errors
    /// [`Error::Document`] with the problem of the document.
    pub async fn add(
        &self,
        place: NewDocument,
        bytes: &[u8],
        (read, listener): (Reading, Listener),
    ) -> Result<AddedDocument, Error> {
        let NewDocument { shown, name, collection, title } = place;
        let hash = blake3::hash(bytes).to_hex().to_string();
        let thread = self.thread_of(&collection, &name, &hash);
        if let Some(document) = self.library.at(&collection, &name).await?
            && document.hash == hash
            && title.as_ref().is_none_or(|title| stored_title(title) == document.title)
        {
            let (embedded, by_words_only) = self.embed_missing(&document.id, &listener).await?;
            let unchanged = true;
            return Ok(AddedDocument { document, unchanged, embedded, by_words_only, thread });
        }
        // Before there is a thread, so that what is left of it is found by the document.
        self.library.begin(&collection, &name, &hash, clock::now()).await?;
        let documents = self.clone();
        let parts = Parts { documents, read, listener, thread, prepared: OnceCell::new() };
        let input = WorkUpdate::new()
            .path(name.clone())
            .collection(collection)
            .title(title.clone())
            .hash(hash);
        let outcome = run(parts, input, title.as_deref(), &name).await?;
        if let Some(reason) = failure(&outcome) {
            return Err(Error::Document { path: shown, class: class(&outcome.result), reason });
        }
        let kept = outcome.state.document.as_ref().filter(|_| outcome.result == RunResult::Done);
        let kept = kept.ok_or_else(|| Error::Document {
            path: shown,
            class: "document".to_owned(),
            reason: "its thread ended before it was kept".to_owned(),
        })?;
        Ok(AddedDocument {
            document: self.library.find(&kept.id).await?,
            unchanged: false,
            embedded: outcome.state.embedded,
            by_words_only: outcome.state.by_words_only.clone(),
            thread,
        })
    }

    /// Embeds the texts of a stored document that have no vector. Returns how many, and why only keyword search finds the
    /// rest. Each request's vectors are stored before the next one, so an interrupted call needs no thread.
    async fn embed_missing(
        &self,
        document: &str,
        listener: &Listener,
    ) -> Result<(u64, Option<String>), Error> {
        let Some(model) = &self.embeddings else { return Ok((0, None)) };
        let missing = self.library.unembedded(document, model.model()).await?;
        let mut done = 0;
        for batch in missing.chunks(model.batch().max(1)) {
            if self.stop.is_cancelled() {
                return Ok((done, Some(STOPPED.to_owned())));
            }
            listener(Step::Embed { done: done as usize, of: missing.len() });
            match self.library.embed_batch(&**model, batch).await {
                Ok(count) => done += count as u64,
                Err(error) => return Ok((done, Some(error.to_string()))),
            }
        }
        Ok((done, None))
    }

    /// Adds a document whose bytes only this process has; the same bytes under the same name continue interrupted work.
    pub async fn add_sent(
        &self,
        place: NewDocument,
        bytes: Vec<u8>,
    ) -> Result<AddedDocument, Error> {
        let bytes = Arc::new(bytes);
        let sent = Arc::clone(&bytes);
        let read: Reading = Arc::new(move |_: &str| Ok(sent.to_vec()));
        self.add(place, &bytes, (read, Arc::new(|_| {}))).await
    }

    /// Returns the thread of a document: the same for the same bytes at the same place.
    fn thread_of(&self, collection: &str, path: &str, hash: &str) -> ThreadId {
        let scope = self.library.scope();
        let parts = [scope.tenant(), scope.owner(), collection, path, hash];
        ThreadId::from_name(&format!("document\u{1}{}", parts.join("\u{1}"))).0
    }

    /// Deletes the threads of documents' additions.
    ///
    /// # Errors
    /// [`Error::Store`]; those before it are deleted.
    pub async fn forget(&self, attempts: &[Attempt]) -> Result<(), Error> {
        for Attempt { collection, path, hash, .. } in attempts {
            match self.store.delete(self.thread_of(collection, path, hash)).await {
                Ok(_) | Err(checkpoint::Error::UnknownThread(_)) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    /// Deletes a document, and every thread that added it or one of its versions; also the remains of a failed
    /// addition.
    pub async fn delete(&self, given: &str) -> Result<Deleted, Error> {
        // The threads first: they are found by the document.
        let attempts = self.library.attempts(given).await?;
        self.forget(&attempts).await?;
        Ok(self.library.delete(given).await?)
    }
}

/// Returns the class of the reason why a document was not added, in one word.
fn class(result: &RunResult) -> String {
    match result {
        RunResult::Failed(EngineError::Node { kind, .. }) => kind.clone(),
        _ => "document".to_owned(),
    }
}
