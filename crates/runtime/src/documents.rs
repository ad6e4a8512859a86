//! The documents of the database, for APIs and the command line: added on a separate thread each, found, read, deleted.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use perihelion_database::Database;
use perihelion_documents::parse::{self, child};
use perihelion_documents::{
    Asking, Attempt, Deleted, Document, DocumentPage, EmbeddingModel, Error as DocumentError,
    Found, Judgement, Limits, Measures, PageAt, Query, Read, Reranker, Retrieved, Room, Scope,
    Tesseract, Weights,
};
use tokio_util::sync::CancellationToken;

use super::counted::{Counted, Counting};
use super::folders::unreadable;
use super::{Error, Folders, open_store};
use chrono::{DateTime, Utc};
use perihelion_ingest::{
    AddedDocument, DocumentModel, DocumentThreads, Listener, NewDocument, OWNER, Reading, TENANT,
    embeddings, library_of, summarizer,
};
use perihelion_settings::config::Settings;
use serde::Serialize;

/// Parses one document in this process, a child of the caller: it sets its own limits, reads the document from standard
/// input and writes the result to standard output. Pictures are read by the Tesseract, if one is given.
///
/// # Errors
/// When standard output cannot be written.
pub fn parse_document(name: &str, tesseract: Option<Tesseract>) -> std::io::Result<()> {
    let mut bounds = child::Bounds::default();
    bounds.cpu_seconds += tesseract.as_ref().map_or(0, |tesseract| tesseract.seconds);
    child::answer(name, &Limits { tesseract, ..Limits::default() }, bounds)
}

/// Returns the name of a file, which is the same from everywhere.
fn name_of(path: &Path) -> Result<String, Error> {
    let whole = std::fs::canonicalize(path).map_err(|source| unreadable(path, source))?;
    Ok(whole.to_string_lossy().into_owned())
}

fn check_size(size: u64) -> Result<(), parse::Error> {
    let most = Limits::default().input_bytes;
    let bytes = usize::try_from(size).unwrap_or(usize::MAX);
    if bytes > most { Err(parse::Error::TooLarge { bytes, most }) } else { Ok(()) }
}

/// The documents of one owner; cheap to clone.
#[derive(Clone)]
pub struct Documents {
    pub(super) threads: DocumentThreads,
    /// Endings of names that another program reads.
    endings: Vec<String>,
}

impl Documents {
    pub async fn open(settings: &Settings) -> Result<Self, Error> {
        let store = open_store(settings).await?;
        let database = Database::open(settings.store.database.expose()).await?;
        let scope = Scope::new(TENANT, OWNER).map_err(perihelion_documents::Error::from)?;
        let model = summarizer(&settings.models)?;
        let embeddings = embeddings(settings).map_err(Error::Client)?;
        let embeddings = embeddings.map(|endpoint| Arc::new(endpoint) as Arc<dyn EmbeddingModel>);
        let library = library_of(settings, database, scope).map_err(Error::Client)?;
        let own = &settings.documents;
        let endings = own.parser.as_ref().map(|_| own.parser_for.0.clone()).unwrap_or_default();
        let stop = CancellationToken::new();
        let threads = DocumentThreads { library, store, model, embeddings, stop };
        Ok(Self { threads, endings })
    }

    /// Names folders, of which also those files count that another program reads.
    pub fn folders(&self, roots: Vec<PathBuf>, patterns: Vec<String>) -> Folders {
        Folders::new(roots, patterns, self.endings.clone())
    }

    /// Stops active work when the token is cancelled, after the sent request; the same call continues it later.
    #[must_use]
    pub fn stopping_at(self, stop: CancellationToken) -> Self {
        let threads = DocumentThreads { stop, ..self.threads };
        Self { threads, ..self }
    }

    pub(super) fn within(&self, scope: &Scope) -> Self {
        Self { threads: self.threads.within(scope), endings: self.endings.clone() }
    }

