//! Documents as a whole: written out, and deleted by their age.

use chrono::{DateTime, Utc};
use perihelion_documents::{Attempt, Document, Error as DocumentError};
use serde::Serialize;

use super::{Documents, Error};

/// A document with its text, as an export has it.
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
