//! Adding a document, step by step: each may run again, and what was paid for is not paid for twice.

use std::collections::{HashMap, HashSet};

use perihelion_database::{Transaction, Value, query};
use perihelion_recall::{
    ContentHash, EmbeddingModel, Index as _, Item, Scope, StoredIndex, content_hash,
};
use serde_json::json;
use sqlx::AssertSqlSafe;

use crate::library::{KIND, STAGED, check_collection};
use crate::{Describer, Description, Document, Error, Input, Library, Prepared, prepare};

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
        match self.find(scope, &id).await {
            Ok(document) if document.hash == hash && !renamed(&document) => Ok(Some(document)),
            Ok(_) | Err(Error::Unknown(_)) => Ok(None),
            Err(error) => Err(error),
        }
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
        let (version, before) = match self.find(scope, &id).await {
            Ok(last) => (last.version + 1, self.pieces(scope, &last.id).await?),
            Err(Error::Unknown(_)) => (1, HashSet::new()),
            Err(error) => return Err(error),
        };
        let prepared = Prepared::new(id, input, parsed, version, self.options, &before);
        self.check_room(scope, &prepared).await?;
        Ok(prepared)
    }

    /// Puts the pieces where no search looks, so that their vectors can be kept before the document is there.
    ///
    /// # Errors
    /// [`Error::Recall`].
    pub async fn stage(&self, scope: &Scope, prepared: &Prepared) -> Result<(), Error> {
        let read = query(
            "SELECT i.id, i.hash FROM recall_item i JOIN recall_space s ON s.id = i.space
             WHERE s.tenant = $1 AND s.owner = $2 AND s.kind = $3 AND i.parent = $4",
        );
        let read = read.bind(scope.tenant()).bind(scope.owner()).bind(STAGED).bind(&prepared.id);
        let rows = self.database_of(scope).fetch_all(&read).await?;
        let staged = rows.iter().map(|row| Ok((row.get(0)?, row.get(1)?)));
        let staged =
            staged.collect::<Result<HashMap<String, String>, perihelion_database::Error>>()?;
        // What is there stays: replacing an item would drop the vector of its text.
        let hash = |item: &Item| blake3::Hash::from_bytes(content_hash(&item.meaning_text()));
        let mut items = prepared.items();
        let wanted: HashSet<String> = items.iter().map(|item| item.id.clone()).collect();
        items.retain(|item| {
            staged.get(&item.id).is_none_or(|known| *known != hash(item).to_hex().as_str())
        });
        self.index.put(scope, STAGED, &items).await?;
        let stale: Vec<String> = staged.into_keys().filter(|id| !wanted.contains(id)).collect();
        self.index.remove(scope, STAGED, &stale).await?;
        Ok(())
    }

    /// Returns the texts of a document that have no vector by a model yet, each once.
    ///
    /// # Errors
    /// [`Error::Database`].
    pub async fn missing(
        &self,
        scope: &Scope,
        prepared: &Prepared,
        model: &str,
    ) -> Result<Vec<(ContentHash, String)>, Error> {
        let meanings = prepared.meanings();
        let hashes: Vec<ContentHash> = meanings.iter().map(|(hash, _)| *hash).collect();
        let known: HashSet<ContentHash> =
            self.index.embedded(scope, model, &hashes).await?.into_iter().collect();
        Ok(meanings.into_iter().filter(|(hash, _)| !known.contains(hash)).collect())
    }

    /// Has a document described, unless these bytes were; tells whether it is described now.
    ///
    /// # Errors
    /// [`Error::Database`].
    pub async fn describe(
        &self,
        scope: &Scope,
        prepared: &Prepared,
        describer: &dyn Describer,
    ) -> Result<bool, Error> {
        if self.draft(scope, prepared).await?.is_some() {
            return Ok(true);
        }
        let beginning = prepared.beginning();
        let Some(description) = describer.describe(&prepared.path, &beginning).await else {
            return Ok(false);
        };
        let insert = query(
            "INSERT INTO document_draft (tenant, owner, id, hash, description) VALUES ($1, $2, $3, $4, $5)
             ON CONFLICT (tenant, owner, id) DO UPDATE SET hash = excluded.hash, description = excluded.description",
        );
        let insert = insert.bind(scope.tenant()).bind(scope.owner()).bind(&prepared.id);
        let insert = insert.bind(&prepared.hash).bind(json!(description));
        self.database_of(scope).execute(&insert).await?;
        Ok(true)
    }

    async fn draft(
        &self,
        scope: &Scope,
        prepared: &Prepared,
    ) -> Result<Option<Description>, Error> {
        let read = query(
            "SELECT description FROM document_draft WHERE tenant = $1 AND owner = $2 AND id = $3 AND hash = $4",
        );
        let read =
            read.bind(scope.tenant()).bind(scope.owner()).bind(&prepared.id).bind(&prepared.hash);
        let Some(row) = self.database_of(scope).fetch_optional(&read).await? else {
            return Ok(None);
        };
        let kept: serde_json::Value = row.get(0)?;
        Ok(serde_json::from_value(kept).ok())
    }

    async fn embed(
        &self,
        scope: &Scope,
        prepared: &Prepared,
        model: &dyn EmbeddingModel,
        progress: Progress<'_>,
    ) -> Result<u64, Error> {
        let missing = self.missing(scope, prepared, model.model()).await?;
        let mut done = 0;
        for batch in missing.chunks(model.batch().max(1)) {
            progress(Step::Embed { done, of: missing.len() });
            let texts: Vec<String> = batch.iter().map(|(_, text)| text.clone()).collect();
            let vectors = model.embed(&texts).await.map_err(perihelion_recall::Error::from)?;
            self.keep_vectors(scope, model.model(), batch, vectors).await?;
            done += batch.len();
        }
        Ok(done as u64)
    }

    /// Keeps the vectors of a batch of texts.
    ///
    /// # Errors
    /// [`Error::Recall`] when there are more or fewer than texts, or they do not fit the model's others.
    pub async fn keep_vectors(
        &self,
        scope: &Scope,
        model: &str,
        batch: &[(ContentHash, String)],
        vectors: Vec<Vec<f32>>,
    ) -> Result<(), Error> {
        if vectors.len() != batch.len() {
            let said = format!("{} vectors for {} texts", vectors.len(), batch.len());
            return Err(
                perihelion_recall::Error::from(perihelion_recall::EmbeddingError(said)).into()
            );
        }
        let pairs: Vec<_> = batch.iter().map(|(hash, _)| *hash).zip(vectors).collect();
        Ok(self.index.put_vectors(scope, model, &pairs).await?)
    }

    /// Puts a document in place of its last version, in one transaction: from then on it is found and read.
    ///
    /// Done again it changes nothing.
    ///
    /// # Errors
    /// [`Error::Database`]; then the last version stands.
    pub async fn flip(&self, scope: &Scope, prepared: &Prepared) -> Result<Document, Error> {
        match self.find(scope, &prepared.id).await {
            // It is there: a former process ended between this and noting it.
            Ok(known) if known.hash == prepared.hash && known.title == prepared.title => {
                self.index.remove_parent(scope, STAGED, &prepared.id).await?;
                return Ok(known);
            }
            Ok(_) | Err(Error::Unknown(_)) => {}
            Err(error) => return Err(error),
        }
        let items = prepared.items();
        let description = self.draft(scope, prepared).await?;
        let stale = self.former(scope, prepared).await?;
        let database = self.database_of(scope);
        let mut transaction = database.begin().await?;
        StoredIndex::put_in(&mut transaction, scope, KIND, &items).await?;
        // Afterwards, so that a vector always has an item.
        StoredIndex::remove_in(&mut transaction, scope, KIND, &stale).await?;
        StoredIndex::remove_parent_in(&mut transaction, scope, STAGED, &prepared.id).await?;
        self.count_in(&mut transaction, scope, prepared).await?;
        write(&mut transaction, scope, prepared, description, items.len()).await?;
        transaction.commit().await?;
        self.database().scrub().await?;
        self.find(scope, &prepared.id).await
    }

    /// Returns the ids of items that the document leaves behind.
    async fn former(&self, scope: &Scope, prepared: &Prepared) -> Result<Vec<String>, Error> {
        let read = query(
            "SELECT i.id FROM recall_item i JOIN recall_space s ON s.id = i.space
             WHERE s.tenant = $1 AND s.owner = $2 AND s.kind = $3 AND i.parent = $4",
        );
        let read = read.bind(scope.tenant()).bind(scope.owner()).bind(KIND).bind(&prepared.id);
        let rows = self.database_of(scope).fetch_all(&read).await?;
        let ids = rows.iter().map(|row| row.get::<String>(0)).collect::<Result<Vec<_>, _>>()?;
        let own = format!("{}/{}/", prepared.id, prepared.version);
        Ok(ids.into_iter().filter(|id| !id.starts_with(&own)).collect())
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
        let mut pieces = HashSet::new();
        for row in &rows {
            let payload: serde_json::Value = row.get(0)?;
            let Ok(payload) = serde_json::from_value::<prepare::Payload>(payload) else { continue };
            pieces.extend(crate::text::part(&body, payload.start, payload.end).map(str::to_owned));
        }
        Ok(pieces)
    }
}

