//! Deleting documents, with all their data; including failed additions.

use chrono::{DateTime, Utc};
use perihelion_database::{Transaction, query};
use perihelion_recall::{Scope, StoredIndex};
use sqlx::AssertSqlSafe;

use crate::library::KIND;
use crate::{Attempt, Document, Error, Library, Result, attempt, record};

#[derive(Clone, Debug, PartialEq)]
pub struct Deleted {
    pub id: String,
    /// The stored document; `None` if it was never completed.
    pub document: Option<Document>,
    /// Each attempt to add it: the caller deletes their other data.
    pub attempts: Vec<Attempt>,
}

impl Deleted {
    /// Returns the title, or the origin of a document without one.
    pub fn title(&self) -> &str {
        let path = || self.attempts.first().map_or(self.id.as_str(), |one| one.path.as_str());
        self.document.as_ref().map_or_else(path, |document| document.title.as_str())
    }
}

impl Library {
    /// Deletes a document: text, chunks, postings, statistics, and vectors without other users; one transaction.
    ///
    /// The remains of an interrupted addition are deleted as well, by the document's ID or path.
    ///
    /// # Errors
    /// [`Error::Unknown`], [`Error::Ambiguous`], [`Error::Database`].
    pub async fn delete(&self, given: &str) -> Result<Deleted> {
        let id = self.id_of(given).await?;
        let deleted = self.remove(&id, None).await?;
        deleted.ok_or_else(|| Error::Unknown(given.to_owned()))
    }

    /// Deletes a document as [`Library::delete`] does if it was last changed, or begun without completion, before that
    /// time; returns the deleted data.
    pub async fn delete_older(&self, id: &str, before: DateTime<Utc>) -> Result<Option<Deleted>> {
        self.remove(id, Some(before)).await
    }

    /// Returns the owners of documents that were last changed before that time, of all tenants, oldest first; then
    /// those of additions that were begun before it and never completed.
    pub async fn older(&self, before: DateTime<Utc>) -> Result<Vec<(Scope, String)>> {
        let database = self.index.database().of_all_tenants();
        let read = query(
            "SELECT tenant, owner, id FROM document WHERE changed_at < $1 ORDER BY changed_at, id",
        );
        let mut rows = database.fetch_all(&read.bind(before)).await?;
        let sql = format!(
            "SELECT tenant, owner, id FROM document_attempt a WHERE {}
             GROUP BY tenant, owner, id HAVING max(began_at) < $1 ORDER BY max(began_at), id",
            attempt::NOT_THERE
        );
        rows.extend(database.fetch_all(&query(AssertSqlSafe(sql)).bind(before)).await?);
        let listed = rows.iter().map(|row| {
            let tenant: String = row.get(0)?;
            let owner: String = row.get(1)?;
            Ok((Scope::new(&tenant, &owner)?, row.get(2)?))
        });
        listed.collect()
    }

    /// Removes all rows of a document in one transaction; with a time, only if it was not changed since.
    async fn remove(&self, id: &str, before: Option<DateTime<Utc>>) -> Result<Option<Deleted>> {
        let database = self.database();
        let mut transaction = database.begin().await?;
        StoredIndex::remove_parent_in(&mut transaction, &self.scope, KIND, id).await?;
        StoredIndex::give_up_in(&mut transaction, &self.scope, id, &[]).await?;
        self.count_out(&mut transaction, id).await?;
        let columns = format!("DELETE FROM document {OF_DOCUMENT} RETURNING {}", record::COLUMNS);
        let document = self.gone(&mut transaction, id, columns).await?;
        let document = document.first().map(record::read).transpose()?;
        let columns =
            format!("DELETE FROM document_attempt {OF_DOCUMENT} RETURNING {}", attempt::COLUMNS);
        let attempts = self.gone(&mut transaction, id, columns).await?;
        let attempts = attempts.iter().map(attempt::read).collect::<Result<Vec<_>, _>>()?;
        let last = match &document {
            Some(document) => Some(document.changed_at),
            None => attempts.iter().map(|one| one.began_at).max(),
        };
        // An addition that is under way either ended before this or begins after it: the rows are locked.
        let is_meant = last.is_some_and(|last| before.is_none_or(|before| last < before));
        if !is_meant {
            transaction.roll_back().await?;
            return Ok(None);
        }
        for table in ["document_parent", "document_page", "document_segment"] {
            self.gone(&mut transaction, id, format!("DELETE FROM {table} {OF_DOCUMENT}")).await?;
        }
        transaction.commit().await?;
        self.index.database().scrub().await?;
        Ok(Some(Deleted { id: id.to_owned(), document, attempts }))
    }

    /// Runs a statement on the rows of a document and returns its result.
    async fn gone(
        &self,
        transaction: &mut Transaction<'_>,
        id: &str,
        sql: String,
    ) -> Result<Vec<perihelion_database::Row>> {
        let delete = self.query(AssertSqlSafe(sql)).bind(id);
        Ok(transaction.fetch_all(&delete).await?)
    }
}

const OF_DOCUMENT: &str = "WHERE tenant = $1 AND owner = $2 AND id = $3";
