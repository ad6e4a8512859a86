//! The stored vectors: those of texts that an item has, or that a caller claims before it stores the items.

use std::collections::BTreeSet;

use perihelion_database::{Dialect, Transaction, query};
use sqlx::AssertSqlSafe;

use super::{StoredIndex, put::hex};
use crate::{ContentHash, Error, Result, Scope};

impl StoredIndex {
    /// Returns which of these texts the scope's tenant has a vector of, by a model.
    pub async fn embedded(
        &self,
        scope: &Scope,
        model: &str,
        hashes: &[ContentHash],
    ) -> Result<Vec<ContentHash>> {
        let dialect = self.database.dialect();
        let listed =
            dialect.pick("(SELECT value AS hash FROM json_each($3)) w", "unnest($3) AS w (hash)");
        let vector = "v.tenant = $1 AND v.model = $2 AND v.hash = w.hash";
        let vector = dialect.look_up("recall_vector", "v", vector);
        let sql = format!("SELECT v.hash FROM {listed} {vector}");
        let asked: Vec<String> = hashes.iter().map(hex).collect();
        let read = query(AssertSqlSafe(sql)).bind(scope.tenant()).bind(model).bind(asked);
        let rows = self.database_of(scope).fetch_all(&read).await?;
        let found =
            rows.iter().map(|row| row.get::<String>(0)).collect::<Result<BTreeSet<_>, _>>()?;
        Ok(hashes.iter().filter(|hash| found.contains(&hex(hash))).copied().collect())
    }

    /// Lets the vectors of texts be stored before an item has them, until the holder releases or replaces the claim.
    ///
    /// Happens in the transaction of the caller, as [`StoredIndex::give_up_in`] does; returns the number of deleted
    /// vectors, which only a replaced claim had.
    pub async fn claim_in(
        transaction: &mut Transaction<'_>,
        scope: &Scope,
        holder: &str,
        hashes: &[ContentHash],
    ) -> Result<u64> {
        let wanted: Vec<String> = hashes.iter().map(hex).collect();
        let known = known(transaction, scope, holder).await?;
        let listed: BTreeSet<&String> = wanted.iter().collect();
        let stale = known.into_iter().filter(|hash| !listed.contains(hash)).collect();
        let dropped = give_up(transaction, scope, holder, stale).await?;
        let sql = transaction.dialect().pick(
            "INSERT INTO recall_claim (tenant, holder, hash) SELECT $1, $2, value FROM json_each($3)
             WHERE true ON CONFLICT DO NOTHING",
            "INSERT INTO recall_claim (tenant, holder, hash) SELECT $1, $2, unnest($3) ON CONFLICT DO NOTHING",
        );
        let insert = query(AssertSqlSafe(sql)).bind(scope.tenant()).bind(holder).bind(wanted);
        transaction.execute(&insert).await?;
        Ok(dropped)
    }

    /// Releases the claims of a holder, in the transaction of the caller, who calls
    /// [`Database::scrub`](perihelion_database::Database::scrub) after it; returns the number of deleted vectors, which
    /// no item had. Those of `stored` texts, which the holder's items have, need no search for other users.
    pub async fn give_up_in(
        transaction: &mut Transaction<'_>,
        scope: &Scope,
        holder: &str,
        stored: &[ContentHash],
    ) -> Result<u64> {
        let delete =
            query("DELETE FROM recall_claim WHERE tenant = $1 AND holder = $2 RETURNING hash");
        let rows = transaction.fetch_all(&delete.bind(scope.tenant()).bind(holder)).await?;
        let mut known = rows.iter().map(|row| row.get(0)).collect::<Result<Vec<String>, _>>()?;
        let stored: BTreeSet<String> = stored.iter().map(hex).collect();
        known.retain(|hash| !stored.contains(hash));
        if known.is_empty() { Ok(0) } else { forget_unused(transaction, scope, known).await }
    }
}

async fn known(
    transaction: &mut Transaction<'_>,
    scope: &Scope,
    holder: &str,
) -> Result<Vec<String>> {
    let read = query("SELECT hash FROM recall_claim WHERE tenant = $1 AND holder = $2");
    let rows = transaction.fetch_all(&read.bind(scope.tenant()).bind(holder)).await?;
    rows.iter().map(|row| row.get(0).map_err(Error::from)).collect()
}

async fn give_up(
    transaction: &mut Transaction<'_>,
    scope: &Scope,
    holder: &str,
    hashes: Vec<String>,
) -> Result<u64> {
    if hashes.is_empty() {
        return Ok(0);
    }
    let one_of = transaction.dialect().one_of("$3");
    let delete =
        format!("DELETE FROM recall_claim WHERE tenant = $1 AND holder = $2 AND hash {one_of}");
    let delete = query(AssertSqlSafe(delete)).bind(scope.tenant()).bind(holder);
    transaction.execute(&delete.bind(hashes.clone())).await?;
    forget_unused(transaction, scope, hashes).await
}

/// Deletes vectors of texts without an item or a claim in the tenant; returns how many.
pub(super) async fn forget_unused(
    transaction: &mut Transaction<'_>,
    scope: &Scope,
    hashes: Vec<String>,
) -> Result<u64> {
    let dialect = transaction.dialect();
    // Most often there are none, and Postgres finds that without reading the vectors.
    let listed =
        dialect.pick("(SELECT value AS hash FROM json_each($2)) w", "unnest($2) AS w (hash)");
    let sql = format!("SELECT w.hash FROM {listed} WHERE {}", is_unused(dialect, "w"));
    let read = query(AssertSqlSafe(sql)).bind(scope.tenant()).bind(hashes);
    let unused = transaction.fetch_all(&read).await?;
    if unused.is_empty() {
        return Ok(0);
    }
    let unused = unused.iter().map(|row| row.get(0)).collect::<Result<Vec<String>, _>>()?;
    // Each model is named, as the key begins with it: otherwise all vectors of the tenant are gone through.
    let sql = format!(
        "DELETE FROM recall_vector WHERE tenant = $1
         AND model IN (SELECT model FROM recall_model WHERE tenant = $1) AND hash {} AND {}",
        dialect.one_of("$2"),
        is_unused(dialect, "recall_vector")
    );
    let delete = query(AssertSqlSafe(sql)).bind(scope.tenant()).bind(unused);
    Ok(transaction.execute(&delete).await?)
}

/// Returns the condition that no item or claim of a tenant ($1) has the hash of a row.
///
/// Without `OFFSET`, Postgres may join the rows with all items, as for [`Dialect::look_up`].
fn is_unused(dialect: Dialect, row: &str) -> String {
    let end = dialect.pick("", "OFFSET 0");
    format!(
        "NOT EXISTS (
            SELECT 1 FROM (SELECT space FROM recall_item WHERE hash = {row}.hash {end}) i
            JOIN recall_space s ON s.id = i.space WHERE s.tenant = $1 {end})
         AND NOT EXISTS (
            SELECT 1 FROM recall_claim c WHERE c.tenant = $1 AND c.hash = {row}.hash {end})"
    )
}
