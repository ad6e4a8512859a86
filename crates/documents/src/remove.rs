//! Deleting documents, with all that was kept of them; also of one that never got there.

use chrono::{DateTime, Utc};
use perihelion_database::{Transaction, query};
use perihelion_recall::{Scope, StoredIndex};
use sqlx::AssertSqlSafe;

use crate::library::KIND;
use crate::{Attempt, Document, Error, Library, attempt, record};

/// What was deleted.
#[derive(Clone, Debug, PartialEq)]
pub struct Deleted {
    pub id: String,
    /// As it was kept; none where its adding never came to an end.
    pub document: Option<Document>,
    /// Each time that it was begun to be added: what else there is of these is the caller's to delete.
    pub attempts: Vec<Attempt>,
}

impl Deleted {
    /// Returns the title, or where it came from where it never had one.
    pub fn title(&self) -> &str {
        let path = || self.attempts.first().map_or(self.id.as_str(), |one| one.path.as_str());
        self.document.as_ref().map_or_else(path, |document| document.title.as_str())
    }
}

impl Library {
    /// Deletes a document: text, pieces, postings, statistics, and vectors that nobody else uses; one transaction.
    ///
    /// What an adding that was broken off left behind is deleted as well, by the document's id or path.
    ///
    /// # Errors
    /// [`Error::Unknown`], [`Error::Ambiguous`], [`Error::Database`].
    pub async fn delete(&self, given: &str) -> Result<Deleted, Error> {
        let id = match self.find(given).await {
            Ok(document) => document.id,
            Err(Error::Unknown(_)) => self.unfinished(given).await?,
            Err(error) => return Err(error),
        };
        let deleted = self.remove(&id, None).await?;
        deleted.ok_or_else(|| Error::Unknown(given.to_owned()))
    }

    /// Deletes a document as [`Library::delete`] does if it was last changed, or begun where it never got there, before that
    /// time; returns what was deleted.
    ///
    /// # Errors
    /// [`Error::Database`].
    pub async fn delete_older(
        &self,
        id: &str,
        before: DateTime<Utc>,
    ) -> Result<Option<Deleted>, Error> {
        self.remove(id, Some(before)).await
    }

    /// Returns whose documents were last changed before that time, of all tenants, oldest first; then those that never got
    /// there and were begun before it.
    ///
    /// # Errors
    /// [`Error::Database`].
    pub async fn older(&self, before: DateTime<Utc>) -> Result<Vec<(Scope, String)>, Error> {
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

    /// Removes all rows of a document in one transaction; where a time is given, only if it was not changed since.
    async fn remove(
        &self,
        id: &str,
        before: Option<DateTime<Utc>>,
    ) -> Result<Option<Deleted>, Error> {
        let database = self.database();
        let mut transaction = database.begin().await?;
        StoredIndex::remove_parent_in(&mut transaction, &self.scope, KIND, id).await?;
        StoredIndex::give_up_in(&mut transaction, &self.scope, id).await?;
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

    /// Runs a statement on the rows of a document and returns what it says of them.
    async fn gone(
        &self,
        transaction: &mut Transaction<'_>,
        id: &str,
        sql: String,
    ) -> Result<Vec<perihelion_database::Row>, Error> {
        let delete = self.query(AssertSqlSafe(sql)).bind(id);
        Ok(transaction.fetch_all(&delete).await?)
    }
}

const OF_DOCUMENT: &str = "WHERE tenant = $1 AND owner = $2 AND id = $3";
