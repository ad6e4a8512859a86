//! Exact search by meaning, over vectors that are kept in memory while they are current.

use std::sync::{Arc, Mutex, PoisonError};

use perihelion_database::{Database, query};

use super::space::Space;
use crate::{Error, QueryVector, Scope, vector};

/// Bytes of vectors that one process keeps: 80,000 of 768 numbers.
const MOST_BYTES: usize = 256 << 20;

/// Vectors of spaces that were searched last.
#[derive(Default)]
pub(super) struct Cache(Mutex<Vec<(Key, Arc<Vectors>)>>);

/// Which vectors, and how old: every change of the space or of the model's vectors is another key.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Key {
    space: i64,
    space_revision: i64,
    model: String,
    model_revision: i64,
}

/// The vectors of a space, one after the other.
struct Vectors {
    dimension: usize,
    numbers: Vec<u64>,
    values: Vec<f32>,
}

/// Ranks the items of a space by similarity, best first; none when the tenant's searches do not use vectors of that model.
pub(super) async fn rank(
    database: &Database,
    cache: &Cache,
    place: (&Scope, &Space),
    wanted: &QueryVector,
    passes: impl Fn(u64) -> bool,
) -> Result<Option<Vec<(u64, f64)>>, Error> {
    let (scope, space) = place;
    let Some(vectors) = current(database, cache, scope, space, &wanted.model).await? else {
        return Ok(None);
    };
    if vectors.dimension != wanted.values.len() {
        return Err(Error::Dimension {
            model: wanted.model.clone(),
            expected: vectors.dimension,
            found: wanted.values.len(),
        });
    }
    let unit = vector::unit(&wanted.values);
    let numbered =
        vectors.numbers.iter().zip(vectors.values.chunks_exact(vectors.dimension.max(1)));
    let similar = numbered
        .filter(|(number, _)| passes(**number))
        // What differs in the last bits alone is equal.
        .map(|(number, values)| (*number, (vector::dot(&unit, values) * 1e6).round() / 1e6));
    let mut ranked: Vec<(u64, f64)> = similar.collect();
    ranked.sort_by(|one, other| other.1.total_cmp(&one.1));
    Ok(Some(ranked))
}

async fn current(
    database: &Database,
    cache: &Cache,
    scope: &Scope,
    space: &Space,
    model: &str,
) -> Result<Option<Arc<Vectors>>, Error> {
    let read = query(
        "SELECT dimension, revision FROM recall_model WHERE tenant = $1 AND model = $2 AND is_active",
    );
    let row = database.fetch_optional(&read.bind(scope.tenant()).bind(model)).await?;
    let Some(row) = row else { return Ok(None) };
    let dimension = row.get::<i64>(0)? as usize;
    let key = Key {
        space: space.id,
        space_revision: space.revision,
        model: model.to_owned(),
        model_revision: row.get(1)?,
    };
    if let Some(vectors) = cache.get(&key) {
        return Ok(Some(vectors));
    }
    let read = query(
        "SELECT i.number, v.body FROM recall_item i
         JOIN recall_vector v ON v.tenant = $1 AND v.model = $2 AND v.hash = i.hash
         WHERE i.space = $3 ORDER BY i.number",
    );
    let read = read.bind(scope.tenant()).bind(model).bind(space.id);
    let mut vectors = Vectors { dimension, numbers: Vec::new(), values: Vec::new() };
    for row in database.fetch_all(&read).await? {
        let values = vector::from_bytes(&row.get::<Vec<u8>>(1)?);
        if values.len() == dimension {
            vectors.numbers.push(row.get::<i64>(0)? as u64);
            vectors.values.extend(values);
        }
    }
    let vectors = Arc::new(vectors);
    cache.keep(key, vectors.clone());
    Ok(Some(vectors))
}

impl Cache {
    fn get(&self, key: &Key) -> Option<Arc<Vectors>> {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let at = kept.iter().position(|(known, _)| known == key)?;
        let found = kept.remove(at);
        let vectors = found.1.clone();
        kept.push(found);
        Some(vectors)
    }

    /// Keeps vectors in place of older ones of their space; what was used longest ago makes room.
    fn keep(&self, key: Key, vectors: Arc<Vectors>) {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        kept.retain(|(known, _)| known.space != key.space || known.model != key.model);
        kept.push((key, vectors));
        let mut bytes: usize = kept.iter().map(|(_, vectors)| vectors.values.len() * 4).sum();
        while bytes > MOST_BYTES && kept.len() > 1 {
            bytes -= kept.remove(0).1.values.len() * 4;
        }
    }
}
