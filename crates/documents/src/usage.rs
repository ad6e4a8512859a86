//! A tenant's usage of documents, and its limits.

use perihelion_database::{Transaction, query};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Error, Library, Prepared, Result};

/// Documents of a tenant unless another number is set.
const MOST_DOCUMENTS: u64 = 100_000;

/// How much a tenant may keep of documents, no matter who of it owns them; none: not bounded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Quotas {
    pub documents: Option<u64>,
    /// Of the documents' texts in UTF-8, not of their files.
    pub text_bytes: Option<u64>,
    /// Pieces that can be found.
    pub chunks: Option<u64>,
}

/// What a tenant keeps of documents.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Usage {
    pub documents: u64,
    pub text_bytes: u64,
    pub chunks: u64,
}

/// What is kept, and what may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Room {
    pub used: Usage,
    pub permitted: Quotas,
}

impl Default for Quotas {
    fn default() -> Self {
        Self { documents: Some(MOST_DOCUMENTS), text_bytes: None, chunks: None }
    }
}

impl Quotas {
    /// Checks a usage that grows; one that shrinks is always accepted.
    fn check(&self, before: Usage, after: Usage) -> Result<()> {
        let measures = [
            ("documents", "max_documents", before.documents, after.documents, self.documents),
            (
                "bytes of text",
                "max_text_bytes",
                before.text_bytes,
                after.text_bytes,
                self.text_bytes,
            ),
            ("pieces", "max_chunks", before.chunks, after.chunks, self.chunks),
        ];
        for (what, key, used, wanted, permitted) in measures {
            if let Some(permitted) = permitted.filter(|most| wanted > *most && wanted > used) {
                let more = wanted - used;
                return Err(Error::Full { what, key, used, more, permitted });
            }
        }
        Ok(())
    }
}

impl Usage {
    fn of(prepared: &Prepared) -> Self {
        Self {
            documents: 1,
            text_bytes: prepared.parsed.text.len() as u64,
            chunks: prepared.chunks.children.len() as u64,
        }
    }

    fn changed(self, gone: Self, come: Self) -> Self {
        Self {
            documents: self.documents.saturating_sub(gone.documents) + come.documents,
            text_bytes: self.text_bytes.saturating_sub(gone.text_bytes) + come.text_bytes,
            chunks: self.chunks.saturating_sub(gone.chunks) + come.chunks,
        }
    }
}

/// A document's share of the usage, read before it is replaced or deleted.
const OF_DOCUMENT: &str = "SELECT CAST(1 AS bigint), text_bytes, chunks FROM document
     WHERE tenant = $1 AND owner = $2 AND id = $3";

const OF_TENANT: &str =
    "SELECT documents, text_bytes, chunks FROM document_usage WHERE tenant = $1";

fn read(row: Option<&perihelion_database::Row>) -> Result<Usage> {
    let Some(row) = row else { return Ok(Usage::default()) };
    let count = |column: usize| row.get::<i64>(column).map(|value| value.max(0).unsigned_abs());
    Ok(Usage { documents: count(0)?, text_bytes: count(1)?, chunks: count(2)? })
}

impl Library {
    #[must_use]
    pub fn with_quotas(mut self, quotas: Quotas) -> Self {
        self.quotas = quotas;
        self
    }

    /// Returns the usage of the scope's tenant, for all its owners, and its limits.
    pub async fn room(&self) -> Result<Room> {
        let used = query(OF_TENANT).bind(self.scope.tenant());
        let used = self.database().fetch_optional(&used).await?;
        Ok(Room { used: read(used.as_ref())?, permitted: self.quotas })
    }

    /// Rejects a new document before it is parsed if there is no space for any.
    pub(crate) async fn check_new(&self) -> Result<()> {
        let used = self.room().await?.used;
        let one = Usage { documents: 1, ..Usage::default() };
        self.quotas.check(used, used.changed(Usage::default(), one))
    }

    /// Rejects a document without space before a model is asked about it.
    pub(crate) async fn check_room(&self, prepared: &Prepared) -> Result<()> {
        let database = self.database();
        let own = self.query(OF_DOCUMENT).bind(&prepared.id);
        let gone = read(database.fetch_optional(&own).await?.as_ref())?;
        let used = self.room().await?.used;
        self.quotas.check(used, used.changed(gone, Usage::of(prepared)))
    }

    /// Counts a document instead of its last version; the tenant's row is locked until the transaction ends, so two
    /// documents cannot use the same space.
    pub(crate) async fn count_in(
        &self,
        transaction: &mut Transaction<'_>,
        prepared: &Prepared,
    ) -> Result<()> {
        let gone = self.of_document(transaction, &prepared.id).await?;
        let come = Usage::of(prepared);
        let after = self.change(transaction, gone, come).await?;
        self.quotas.check(after.changed(come, gone), after)
    }

    /// Counts a document out; before its rows are deleted.
    pub(crate) async fn count_out(
        &self,
        transaction: &mut Transaction<'_>,
        id: &str,
    ) -> Result<()> {
        let gone = self.of_document(transaction, id).await?;
        self.change(transaction, gone, Usage::default()).await?;
        Ok(())
    }

    async fn of_document(&self, transaction: &mut Transaction<'_>, id: &str) -> Result<Usage> {
        let own = self.query(OF_DOCUMENT).bind(id);
        read(transaction.fetch_optional(&own).await?.as_ref())
    }

    async fn change(
        &self,
        transaction: &mut Transaction<'_>,
        gone: Usage,
        come: Usage,
    ) -> Result<Usage> {
        let more = |come: u64, gone: u64| {
            i64::try_from(come).unwrap_or(i64::MAX) - i64::try_from(gone).unwrap_or(i64::MAX)
        };
        let change = query(
        "INSERT INTO document_usage (tenant, documents, text_bytes, chunks) VALUES ($1, $2, $3, $4)
         ON CONFLICT (tenant) DO UPDATE SET documents = document_usage.documents + excluded.documents,
            text_bytes = document_usage.text_bytes + excluded.text_bytes,
            chunks = document_usage.chunks + excluded.chunks
         RETURNING documents, text_bytes, chunks",
    );
        let change = change
            .bind(self.scope.tenant())
            .bind(more(come.documents, gone.documents))
            .bind(more(come.text_bytes, gone.text_bytes))
            .bind(more(come.chunks, gone.chunks));
        read(transaction.fetch_optional(&change).await?.as_ref())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_smaller_replacement_is_accepted_even_above_the_quota() {
        let quotas = Quotas { documents: None, text_bytes: Some(10), chunks: None };
        let of = |text_bytes| Usage { documents: 1, text_bytes, chunks: 1 };
        assert!(quotas.check(of(30), of(20)).is_ok() && quotas.check(of(5), of(10)).is_ok());
        let message = quotas.check(of(5), of(11)).unwrap_err().to_string();
        for part in ["bytes of text", "5", "6", "10", "documents.max_text_bytes"] {
            assert!(message.contains(part), "{message}");
        }
    }
}
