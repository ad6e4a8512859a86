//! The embedding models of a tenant: the one in use, and one that is being built.

use perihelion_database::{Dialect, Query, Value, query};
use sqlx::AssertSqlSafe;

use super::lists::{parts, with_cast_rows, with_rows};
use super::put::hex;
use super::{StoredIndex, pgvector, vectors};
use crate::{ContentHash, Error, Result, Scope, vector};

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Generation {
    pub model: String,
    pub dimension: usize,
    /// Whether searches use it; the other one is being built.
    pub is_active: bool,
}

/// A text that has no vector yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pending {
    pub hash: ContentHash,
    pub text: String,
}

/// Items whose text has no vector by a model ($2) in a tenant ($1).
const WITHOUT: &str = "FROM recall_item i JOIN recall_space s ON s.id = i.space
     WHERE s.tenant = $1 AND i.meaning <> '' AND NOT EXISTS (
        SELECT 1 FROM recall_vector v
        WHERE v.tenant = $1 AND v.model = $2 AND v.hash = i.hash)";

impl StoredIndex {
    pub async fn generations(&self, scope: &Scope) -> Result<Vec<Generation>> {
        let read = query(
            "SELECT model, dimension, is_active FROM recall_model WHERE tenant = $1 ORDER BY model",
        );
        let rows = self.database_of(scope).fetch_all(&read.bind(scope.tenant())).await?;
        let decode = |row: &perihelion_database::Row| {
            Ok(Generation {
                model: row.get(0)?,
                dimension: row.get::<i64>(1)? as usize,
                is_active: row.get(2)?,
            })
        };
        rows.iter().map(decode).collect()
    }

    /// Begins the vectors of a model: the tenant's first one is used by searches at once, a further one when it is
    /// whole ([`StoredIndex::finish_generation`]). A repeated call has no effect.
    ///
    /// # Errors
    /// [`Error::Dimension`] when it was begun with another dimension.
    pub async fn begin_generation(
        &self,
        scope: &Scope,
        model: &str,
        dimension: usize,
    ) -> Result<()> {
        let insert = query(
            "INSERT INTO recall_model (tenant, model, dimension, is_active)
             SELECT $1, $2, $3, NOT EXISTS (
                SELECT 1 FROM recall_model WHERE tenant = $1 AND is_active)
             WHERE true ON CONFLICT DO NOTHING",
        );
        let insert = insert.bind(scope.tenant()).bind(model).bind(dimension as i64);
        self.database_of(scope).execute(&insert).await?;
        let known = self.generations(scope).await?;
        match known.iter().find(|one| one.model == model) {
            // Another process began the first one in this moment.
            None => Box::pin(self.begin_generation(scope, model, dimension)).await,
            Some(one) if one.dimension != dimension => Err(Error::Dimension {
                model: model.to_owned(),
                expected: one.dimension,
                found: dimension,
            }),
            Some(_) => Ok(()),
        }
    }

    /// Returns texts of the tenant that have no vector by a model yet, each once.
    pub async fn pending(&self, scope: &Scope, model: &str, limit: usize) -> Result<Vec<Pending>> {
        let sql = format!(
            "SELECT i.hash, min(i.meaning) {WITHOUT} GROUP BY i.hash ORDER BY i.hash LIMIT $3"
        );
        let read = query(AssertSqlSafe(sql)).bind(scope.tenant()).bind(model).bind(limit as i64);
        let rows = self.database_of(scope).fetch_all(&read).await?;
        let decode = |row: &perihelion_database::Row| {
            let hash: String = row.get(0)?;
            let hash = blake3::Hash::from_hex(hash.as_bytes());
            let what = |_| Error::Damaged { kind: "vectors".to_owned(), what: "a hash".to_owned() };
            Ok(Pending { hash: *hash.map_err(what)?.as_bytes(), text: row.get(1)? })
        };
        rows.iter().map(decode).collect()
    }

