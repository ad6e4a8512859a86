//! Exact search by meaning: over vectors that are kept in memory while they are current, or in the database.
//!
//! What is small is read at once. What is larger is ranked by the database, where it can ([`super::pgvector`]), until it was asked for
//! often enough to be worth reading; what is larger than all that may be kept, always. Where the database cannot, everything is read.

use perihelion_database::{Database, query};

use super::{
    kept::{Cache, Key, current},
    pgvector::Pgvector,
    space::Space,
};
use crate::{Error, QueryVector, Scope, bm25::first_of, vector};

/// A question by meaning to one space.
pub(super) struct Asked<'a> {
    pub(super) scope: &'a Scope,
    pub(super) space: &'a Space,
    pub(super) model: &'a str,
    /// The question's vector, of length 1.
    pub(super) unit: Vec<f32>,
    /// Numbers that pass the filter, ascending; none when all do.
    pub(super) passing: Option<&'a [u64]>,
    pub(super) most: usize,
}

/// Ranks the items of a space by similarity and returns the best, in order; none when the tenant's searches do not use vectors of
/// that model.
pub(super) async fn best(
    database: &Database,
    (cache, pgvector): (&Cache, &Pgvector),
    (scope, space): (&Scope, &Space),
    wanted: &QueryVector,
    passing: Option<&[u64]>,
    most: usize,
) -> Result<Option<Vec<(u64, f64)>>, Error> {
    let model = wanted.model.as_str();
    let read = query(
        "SELECT dimension, revision FROM recall_model WHERE tenant = $1 AND model = $2 AND is_active",
    );
    let row = database.fetch_optional(&read.bind(scope.tenant()).bind(model)).await?;
    let Some(row) = row else { return Ok(None) };
    let dimension = row.get::<i64>(0)? as usize;
    if dimension != wanted.values.len() {
        return Err(Error::Dimension {
            model: model.to_owned(),
            expected: dimension,
            found: wanted.values.len(),
        });
    }
    let key = Key {
        space: space.id,
        moment: space.moment,
        model: model.to_owned(),
        model_revision: row.get(1)?,
    };
    let unit = vector::unit(&wanted.values);
    let asked = Asked { scope, space, model, unit, passing, most };
    if !cache.is_worth_reading(&key, space, dimension)
        && let Some(ranked) = pgvector.best(database, &asked).await?
    {
        cache.note_ranked(&key, space, dimension);
        return Ok(Some(ranked));
    }
    let vectors = current(database, cache, key, &asked).await?;
    pgvector.fill_some(database, &asked).await;
    Ok(Some(vectors.rank(&asked)))
}

/// Returns how similar two vectors of length 1 are.
pub(super) fn similarity(one: &[f32], other: &[f32]) -> f64 {
    // What differs in the last bits alone is equal.
    (vector::dot(one, other) * 1e6).round() / 1e6
}

/// Returns the most similar ones in order, equal ones by number.
pub(super) fn first(mut ranked: Vec<(u64, f64)>, most: usize) -> Vec<(u64, f64)> {
    first_of(&mut ranked, most, |one, other| other.1.total_cmp(&one.1).then(one.0.cmp(&other.0)));
    ranked
}
