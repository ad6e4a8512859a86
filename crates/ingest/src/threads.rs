//! Documents that are added and deleted with the threads that do it, for all who let people or programs do so.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use perihelion_documents::{Attempt, Deleted, Document, EmbeddingModel, Library, Scope};
use tokio_util::sync::CancellationToken;

use super::adding::{Adding, Ingest, IngestParts, Listener, Reading, failure, forget};
use perihelion_engine::checkpoint::{self, Store};
use perihelion_engine::clock;
use perihelion_engine::graph::{BuildError, EngineError};
use perihelion_engine::ids::ThreadId;
use perihelion_engine::runner::{self, RunResult};
use perihelion_llm::{self as llm, ChatModel};

/// What documents are added with; cheap to clone.
#[derive(Clone)]
pub struct DocumentThreads {
    pub library: Library,
    pub store: Arc<dyn Store>,
    /// Says what documents are about; none: they are kept without descriptions.
    pub model: Option<Arc<dyn ChatModel>>,
    /// Turns pieces into vectors; none: they are found by words.
    pub embeddings: Option<Arc<dyn EmbeddingModel>>,
    /// Stops what is under way after the request that was sent; the same call continues it later.
    pub stop: CancellationToken,
}

/// Where a document comes from, and where it goes.
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

/// What became of a document that was to be added.
#[derive(Clone, Debug, PartialEq)]
pub struct AddedDocument {
    pub document: Document,
    /// These bytes were kept already.
    pub unchanged: bool,
    /// Texts that the embedding model was asked.
    pub embedded: u64,
    /// Why it is found by words alone.
    pub by_words_only: Option<String>,
    /// The thread that added it.
    pub thread: ThreadId,
}

/// Why a document was not added or deleted.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// `class` says why in one word.
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
    /// Adds a document on a thread of its own; killed anywhere, the next call with the same bytes for the same place continues.
    ///
    /// # Errors
    /// [`Error::Document`] naming what is wrong with the document.
    pub async fn add(
        &self,
        scope: &Scope,
        place: NewDocument,
        bytes: &[u8],
        (read, listener): (Reading, Listener),
    ) -> Result<AddedDocument, Error> {
        let NewDocument { shown, name, collection, title } = place;
        let hash = blake3::hash(bytes).to_hex().to_string();
        let adding = Adding { path: name, collection, title, hash };
        let thread = Ingest::thread_of(scope, &adding);
        if let Some(document) = self.known(scope, &adding).await? {
            let embedded = 0;
            let by_words_only = None;
            return Ok(AddedDocument {
                document,
                unchanged: true,
                embedded,
                by_words_only,
                thread,
            });
        }
        // Before there is a thread, so that what is left of it is found by the document.
        let Adding { collection, path, hash, .. } = &adding;
        self.library.begin(scope, collection, path, hash, clock::now()).await?;
        let parts = IngestParts {
            library: self.library.clone(),
            scope: scope.clone(),
            model: self.model.clone(),
            embeddings: self.embeddings.clone(),
            read,
            listener,
            thread,
            kept: Mutex::new(HashMap::new()),
        };
        let outcome =
            Ingest::new(parts, Arc::clone(&self.store))?.run(adding, self.stop.clone()).await?;
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
            document: self.library.find(scope, &kept.id).await?,
            unchanged: false,
            embedded: outcome.state.embedded,
            by_words_only: outcome.state.by_words_only.clone(),
            thread,
        })
    }

    /// Adds a document whose bytes nobody can read again but from here; the same bytes under the same name continue what was broken off.
    ///
    /// # Errors
    /// As [`DocumentThreads::add`].
    pub async fn add_sent(
        &self,
        scope: &Scope,
        place: NewDocument,
        bytes: Vec<u8>,
    ) -> Result<AddedDocument, Error> {
        let bytes = Arc::new(bytes);
        let sent = Arc::clone(&bytes);
        let read: Reading = Arc::new(move |_: &str| Ok(sent.to_vec()));
        self.add(scope, place, &bytes, (read, Arc::new(|_| {}))).await
    }

    async fn known(&self, scope: &Scope, adding: &Adding) -> Result<Option<Document>, Error> {
        let renamed =
            |one: &Document| adding.title.as_ref().is_some_and(|title| *title != one.title);
        let kept = self.library.at(scope, &adding.collection, &adding.path).await?;
        Ok(kept.filter(|one| one.hash == adding.hash && !renamed(one)))
    }

    /// Returns every adding of a document, also of one that never got there.
    ///
    /// # Errors
    /// [`Error::Documents`].
    pub async fn begun(&self, scope: &Scope, given: &str) -> Result<Vec<Attempt>, Error> {
        Ok(self.library.attempts(scope, given).await?)
    }

    /// Deletes a document, and every thread that added it or one of its versions; also what is left of one that never got there.
    ///
    /// # Errors
    /// [`Error::Documents`], [`Error::Store`].
    pub async fn delete(&self, scope: &Scope, given: &str) -> Result<Deleted, Error> {
        // The threads first: without the document nobody would find them.
        let attempts = self.begun(scope, given).await?;
        forget(&*self.store, scope, &attempts).await?;
        Ok(self.library.delete(scope, given).await?)
    }
}

/// Returns the class of what kept a document out, in one word.
fn class(result: &RunResult) -> String {
    match result {
        RunResult::Failed(EngineError::Node { kind, .. }) => kind.clone(),
        _ => "document".to_owned(),
    }
}
