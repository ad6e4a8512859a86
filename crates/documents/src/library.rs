//! The documents of a database: listing and reading them.

use perihelion_database::{self as database, Database, query};
use perihelion_recall::{EmbeddingModel, Scope, StoredIndex, Weights, embed_pending};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use sqlx::{AssertSqlSafe, SqlSafeStr};

use crate::embedding::UnderWay;
use crate::segments::Range;
use crate::{Document, Error, Parser, Quotas, Result, prepare, record};

pub(crate) const KIND: &str = "document";

/// Fewer characters of an id name no document: one by chance may be deleted for another.
const SHORTEST: usize = 6;

/// Documents in a database; cheap to clone.
#[derive(Clone)]
pub struct Library {
    pub(crate) index: StoredIndex,
    pub(crate) parser: Parser,
    pub(crate) quotas: Quotas,
    pub(crate) weights: Weights,
    pub(crate) asking: UnderWay,
    pub(crate) scope: Scope,
}

/// A part of a document's text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Read {
    pub document: String,
    pub title: String,
    /// Places are counted in characters.
    pub start: usize,
    pub end: usize,
    /// Characters of the whole text.
    pub length: usize,
    pub page: Option<u32>,
    pub section: Vec<String>,
    pub text: String,
}

impl Library {
    pub fn new(database: Database, parser: Parser, scope: Scope) -> Self {
        let index = StoredIndex::new(database);
        Self {
            index,
            parser,
            quotas: Quotas::default(),
            weights: Weights::default(),
            asking: UnderWay::default(),
            scope,
        }
    }

    /// Returns the documents of another scope of the same database.
    #[must_use]
    pub fn within(&self, scope: &Scope) -> Self {
        Self { scope: scope.clone(), ..self.clone() }
    }

    pub fn scope(&self) -> &Scope {
        &self.scope
    }

    /// Sets the default weights of keyword and vector search.
    #[must_use]
    pub fn with_weights(mut self, weights: Weights) -> Self {
        self.weights = weights;
        self
    }

    pub fn index(&self) -> &StoredIndex {
        &self.index
    }

    pub(crate) fn database(&self) -> Database {
        self.index.database_of(&self.scope)
    }

    /// Begins a statement whose first two parameters are the tenant and the owner.
    pub(crate) fn query(&self, sql: impl SqlSafeStr) -> database::Query {
        query(sql).bind(self.scope.tenant()).bind(self.scope.owner())
    }

    /// Begins a statement that reads documents of the scope.
    fn documents(&self, which: &str) -> database::Query {
        let columns = record::COLUMNS;
        let sql =
            format!("SELECT {columns} FROM document WHERE tenant = $1 AND owner = $2 {which}");
        self.query(AssertSqlSafe(sql))
    }

    /// Returns the documents by their titles; of all collections by default.
    pub async fn list(&self, collection: Option<&str>) -> Result<Vec<Document>> {
        let read = self.documents("AND collection = coalesce($3, collection) ORDER BY title, id");
        let read = read.bind(collection.map(str::to_owned));
        self.database().fetch_all(&read).await?.iter().map(record::read).collect()
    }

    pub async fn at(&self, collection: &str, path: &str) -> Result<Option<Document>> {
        self.by_id(&prepare::id(&self.scope, collection, path)).await
    }

    /// Makes the next addition of a path read its bytes again, although they are known: what reads them may be another
    /// program by now. Until then the document stays as it is.
    pub async fn read_again(&self, collection: &str, path: &str) -> Result<()> {
        let forget = self
            .query("UPDATE document SET hash = '' WHERE tenant = $1 AND owner = $2 AND id = $3")
            .bind(prepare::id(&self.scope, collection, path));
        self.database().execute(&forget).await?;
        Ok(())
    }

    pub(crate) async fn by_id(&self, id: &str) -> Result<Option<Document>> {
        let read = self.documents("AND id = $3").bind(id);
        self.database().fetch_optional(&read).await?.as_ref().map(record::read).transpose()
    }

