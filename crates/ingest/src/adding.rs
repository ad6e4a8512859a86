//! The graph that adds a document, and the thread that drives it.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use perihelion_documents::{Attempt, EmbeddingModel, Library, Prepared, Scope, Step};
use tokio_util::sync::CancellationToken;

use super::nodes::{self, Work, WorkUpdate};
use perihelion_engine::checkpoint::{self, Store};
use perihelion_engine::graph::{BuildError, Context, Graph, GraphBuilder, node_fn};
use perihelion_engine::ids::ThreadId;
use perihelion_engine::runner::{self, RunOptions, RunOutcome, RunResult, Runner};
use perihelion_llm::ChatModel;

/// Hears how far the adding is.
pub type Listener = Arc<dyn Fn(Step) + Send + Sync>;

/// Reads a document's bytes by its path.
pub type Reading = Arc<dyn Fn(&str) -> std::io::Result<Vec<u8>> + Send + Sync>;

/// What the nodes work with.
pub struct IngestParts {
    pub library: Library,
    pub scope: Scope,
    /// Describes documents; none: they are kept without descriptions.
    pub model: Option<Arc<dyn ChatModel>>,
    /// Turns pieces into vectors; none: they are found by words.
    pub embeddings: Option<Arc<dyn EmbeddingModel>>,
    pub read: Reading,
    pub listener: Listener,
    pub thread: ThreadId,
    /// What this process has parsed, so that it does so once.
    pub kept: Mutex<HashMap<String, Arc<Prepared>>>,
}

impl IngestParts {
    pub(super) fn prepared(&self, hash: &str) -> Option<Arc<Prepared>> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner).get(hash).cloned()
    }

    pub(super) fn remember(&self, hash: &str, prepared: Prepared) -> Arc<Prepared> {
        let prepared = Arc::new(prepared);
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.insert(hash.to_owned(), Arc::clone(&prepared));
        prepared
    }

    pub(super) fn forget(&self, hash: &str) {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner).remove(hash);
    }
}

/// A document to be added.
#[derive(Clone, Debug)]
pub struct Adding {
    pub path: String,
    pub collection: String,
    pub title: Option<String>,
    /// Of the file's bytes.
    pub hash: String,
}

/// Adds one document on a thread of its own.
pub struct Ingest {
    runner: Runner<Work>,
    thread: ThreadId,
}

impl Ingest {
    /// Makes the graph on a store.
    ///
    /// # Errors
    /// [`BuildError`] never in practice: the graph does not depend on its parts.
    pub fn new(parts: IngestParts, store: Arc<dyn Store>) -> Result<Self, BuildError> {
        let thread = parts.thread;
        Ok(Self { runner: Runner::new(graph(Arc::new(parts))?, store), thread })
    }

    /// Returns the thread of a document: the same for the same bytes at the same place.
    pub fn thread_of(scope: &Scope, adding: &Adding) -> ThreadId {
        let parts = [scope.tenant(), scope.owner(), &adding.collection, &adding.path, &adding.hash];
        ThreadId::from_name(&format!("document\u{1}{}", parts.join("\u{1}"))).0
    }

    /// Adds the document, or continues where a former process was; stops when it is asked to, to be continued.
    ///
    /// # Errors
    /// Whatever the runner reports.
    pub async fn run(
        &self,
        adding: Adding,
        stop: CancellationToken,
    ) -> Result<RunOutcome<Work>, runner::Error> {
        let options = RunOptions { cancel: stop, ..RunOptions::default() };
        let is_new = match self.runner.store().info(self.thread).await {
            Ok(info) => info.head == 0,
            Err(checkpoint::Error::UnknownThread(_)) => {
                let title = format!("document {}", adding.path);
                self.runner.create(self.thread, Some(title)).await?;
                true
            }
            Err(error) => return Err(error.into()),
        };
        if !is_new {
            match self.runner.resume(self.thread, options.clone()).await {
                Err(runner::Error::Finished { .. }) => {}
                resumed => return resumed,
            }
        }
        let input = WorkUpdate::new()
            .path(adding.path)
            .collection(adding.collection)
            .title(adding.title)
            .hash(adding.hash);
        self.runner.start(self.thread, input, options).await
    }
}

/// Deletes the threads by which a document was added, or was to be.
///
/// # Errors
/// Whatever the store reports; those before it are deleted.
pub async fn forget(
    store: &dyn Store,
    scope: &Scope,
    attempts: &[Attempt],
) -> Result<(), checkpoint::Error> {
    for attempt in attempts {
        let adding = Adding {
            path: attempt.path.clone(),
            collection: attempt.collection.clone(),
            title: None,
            hash: attempt.hash.clone(),
        };
        match store.delete(Ingest::thread_of(scope, &adding)).await {
            Ok(_) | Err(checkpoint::Error::UnknownThread(_)) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Returns why a run did not end well.
pub fn failure(outcome: &RunOutcome<Work>) -> Option<String> {
    match &outcome.result {
        RunResult::Done => None,
        RunResult::Failed(error) => Some(error.to_string()),
        RunResult::Cancelled => Some("stopped; the same command continues".to_owned()),
        other => Some(format!("{other:?}")),
    }
}

fn graph(parts: Arc<IngestParts>) -> Result<Arc<Graph<Work>>, BuildError> {
    macro_rules! node {
        ($function:path) => {{
            let parts = Arc::clone(&parts);
            node_fn(move |ctx: Context<Work>| $function(Arc::clone(&parts), ctx))
        }};
    }
    GraphBuilder::new("document")
        .node("parse", node!(nodes::parse))
        .node("describe", node!(nodes::describe))
        .node("embed", node!(nodes::embed))
        .node("keep", node!(nodes::keep))
        .entry("parse")
        .edge("parse", "describe")
        .edge("describe", "embed")
        .edge("embed", "keep")
        .build()
}
