//! The documents of the database, for the edges: added each on a thread of its own, found, read, deleted.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex};

use perihelion_database::Database;
use perihelion_documents::{
    Asking, Attempt, Deleted, Document, DocumentPage, EmbeddingModel, Judgement, Library, Measures,
    PageAt, Query, Read, Reranker, Retrieved, Room, Scope, Source, Weights,
};

use tokio_util::sync::CancellationToken;

use super::counted::{Counted, Counting};
use super::{Error, Folders, open_store};
use crate::checkpoint::Store;
use crate::clock;
use crate::config::Settings;
use crate::graph::EngineError;
use crate::ids::ThreadId;
use crate::ingest::{
    Adding, Ingest, IngestParts, Listener, ModelReranker, Reading, failure, forget,
};
use crate::llm::{ChatModel, OpenAiModel};
use crate::runner::RunResult;
use crate::servers::documents::{OWNER, TENANT, embeddings, library_of};

/// The documents of one owner; cheap to clone.
#[derive(Clone)]
pub struct Documents {
    pub(super) library: Library,
    pub(super) scope: Scope,
    pub(super) store: Arc<dyn Store>,
    model: Option<Arc<dyn ChatModel>>,
    embeddings: Option<Arc<dyn EmbeddingModel>>,
    pub(super) stop: CancellationToken,
    /// Endings of names that another program reads.
    endings: Vec<String>,
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

/// Where a document comes from, and where it goes.
struct Place<'a> {
    /// As errors name it.
    shown: String,
    name: String,
    collection: &'a str,
    title: Option<String>,
}

impl Documents {
    /// Opens the documents of the database that the settings name.
    ///
    /// # Errors
    /// [`Error`] naming the part that cannot be opened.
    pub async fn open(settings: &Settings) -> Result<Self, Error> {
        let store = open_store(settings).await?;
        let database = Database::open(settings.store.database.expose()).await?;
        let scope = Scope::new(TENANT, OWNER).map_err(perihelion_documents::Error::from)?;
        let has_model = settings.models.for_role("summarizer").url.is_some();
        let model: Option<Arc<dyn ChatModel>> =
            if has_model { Some(Arc::new(OpenAiModel::new(&settings.models)?)) } else { None };
        let embeddings = embeddings(settings).map_err(Error::Client)?;
        let embeddings = embeddings.map(|endpoint| Arc::new(endpoint) as Arc<dyn EmbeddingModel>);
        let library = library_of(settings, database).map_err(Error::Client)?;
        let own = &settings.documents;
        let endings = own.parser.as_ref().map(|_| own.parser_for.0.clone()).unwrap_or_default();
        let stop = CancellationToken::new();
        Ok(Self { library, scope, store, model, embeddings, stop, endings })
    }

    /// Names folders, of which also those files count that another program reads.
    pub fn folders(&self, roots: Vec<PathBuf>, patterns: Vec<String>) -> Folders {
        Folders::new(roots, patterns).with_endings(self.endings.clone())
    }

    /// Has what is under way stop when the token is cancelled, after the request that was sent; the same call continues it later.
    #[must_use]
    pub fn stopping_at(self, stop: CancellationToken) -> Self {
        Self { stop, ..self }
    }

    /// Returns the documents of another tenant of the same database.
    ///
    /// # Errors
    /// [`Error::Documents`] for a tenant without a name.
    pub fn for_tenant(&self, tenant: &str) -> Result<Self, Error> {
        let scope = Scope::new(tenant, OWNER).map_err(perihelion_documents::Error::from)?;
        Ok(Self { scope, ..self.clone() })
    }

    /// Adds a file; killed anywhere, the next call for the same file continues.
    ///
    /// # Errors
    /// [`Error::Document`] naming what is wrong with the document.
    pub async fn add(
        &self,
        path: &Path,
        collection: &str,
        title: Option<String>,
        listener: Listener,
    ) -> Result<AddedDocument, Error> {
        let shown = path.display().to_string();
        let failed = |source| perihelion_documents::Error::File { path: shown.clone(), source };
        // The same file has the same name from everywhere.
        let whole = std::fs::canonicalize(path).map_err(failed)?;
        let name = whole.to_string_lossy().into_owned();
        let bytes = std::fs::read(&whole).map_err(failed)?;
        let read: Reading = Arc::new(|path: &str| std::fs::read(path));
        let place = Place { shown, name, collection, title };
        self.add_read(place, &bytes, read, listener).await
    }

    /// Adds a document that was sent; the same bytes under the same name continue what was broken off.
    ///
    /// # Errors
    /// [`Error::Document`] naming what is wrong with the document.
    pub async fn add_sent(
        &self,
        name: &str,
        bytes: Vec<u8>,
        collection: &str,
        title: Option<String>,
    ) -> Result<AddedDocument, Error> {
        let bytes = Arc::new(bytes);
        let sent = Arc::clone(&bytes);
        let read: Reading = Arc::new(move |_: &str| Ok(sent.to_vec()));
        let place = Place { shown: name.to_owned(), name: name.to_owned(), collection, title };
        self.add_read(place, &bytes, read, Arc::new(|_| {})).await
    }