    /// Returns the documents of another tenant of the same database.
    ///
    /// # Errors
    /// [`Error::Documents`] for a tenant without a name.
    pub fn for_tenant(&self, tenant: &str) -> Result<Self, Error> {
        let scope = Scope::new(tenant, OWNER).map_err(perihelion_documents::Error::from)?;
        Ok(self.within(&scope))
    }

    /// Adds a file; killed anywhere, the next call for the same file continues.
    ///
    /// # Errors
    /// [`Error::Document`] with the problem of the document.
    pub async fn add(
        &self,
        path: &Path,
        collection: &str,
        title: Option<String>,
        listener: Listener,
    ) -> Result<AddedDocument, Error> {
        let name = name_of(path)?;
        let shown = path.display().to_string();
        let failed = |source| unreadable(path, source);
        let size = std::fs::metadata(path).map_err(failed)?.len();
        // Before all of it is in memory; a pipe has the size 0.
        check_size(size).map_err(|problem| Error::Document {
            path: shown.clone(),
            class: problem.class().to_owned(),
            reason: problem.to_string(),
        })?;
        let bytes = std::fs::read(path).map_err(failed)?;
        let read: Reading = Arc::new(|path: &str| std::fs::read(path));
        let place = NewDocument { shown, name, collection: collection.to_owned(), title };
        Ok(self.threads.add(place, &bytes, (read, listener)).await?)
    }

    /// Makes the next addition of a file read it again, although its bytes are known.
    ///
    /// # Errors
    /// [`Error::Documents`] if the file is missing, or the database fails.
    pub async fn read_again(&self, path: &Path, collection: &str) -> Result<(), Error> {
        Ok(self.threads.library.read_again(collection, &name_of(path)?).await?)
    }

    /// Adds an uploaded document; the same bytes under the same name continue interrupted work.
    ///
    /// # Errors
    /// [`Error::Document`] with the problem of the document.
    pub async fn add_sent(
        &self,
        name: &str,
        bytes: Vec<u8>,
        collection: &str,
        title: Option<String>,
    ) -> Result<AddedDocument, Error> {
        let collection = collection.to_owned();
        let place =
            NewDocument { shown: name.to_owned(), name: name.to_owned(), collection, title };
        Ok(self.threads.add_sent(place, bytes).await?)
    }

    /// Lists documents; of all collections by default.
    pub async fn list(&self, collection: Option<&str>) -> Result<Vec<Document>, Error> {
        Ok(self.threads.library.list(collection).await?)
    }

    pub async fn room(&self) -> Result<Room, Error> {
        Ok(self.threads.library.room().await?)
    }

    /// Finds a document by its id, the beginning of it, or its path.
    pub async fn find(&self, given: &str) -> Result<Document, Error> {
        Ok(self.threads.library.find(given).await?)
    }

    pub async fn read(
        &self,
        given: &str,
        start: Option<usize>,
        end: Option<usize>,
    ) -> Result<Read, Error> {
        Ok(self.threads.library.read(given, start, end).await?)
    }

    /// Returns the page around a place in a document, with its text; `None` if the format has no pages.
    pub async fn page(&self, given: &str, at: PageAt) -> Result<Option<DocumentPage>, Error> {
        Ok(self.threads.library.page(given, at).await?)
    }

    pub async fn search(&self, query: &Query) -> Result<Found, Error> {
        Ok(self.threads.library.search(query, self.threads.embeddings.as_deref()).await?)
    }

    /// Finds passages for a question: filters, keyword and vector search, fused, reranked by the model, read with their
    /// context.
    pub async fn retrieve(&self, query: &Query) -> Result<Retrieved, Error> {
        let reranker = self.reranker();
        let reranker = reranker.as_ref().map(|one| one as &dyn Reranker);
        let embeddings = self.threads.embeddings.as_deref();
        Ok(self.threads.library.retrieve(query, embeddings, reranker).await?)
    }