async fn write(
    transaction: &mut Transaction<'_>,
    scope: &Scope,
    prepared: &Prepared,
    description: Option<Description>,
    chunks: usize,
) -> Result<(), Error> {
    let count = |number: usize| i64::try_from(number).unwrap_or(i64::MAX);
    let warnings: Vec<String> = prepared.parsed.warnings.iter().map(ToString::to_string).collect();
    let parsed = &prepared.parsed;
    let insert = query(
        "INSERT INTO document (tenant, owner, id, collection, path, title, format, hash, version, bytes,
            characters, chunks, description, warnings, added_at, changed_at, authors)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $15, $16)
         ON CONFLICT (tenant, owner, id) DO UPDATE SET title = excluded.title, format = excluded.format,
            hash = excluded.hash, version = excluded.version, bytes = excluded.bytes,
            characters = excluded.characters, chunks = excluded.chunks, description = excluded.description,
            warnings = excluded.warnings, changed_at = excluded.changed_at,
            authors = excluded.authors",
    );
    let insert = insert
        .bind(scope.tenant())
        .bind(scope.owner())
        .bind(&prepared.id)
        .bind(&prepared.collection)
        .bind(&prepared.path)
        .bind(&prepared.title)
        .bind(parsed.format.as_str())
        .bind(&prepared.hash)
        .bind(i64::try_from(prepared.version).unwrap_or(i64::MAX))
        .bind(i64::try_from(prepared.bytes).unwrap_or(i64::MAX))
        .bind(count(parsed.text.chars().count()))
        .bind(count(chunks))
        .bind(Value::Json(description.map(|description| json!(description))))
        .bind(json!(warnings))
        .bind(prepared.now)
        .bind(json!(parsed.authors));
    transaction.execute(&insert).await?;
    let outline =
        json!({ "pages": parsed.pages, "sections": parsed.sections, "tables": parsed.tables });
    let insert = query(
        "INSERT INTO document_text (tenant, owner, id, body, outline) VALUES ($1, $2, $3, $4, $5)
         ON CONFLICT (tenant, owner, id) DO UPDATE SET body = excluded.body, outline = excluded.outline",
    );
    let insert = insert.bind(scope.tenant()).bind(scope.owner()).bind(&prepared.id);
    transaction.execute(&insert.bind(&parsed.text).bind(outline)).await?;
    let delete = query("DELETE FROM document_parent WHERE tenant = $1 AND owner = $2 AND id = $3");
    let delete = delete.bind(scope.tenant()).bind(scope.owner()).bind(&prepared.id);
    transaction.execute(&delete).await?;
    let delete = query("DELETE FROM document_draft WHERE tenant = $1 AND owner = $2 AND id = $3");
    let delete = delete.bind(scope.tenant()).bind(scope.owner()).bind(&prepared.id);
    transaction.execute(&delete).await?;
    write_parents(transaction, scope, prepared).await
}