    /// Keeps vectors of texts that an item still has, or that are claimed; the rest is dropped.
    ///
    /// The first vectors of a model that was never begun begin it.
    ///
    /// # Errors
    /// [`Error::Dimension`] for a vector of another length; then none is stored.
    pub async fn put_vectors(
        &self,
        scope: &Scope,
        model: &str,
        vectors: &[(ContentHash, Vec<f32>)],
    ) -> Result<()> {
        let Some((_, first)) = vectors.first() else { return Ok(()) };
        self.begin_generation(scope, model, first.len()).await?;
        if let Some((_, other)) = vectors.iter().find(|(_, one)| one.len() != first.len()) {
            let expected = first.len();
            let found = other.len();
            return Err(Error::Dimension { model: model.to_owned(), expected, found });
        }
        let with_column = self.pgvector.is_there(&self.database).await?;
        let database = self.database_of(scope);
        let mut transaction = database.begin().await?;
        let mark = query(
            "UPDATE recall_model SET revision = revision + 1 WHERE tenant = $1 AND model = $2",
        );
        transaction.execute(&mark.bind(scope.tenant()).bind(model)).await?;
        for part in parts(vectors) {
            let mut insert = insert_of(transaction.dialect(), part.len(), with_column);
            for (hash, values) in part {
                let unit = vector::unit(values);
                insert = insert.bind(scope.tenant()).bind(model).bind(hex(hash));
                insert = insert.bind(vector::to_bytes(&unit));
                if with_column {
                    insert = insert.bind(Value::Text(pgvector::text_of(&unit)));
                }
            }
            transaction.execute(&insert).await?;
        }
        let hashes = vectors.iter().map(|(hash, _)| hex(hash)).collect();
        // Their items may have been removed while they were asked for.
        vectors::forget_unused(&mut transaction, scope, hashes).await?;
        Ok(transaction.commit().await?)
    }

    /// Switches searches to a model whose vectors are complete, and deletes those of the other models; one transaction.
    ///
    /// # Errors
    /// [`Error::UnknownModel`], [`Error::Incomplete`]; then there is no change.
    pub async fn finish_generation(&self, scope: &Scope, model: &str) -> Result<()> {
        let database = self.database_of(scope);
        let mut transaction = database.begin().await?;
        let mark = query(
            "UPDATE recall_model SET revision = revision + 1 WHERE tenant = $1 AND model = $2",
        );
        if transaction.execute(&mark.bind(scope.tenant()).bind(model)).await? == 0 {
            return Err(Error::UnknownModel(model.to_owned()));
        }
        let count = format!("SELECT count(DISTINCT i.hash) {WITHOUT}");
        let count = query(AssertSqlSafe(count)).bind(scope.tenant()).bind(model);
        let missing = match transaction.fetch_optional(&count).await? {
            Some(row) => row.get::<i64>(0)? as u64,
            None => 0,
        };
        if missing > 0 {
            return Err(Error::Incomplete { model: model.to_owned(), missing });
        }
        for sql in [
            "DELETE FROM recall_vector WHERE tenant = $1 AND model <> $2",
            "DELETE FROM recall_model WHERE tenant = $1 AND model <> $2",
            "UPDATE recall_model SET is_active = true WHERE tenant = $1 AND model = $2",
        ] {
            transaction.execute(&query(sql).bind(scope.tenant()).bind(model)).await?;
        }
        transaction.commit().await?;
        Ok(self.database.scrub().await?)
    }
}

/// Begins the statement that stores a number of vectors, also in the extension's column if it exists.
fn insert_of(dialect: Dialect, rows: usize, with_column: bool) -> Query {
    if with_column {
        with_cast_rows(
            dialect,
            "INSERT INTO recall_vector (tenant, model, hash, body, embedding) VALUES ",
            rows,
            &["", "", "", "", "::vector"],
            " ON CONFLICT (tenant, model, hash)
                DO UPDATE SET body = excluded.body, embedding = excluded.embedding",
        )
    } else {
        with_rows(
            dialect,
            "INSERT INTO recall_vector (tenant, model, hash, body) VALUES ",
            rows,
            4,
            " ON CONFLICT (tenant, model, hash) DO UPDATE SET body = excluded.body",
        )
    }
}
