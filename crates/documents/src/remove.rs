//! Deleting documents, with all that was kept of them.

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
        let database = self.database_of(scope);
        let mut transaction = database.begin().await?;
        for kind in [KIND, STAGED] {
            StoredIndex::remove_parent_in(&mut transaction, scope, kind, &document.id).await?;
        }
        usage::count_out(&mut transaction, scope, &document.id).await?;
        for sql in [
            "DELETE FROM document_parent WHERE tenant = $1 AND owner = $2 AND id = $3",
            "DELETE FROM document_draft WHERE tenant = $1 AND owner = $2 AND id = $3",
            "DELETE FROM document_text WHERE tenant = $1 AND owner = $2 AND id = $3",
            "DELETE FROM document WHERE tenant = $1 AND owner = $2 AND id = $3",
        ] {
            let delete = query(sql).bind(scope.tenant()).bind(scope.owner()).bind(&document.id);
            transaction.execute(&delete).await?;
        }
        transaction.commit().await?;
        self.database().scrub().await?;
        Ok(document)
    }
}