    /// Finds a document by its id, at least six characters of its beginning, or its path.
    ///
    /// # Errors
    /// [`Error::Unknown`], [`Error::Ambiguous`].
    pub async fn find(&self, given: &str) -> Result<Document> {
        // The whole id is what this program itself asks by, in time that does not grow with the documents.
        if let Some(document) = self.by_id(given).await? {
            return Ok(document);
        }
        let which = format!(
            "AND (path = $3 OR (length($3) >= {SHORTEST} AND substr(id, 1, length($3)) = $3)) ORDER BY id"
        );
        let read = self.documents(&which).bind(given);
        let rows = self.database().fetch_all(&read).await?;
        let found = rows.iter().map(record::read).collect::<Result<Vec<_>, _>>()?;
        only(given, found, |one| format!("{} ({})", one.id, one.title))
    }

    /// Reads a part of a document's text; from its beginning to its end by default.
    ///
    /// # Errors
    /// [`Error::Unknown`], [`Error::Range`].
    pub async fn read(
        &self,
        given: &str,
        start: Option<usize>,
        end: Option<usize>,
    ) -> Result<Read> {
        let document = self.find(given).await?;
        let length = usize::try_from(document.characters).unwrap_or(usize::MAX);
        let start = start.unwrap_or(0);
        let end = end.unwrap_or(length).min(length);
        if start > end {
            return Err(Error::Range { start, end, length });
        }
        let text = self.text(Range { document: document.id.clone(), start, end }).await?;
        let place = self.place(&document.id, start).await?;
        let (page, section) = place.unwrap_or_default();
        Ok(Read {
            document: document.id,
            title: document.title,
            start,
            end,
            length,
            page,
            section,
            text,
        })
    }

    pub(crate) async fn text(&self, range: Range) -> Result<String> {
        let id = range.document.clone();
        let text = self.texts(&[range]).await?.pop().flatten();
        text.ok_or_else(|| Error::Damaged { id, what: "a part of its text is missing".to_owned() })
    }

    /// Returns the page and the section of a place; pages may end within the parent around it.
    async fn place(&self, id: &str, at: usize) -> Result<Option<(Option<u32>, Vec<String>)>> {
        let read = self.query(
            "SELECT coalesce((SELECT number FROM document_page p
                 WHERE p.tenant = $1 AND p.owner = $2 AND p.id = $3 AND p.past > $4 ORDER BY number LIMIT 1), page), section
             FROM document_parent WHERE tenant = $1 AND owner = $2 AND id = $3 AND first <= $4
             ORDER BY document_parent.number DESC LIMIT 1",
        );
        let at = i64::try_from(at).unwrap_or(i64::MAX);
        let read = read.bind(id).bind(at);
        let Some(row) = self.database().fetch_optional(&read).await? else {
            return Ok(None);
        };
        let page: Option<i64> = row.get(0)?;
        let section: serde_json::Value = row.get(1)?;
        let section = serde_json::from_value(section).unwrap_or_default();
        Ok(Some((page.and_then(|page| u32::try_from(page).ok()), section)))
    }

    /// Embeds texts without a vector of a model, and makes searches use that model from then on.
    ///
    /// Another model than the one in use is built in parallel and replaces it when it is complete.
    ///
    /// # Errors
    /// [`Error::Recall`]; earlier vectors stay.
    pub async fn reindex(&self, model: &dyn EmbeddingModel) -> Result<u64> {
        let done = embed_pending(&self.index, &self.scope, model).await?;
        let known = self.index.generations(&self.scope).await?;
        let waits = known.iter().any(|one| one.model == model.model() && !one.is_active);
        if waits {
            self.index.finish_generation(&self.scope, model.model()).await?;
        }
        Ok(done)
    }

    pub async fn close(&self) {
        self.index.database().close().await;
    }
}

/// Returns the only one that was found by a text; the error shows some if there are several.
pub(crate) fn only<T>(given: &str, mut found: Vec<T>, shown: impl Fn(&T) -> String) -> Result<T> {
    match found.len() {
        1 if !given.is_empty() => Ok(found.remove(0)),
        0 | 1 => Err(Error::Unknown(given.to_owned())),
        _ => {
            let candidates: Vec<String> = found.iter().take(5).map(shown).collect();
            Err(Error::Ambiguous { given: given.to_owned(), candidates: candidates.join(", ") })
        }
    }
}

pub(crate) fn check_collection(name: &str) -> Result<()> {
    let fits = |c: char| c.is_alphanumeric() || matches!(c, '-' | '_' | '.');
    if (1..=64).contains(&name.chars().count()) && name.chars().all(fits) {
        Ok(())
    } else {
        Err(Error::Collection(name.chars().take(80).collect()))
    }
}
