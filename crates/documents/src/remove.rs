//! Deleting documents, with all that was kept of them.

use chrono::{DateTime, Utc};
use perihelion_database::query;
use perihelion_recall::{Scope, StoredIndex};

use crate::library::{KIND, STAGED};
use crate::{Document, Error, Library, usage};

impl Library {
    /// Deletes a document: text, pieces, postings, statistics, and vectors that nobody else uses; one transaction.
    ///
    /// # Errors
    /// [`Error::Unknown`], [`Error::Ambiguous`], [`Error::Database`].
    pub async fn delete(&self, scope: &Scope, given: &str) -> Result<Document, Error> {
        let document = self.find(scope, given).await?;
        self.remove(scope, &document.id, None).await?;
        Ok(document)
    }

    /// Deletes a document as [`Library::delete`] does if it was last changed before that time; returns what was deleted.
    ///
    /// # Errors
    /// [`Error::Database`].
    pub async fn delete_older(
        &self,
        scope: &Scope,
        id: &str,
        before: DateTime<Utc>,
    ) -> Result<Option<Document>, Error> {
        let Some(document) = self.by_id(scope, id).await? else { return Ok(None) };
        let removed = self.remove(scope, id, Some(before)).await?;
        Ok(removed.then_some(document))
    }

    /// Returns whose documents were last changed before that time, of all tenants, oldest first.
    ///
    /// # Errors
    /// [`Error::Database`].
    pub async fn older(&self, before: DateTime<Utc>) -> Result<Vec<(Scope, String)>, Error> {
        let read = query(
            "SELECT tenant, owner, id FROM document WHERE changed_at < $1 ORDER BY changed_at, id",
        );
        let rows = self.database().of_all_tenants().fetch_all(&read.bind(before)).await?;
        let listed = rows.iter().map(|row| {
            let (tenant, owner): (String, String) = (row.get(0)?, row.get(1)?);
            Ok((Scope::new(&tenant, &owner)?, row.get(2)?))
        });
        listed.collect()
    }

    /// Removes all rows of a document in one transaction; where a time is given, only if it was not changed since.
    async fn remove(
        &self,
        scope: &Scope,
        id: &str,
        before: Option<DateTime<Utc>>,
    ) -> Result<bool, Error> {
        let database = self.database_of(scope);
        let mut transaction = database.begin().await?;
        for kind in [KIND, STAGED] {
            StoredIndex::remove_parent_in(&mut transaction, scope, kind, id).await?;
        }
        if let Some(before) = before {
            // Locks the row: an addition that is under way either ends before this or begins after it.
            let lock = query(
                "UPDATE document SET version = version
                 WHERE tenant = $1 AND owner = $2 AND id = $3 AND changed_at < $4",
            );
            let lock = lock.bind(scope.tenant()).bind(scope.owner()).bind(id).bind(before);
            if transaction.execute(&lock).await? == 0 {
                transaction.roll_back().await?;
                return Ok(false);
            }
        }
        usage::count_out(&mut transaction, scope, id).await?;
        for sql in [
            "DELETE FROM document_parent WHERE tenant = $1 AND owner = $2 AND id = $3",
            "DELETE FROM document_draft WHERE tenant = $1 AND owner = $2 AND id = $3",
            "DELETE FROM document_text WHERE tenant = $1 AND owner = $2 AND id = $3",
            "DELETE FROM document WHERE tenant = $1 AND owner = $2 AND id = $3",
        ] {
            let delete = query(sql).bind(scope.tenant()).bind(scope.owner()).bind(id);
            transaction.execute(&delete).await?;
        }
        transaction.commit().await?;
        self.database().scrub().await?;
        Ok(true)
    }
}
