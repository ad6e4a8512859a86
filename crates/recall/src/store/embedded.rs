//! Which texts have a vector already.

use std::collections::BTreeSet;

use perihelion_database::query;
use sqlx::AssertSqlSafe;

use super::{StoredIndex, put::hex};
use crate::{ContentHash, Error, Scope};

impl StoredIndex {
    /// Returns which of these texts the scope's tenant has a vector of, by a model.
    ///
    /// # Errors
    /// [`Error::Database`].
    pub async fn embedded(
        &self,
        scope: &Scope,
        model: &str,
        hashes: &[ContentHash],
    ) -> Result<Vec<ContentHash>, Error> {
        let each = self.database.dialect().each("$3");
        let sql = format!(
            "SELECT hash FROM recall_vector WHERE tenant = $1 AND model = $2 AND hash IN {each}"
        );
        let asked: Vec<String> = hashes.iter().map(hex).collect();
        let read = query(AssertSqlSafe(sql)).bind(scope.tenant()).bind(model).bind(asked);
        let rows = self.database_of(scope).fetch_all(&read).await?;
        let found =
            rows.iter().map(|row| row.get::<String>(0)).collect::<Result<BTreeSet<_>, _>>()?;
        Ok(hashes.iter().filter(|hash| found.contains(&hex(hash))).copied().collect())
    }
}