/// Writes all parents by one statement, which reads them from one list.
async fn write_parents(
    transaction: &mut Transaction<'_>,
    scope: &Scope,
    prepared: &Prepared,
) -> Result<(), Error> {
    let parents = prepared.parents().into_iter().enumerate().map(|(number, parent)| {
        json!({
            "number": number,
            "first": parent.first,
            "past": parent.past,
            "page": parent.page,
            "section": parent.section,
        })
    });
    let parents: Vec<serde_json::Value> = parents.collect();
    let sql = transaction.dialect().pick(
        "INSERT INTO document_parent (tenant, owner, id, number, first, past, page, section)
         SELECT $1, $2, $3, value ->> 'number', value ->> 'first', value ->> 'past', value ->> 'page', value -> 'section'
         FROM json_each($4)",
        "INSERT INTO document_parent (tenant, owner, id, number, first, past, page, section)
         SELECT $1, $2, $3, number, first, past, page, section
         FROM jsonb_to_recordset($4) AS listed (number bigint, first bigint, past bigint, page bigint, section jsonb)",
    );
    let insert = query(AssertSqlSafe(sql)).bind(scope.tenant()).bind(scope.owner());
    transaction.execute(&insert.bind(&prepared.id).bind(json!(parents))).await?;
    Ok(())
}