    async fn add_read(
        &self,
        place: Place<'_>,
        bytes: &[u8],
        read: Reading,
        listener: Listener,
    ) -> Result<AddedDocument, Error> {
        let Place { shown, name, collection, title } = place;
        let hash = blake3::hash(bytes).to_hex().to_string();
        let adding = Adding { path: name, collection: collection.to_owned(), title, hash };
        let thread = Ingest::thread_of(&self.scope, &adding);
        if let Some(document) = self.known(&adding).await? {
            return Ok(AddedDocument {
                document,
                unchanged: true,
                embedded: 0,
                by_words_only: None,
                thread,
            });
        }
        // Before there is a thread, so that what is left of it is found by the document.
        let begun = self.library.begin(
            &self.scope,
            &adding.collection,
            &adding.path,
            &adding.hash,
            clock::now(),
        );
        begun.await?;
        let parts = IngestParts {
            library: self.library.clone(),
            scope: self.scope.clone(),
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
            document: self.library.find(&self.scope, &kept.id).await?,
            unchanged: false,
            embedded: outcome.state.embedded,
            by_words_only: outcome.state.by_words_only.clone(),
            thread,
        })
    }

    async fn known(&self, adding: &Adding) -> Result<Option<Document>, Error> {
        let renamed =
            |one: &Document| adding.title.as_ref().is_some_and(|title| *title != one.title);
        let kept = self.library.at(&self.scope, &adding.collection, &adding.path).await?;
        Ok(kept.filter(|one| one.hash == adding.hash && !renamed(one)))
    }

    /// Lists documents; of all collections where none is named.
    ///
    /// # Errors
    /// [`Error::Documents`].
    pub async fn list(&self, collection: Option<&str>) -> Result<Vec<Document>, Error> {
        Ok(self.library.list(&self.scope, collection).await?)
    }

    /// Returns what the tenant keeps, and what it may.
    ///
    /// # Errors
    /// [`Error::Documents`].
    pub async fn room(&self) -> Result<Room, Error> {
        Ok(self.library.room(&self.scope).await?)
    }

    /// Finds a document by its id, the beginning of it, or its path.
    ///
    /// # Errors
    /// [`Error::Documents`].
    pub async fn find(&self, given: &str) -> Result<Document, Error> {
        Ok(self.library.find(&self.scope, given).await?)
    }

    /// Reads a part of a document's text.
    ///
    /// # Errors
    /// [`Error::Documents`].
    pub async fn read(
        &self,
        given: &str,
        start: Option<usize>,
        end: Option<usize>,
    ) -> Result<Read, Error> {
        Ok(self.library.read(&self.scope, given, start, end).await?)
    }

    /// Returns the page around a place of a document, with its text; `None` where the format has no pages.
    ///
    /// # Errors
    /// [`Error::Documents`].
    pub async fn page(&self, given: &str, at: PageAt) -> Result<Option<DocumentPage>, Error> {
        Ok(self.library.page(&self.scope, given, at).await?)
    }

    /// Finds pieces by words and by meaning.
    ///
    /// # Errors
    /// [`Error::Documents`].
    pub async fn search(&self, query: &Query) -> Result<Vec<Source>, Error> {
        Ok(self.library.search(&self.scope, query, self.embeddings.as_deref()).await?)
    }

    /// Finds what answers a question: filters, words and meaning, fused, reranked by the model, read with what is around.
    ///
    /// # Errors
    /// [`Error::Documents`].
    pub async fn retrieve(&self, query: &Query) -> Result<Retrieved, Error> {
        let reranker = self.reranker();
        let reranker = reranker.as_ref().map(|one| one as &dyn Reranker);
        Ok(self.library.retrieve(&self.scope, query, self.embeddings.as_deref(), reranker).await?)
    }

    /// Returns every adding of a document, also of one that never got there.
    ///
    /// # Errors
    /// [`Error::Documents`].
    pub async fn begun(&self, given: &str) -> Result<Vec<Attempt>, Error> {
        Ok(self.library.attempts(&self.scope, given).await?)
    }

    /// Deletes a document, and every thread that added it or one of its versions; also what is left of one that never got there.
    ///
    /// # Errors
    /// [`Error::Documents`], [`Error::Store`].
    pub async fn delete(&self, given: &str) -> Result<Deleted, Error> {
        // The threads first: without the document nobody would find them.
        let attempts = self.begun(given).await?;
        forget(&*self.store, &self.scope, &attempts).await?;
        Ok(self.library.delete(&self.scope, given).await?)
    }

    /// Embeds what has no vector by the configured model yet, and makes searches use that model; returns how many texts
    /// that were, none without an endpoint. `listener` hears after each request how many there were so far.
    ///
    /// # Errors
    /// [`Error::Documents`].
    pub async fn reindex(&self, listener: Counting) -> Result<Option<u64>, Error> {
        let Some(model) = &self.embeddings else { return Ok(None) };
        let counted = Counted { model: &**model, done: AtomicU64::new(0), listener };
        let count = self.library.reindex(&self.scope, &counted).await?;
        Ok(Some(count))
    }

    /// Measures retrieval on judgements, with other weights where they are given; with `rerank` as an agent retrieves.
    ///
    /// # Errors
    /// [`Error::Documents`].
    pub async fn evaluate(
        &self,
        judgements: &[Judgement],
        weights: Option<Weights>,
        rerank: bool,
    ) -> Result<Measures, Error> {
        let reranker = self.reranker().filter(|_| rerank);
        let asking = Asking {
            weights,
            model: self.embeddings.as_deref(),
            reranker: reranker.as_ref().map(|one| one as &dyn Reranker),
        };
        let library = &self.library;
        Ok(perihelion_documents::evaluate(library, &self.scope, judgements, asking).await?)
    }

    fn reranker(&self) -> Option<ModelReranker> {
        self.model.clone().map(|model| ModelReranker { model, thread: String::new() })
    }

    /// Closes the connections.
    pub async fn close(self) {
        self.library.close().await;
        self.store.close().await;
    }
}

/// Returns the class of what kept a document out, in one word.
fn class(result: &RunResult) -> String {
    match result {
        RunResult::Failed(EngineError::Node { kind, .. }) => kind.clone(),
        _ => "document".to_owned(),
    }
}
