//! A model's description of a document.

use async_trait::async_trait;
use perihelion_database::{Query, query};
use serde_json::json;

use crate::{Description, Library, Prepared, Result};

#[async_trait]
pub trait Describer: Send + Sync {
    /// Describes a document from the beginning of its text; `None` if that fails, which has no other effect.
    async fn describe(&self, path: &str, beginning: &str) -> Option<Description>;
}

const OF_BYTES: &str = "SELECT description FROM document_attempt
        WHERE tenant = $1 AND hash = $2 AND description IS NOT NULL
     UNION ALL SELECT description FROM document WHERE tenant = $1 AND hash = $2 AND description IS NOT NULL
     LIMIT 1";

const OF_ATTEMPT: &str = "SELECT description FROM document_attempt
     WHERE tenant = $1 AND owner = $2 AND id = $3 AND hash = $4 AND description IS NOT NULL";

impl Library {
    /// Makes a model describe a document, unless these bytes have a description in the tenant; returns whether it has
    /// one now.
    pub async fn describe(&self, prepared: &Prepared, describer: &dyn Describer) -> Result<bool> {
        if self.own_description(prepared).await?.is_some() {
            return Ok(true);
        }
        self.database().execute(&self.attempt_of(prepared)).await?;
        let known = query(OF_BYTES).bind(self.scope.tenant()).bind(&prepared.hash);
        let description = match self.read_description(known).await? {
            Some(description) => Some(description),
            None => describer.describe(&prepared.path, &prepared.beginning()).await,
        };
        let Some(description) = description else { return Ok(false) };
        let keep = self.query(
            "UPDATE document_attempt SET description = $5 WHERE tenant = $1 AND owner = $2 AND id = $3 AND hash = $4",
        );
        let keep = keep.bind(&prepared.id);
        let keep = keep.bind(&prepared.hash).bind(json!(description));
        self.database().execute(&keep).await?;
        Ok(true)
    }

    pub(crate) async fn own_description(&self, prepared: &Prepared) -> Result<Option<Description>> {
        let own = self.query(OF_ATTEMPT).bind(&prepared.id).bind(&prepared.hash);
        self.read_description(own).await
    }

    async fn read_description(&self, read: Query) -> Result<Option<Description>> {
        let Some(row) = self.database().fetch_optional(&read).await? else {
            return Ok(None);
        };
        let kept: serde_json::Value = row.get(0)?;
        Ok(serde_json::from_value(kept).ok())
    }

    pub(crate) fn attempt_of(&self, prepared: &Prepared) -> Query {
        let Prepared { collection, path, hash, now, .. } = prepared;
        self.attempt(collection, path, hash, *now)
    }
}
