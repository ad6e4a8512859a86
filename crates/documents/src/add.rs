//! Adding a document, step by step: each may run again, and what was paid for is not paid for twice.

use std::collections::HashSet;

use perihelion_database::query;
use perihelion_recall::{ContentHash, EmbeddingModel, Scope};

use crate::library::{KIND, check_collection};
use crate::text::Places;
use crate::{Describer, Document, Error, Input, Library, Prepared, prepare};

/// What became of a document that was to be added.
#[derive(Clone, Debug, PartialEq)]
pub struct Added {
    pub document: Document,
    /// Its bytes were known: nothing was done.
    pub unchanged: bool,
    /// Texts that the embedding model was asked.
    pub embedded: u64,
    /// Why it is found by words alone, where the embedding model failed.
    pub by_words_only: Option<String>,
}

/// How far the adding of a document is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    Parse,
    Describe,
    Embed { done: usize, of: usize },
    Keep,
}

/// Hears how far the adding is.
pub type Progress<'a> = &'a (dyn Fn(Step) + Send + Sync);

impl Library {
    /// Adds a document in one go; `describer` and `model` are asked where they are there.
    ///
    /// # Errors
    /// [`Error::Parse`] naming what is wrong with the document; nothing is kept then.
    pub async fn add(
        &self,
        scope: &Scope,
        input: Input,
        describer: Option<&dyn Describer>,
        model: Option<&dyn EmbeddingModel>,
        progress: Progress<'_>,
    ) -> Result<Added, Error> {
        if let Some(document) = self.known(scope, &input).await? {
            return Ok(Added { document, unchanged: true, embedded: 0, by_words_only: None });
        }
        progress(Step::Parse);
        let prepared = self.prepare(scope, input).await?;
        if let Some(describer) = describer {
            progress(Step::Describe);
            self.describe(scope, &prepared, describer).await?;
        }
        let mut embedded = 0;
        let mut by_words_only = None;
        if let Some(model) = model {
            self.stage(scope, &prepared).await?;
            match self.embed(scope, &prepared, model, progress).await {
                Ok(count) => embedded = count,
                Err(Error::Recall(perihelion_recall::Error::Embedding(error))) => {
                    by_words_only = Some(error.to_string());
                }
                Err(error) => return Err(error),
            }
        }
        progress(Step::Keep);
        let document = self.flip(scope, &prepared).await?;
        Ok(Added { document, unchanged: false, embedded, by_words_only })
    }

    /// Returns the document if these very bytes are kept under this path.
    ///
    /// # Errors
    /// [`Error::Collection`], [`Error::Database`].
    pub async fn known(&self, scope: &Scope, input: &Input) -> Result<Option<Document>, Error> {
        check_collection(&input.collection)?;
        let id = prepare::id(scope, &input.collection, &input.path);
        let hash = prepare::hash(&input.bytes);
        let renamed =
            |one: &Document| input.title.as_ref().is_some_and(|title| *title != one.title);
        let kept = self.by_id(scope, &id).await?;
        Ok(kept.filter(|document| document.hash == hash && !renamed(document)))
    }

    /// Parses and divides a document; pieces of its last version that still stand are kept as they are.
    ///
    /// # Errors
    /// [`Error::Parse`], [`Error::Collection`], [`Error::Full`].
    pub async fn prepare(&self, scope: &Scope, input: Input) -> Result<Prepared, Error> {
        check_collection(&input.collection)?;
        let id = prepare::id(scope, &input.collection, &input.path);
        if self.by_id(scope, &id).await?.is_none() {
            self.check_new(scope).await?;
        }
        let parsed = self.parser.parse(&input.path, &input.bytes).await?;
        let (version, before) = match self.by_id(scope, &id).await? {
            Some(last) => (last.version + 1, self.pieces(scope, &last.id).await?),
            None => (1, HashSet::new()),
        };
        let prepared = Prepared::new(id, input, parsed, version, self.options, &before);
        self.check_room(scope, &prepared).await?;
        Ok(prepared)
    }

    /// Claims the vectors of the pieces, so that they can be kept before the document is there.
    ///
    /// # Errors
    /// [`Error::Recall`].
    pub async fn stage(&self, scope: &Scope, prepared: &Prepared) -> Result<(), Error> {
        self.begin_prepared(scope, prepared).await?;
        let hashes: Vec<ContentHash> =
            prepared.meanings().into_iter().map(|(hash, _)| hash).collect();
        Ok(self.index.claim(scope, &prepared.id, &hashes).await?)
    }

    async fn embed(
        &self,
        scope: &Scope,
        prepared: &Prepared,
        model: &dyn EmbeddingModel,
        progress: Progress<'_>,
    ) -> Result<u64, Error> {
        let missing = self.missing(scope, model.model(), &prepared.meanings()).await?;
        let mut done = 0;
        let mut asked = 0;
        for batch in missing.chunks(model.batch().max(1)) {
            progress(Step::Embed { done, of: missing.len() });
            asked += self.embed_batch(scope, model, batch).await?;
            done += batch.len();
        }
        Ok(asked as u64)
    }

    /// Returns the texts of a document's pieces.
    async fn pieces(&self, scope: &Scope, id: &str) -> Result<HashSet<String>, Error> {
        let read = query(
            "SELECT i.payload FROM recall_item i JOIN recall_space s ON s.id = i.space
             WHERE s.tenant = $1 AND s.owner = $2 AND s.kind = $3 AND i.parent = $4",
        );
        let read = read.bind(scope.tenant()).bind(scope.owner()).bind(KIND).bind(id);
        let body = self.body(scope, id).await?;
        let rows = self.database_of(scope).fetch_all(&read).await?;
        let mut ranges = Vec::new();
        for row in &rows {
            let payload: serde_json::Value = row.get(0)?;
            let payload = serde_json::from_value::<prepare::Payload>(payload).ok();
            ranges.extend(payload.map(|payload| (payload.start, payload.end)));
        }
        // In their order, so that the text is gone through once.
        ranges.sort_unstable();
        let mut places = Places::new(&body);
        let pieces = ranges.into_iter().filter_map(|(start, end)| places.part(start, end));
        Ok(pieces.map(str::to_owned).collect())
    }
}