    /// Returns every addition of a document, including failed ones.
    pub async fn begun(&self, given: &str) -> Result<Vec<Attempt>, Error> {
        Ok(self.threads.library.attempts(given).await?)
    }

    /// Deletes a document, and every thread that added it or one of its versions; also the remains of a failed
    /// addition.
    pub async fn delete(&self, given: &str) -> Result<Deleted, Error> {
        Ok(self.threads.delete(given).await?)
    }

    /// Embeds texts that have no vector of the configured model, and makes searches use that model; returns the number
    /// of texts, `None` without an endpoint. `listener` receives the number of texts after each request.
    pub async fn reindex(&self, listener: Counting) -> Result<Option<u64>, Error> {
        let Some(model) = &self.threads.embeddings else { return Ok(None) };
        let counted = Counted { model: &**model, done: AtomicU64::new(0), listener };
        let count = self.threads.library.reindex(&counted).await?;
        Ok(Some(count))
    }

    /// Measures retrieval against judgments, optionally with other weights; with `rerank`, as an agent retrieves.
    pub async fn evaluate(
        &self,
        judgements: &[Judgement],
        weights: Option<Weights>,
        rerank: bool,
    ) -> Result<Measures, Error> {
        let reranker = self.reranker().filter(|_| rerank);
        let asking = Asking {
            weights,
            model: self.threads.embeddings.as_deref(),
            reranker: reranker.as_ref().map(|one| one as &dyn Reranker),
        };
        Ok(self.threads.library.evaluate(judgements, asking).await?)
    }

    fn reranker(&self) -> Option<DocumentModel> {
        self.threads.model.clone().map(|model| DocumentModel { model, thread: String::new() })
    }

    pub async fn close(self) {
        self.threads.library.close().await;
        self.threads.store.close().await;
    }
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ExportedDocument {
    pub document: Document,
    pub text: String,
}

impl Documents {
    /// Reads the whole of a listed document; `None` if it was deleted since.
    pub async fn exported(&self, document: Document) -> Result<Option<ExportedDocument>, Error> {
        match self.threads.library.body(&document.id).await {
            Ok(text) => Ok(Some(ExportedDocument { document, text })),
            Err(DocumentError::Unknown(_)) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Returns the tenant's documents that were last changed before a time.
    pub async fn older(
        &self,
        collection: Option<&str>,
        before: DateTime<Utc>,
    ) -> Result<Vec<Document>, Error> {
        let listed = self.list(collection).await?;
        Ok(listed.into_iter().filter(|one| one.changed_at < before).collect())
    }

    /// Returns addings that were begun before a time and never came to an end.
    pub async fn abandoned(
        &self,
        collection: Option<&str>,
        before: DateTime<Utc>,
    ) -> Result<Vec<Attempt>, Error> {
        Ok(self.threads.library.abandoned(collection, before).await?)
    }

    /// Deletes a document as [`Documents::delete`] does, unless it was changed since that time; says whether it did.
    pub async fn delete_older(&self, id: &str, before: DateTime<Utc>) -> Result<bool, Error> {
        match self.threads.library.delete_older(id, before).await? {
            Some(deleted) => {
                self.threads.forget(&deleted.attempts).await?;
                Ok(true)
            }
            None => Ok(false),
        }
    }

    /// Deletes the documents last changed before a time, of all tenants and owners; after an interruption, the next
    /// call continues.
    ///
    /// The log names documents that cannot be deleted; they stay.
    ///
    /// # Errors
    /// [`Error::Documents`] where documents cannot be listed.
    pub async fn prune_all(&self, before: DateTime<Utc>) -> Result<u64, Error> {
        let mut count = 0;
        for (scope, id) in self.threads.library.older(before).await? {
            if self.threads.stop.is_cancelled() {
                break;
            }
            match self.within(&scope).delete_older(&id, before).await {
                Ok(is_deleted) => count += u64::from(is_deleted),
                Err(error) => {
                    tracing::warn!(%error, document = id, "an old document could not be deleted");
                }
            }
        }
        Ok(count)
    }
}
