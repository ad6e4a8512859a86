//! Exact search by meaning, over vectors that are kept in memory while they are current.

use std::sync::{Arc, Mutex, PoisonError};

use perihelion_database::{Database, Row, query};
use sqlx::AssertSqlSafe;

use super::space::Space;
use crate::{Error, QueryVector, Scope, bm25::first_of, vector};

/// Bytes of vectors that one process keeps: 80,000 of 768 numbers.
const MOST_BYTES: usize = 256 << 20;

/// Items of a space ($3) of a tenant ($1), with their vectors by a model ($2) where they have one.
const FROM: &str = "SELECT i.number, v.body FROM recall_item i
     LEFT JOIN recall_vector v ON v.tenant = $1 AND v.model = $2 AND v.hash = i.hash
     WHERE i.space = $3";

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

/// The vectors of a space, one after the other, in the order of their numbers.
#[derive(Clone, Default)]
struct Vectors {
    dimension: usize,
    numbers: Vec<u64>,
    values: Vec<f32>,
    /// Items that have no vector by the model yet.
    without: Vec<u64>,
    /// Items from this number on were not looked at.
    next: u64,
}

/// Ranks the items of a space by similarity and returns the best, in order; none when the tenant's searches do not use vectors of
/// that model.
pub(super) async fn best(
    database: &Database,
    cache: &Cache,
    place: (&Scope, &Space),
    wanted: &QueryVector,
    passes: impl Fn(u64) -> bool,
    most: usize,
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
    first_of(&mut ranked, most, |one, other| other.1.total_cmp(&one.1).then(one.0.cmp(&other.0)));
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
    let mut vectors = match cache.take_older(&key, dimension) {
        Some(older) => Arc::unwrap_or_clone(older),
        None => Vectors { dimension, ..Vectors::default() },
    };
    vectors.catch_up(database, scope, space, model).await?;
    let vectors = Arc::new(vectors);
    cache.keep(key, vectors.clone());
    Ok(Some(vectors))
}

impl Vectors {
    /// Reads what is new since the last look, and drops what is gone: in time proportional to the change but for a look at the
    /// numbers where something is gone.
    async fn catch_up(
        &mut self,
        database: &Database,
        scope: &Scope,
        space: &Space,
        model: &str,
    ) -> Result<(), Error> {
        let waiting = std::mem::take(&mut self.without);
        if !waiting.is_empty() {
            let each = database.dialect().each("$4");
            let sql = format!("{FROM} AND i.number IN {each} ORDER BY i.number");
            let waiting: Vec<i64> = waiting.iter().map(|number| *number as i64).collect();
            let read = query(AssertSqlSafe(sql)).bind(scope.tenant()).bind(model).bind(space.id);
            let before = self.numbers.len();
            self.take(&database.fetch_all(&read.bind(waiting)).await?)?;
            if self.numbers.len() > before {
                self.put_in_order();
            }
        }
        let read = query(AssertSqlSafe(format!("{FROM} AND i.number >= $4 ORDER BY i.number")));
        let read = read.bind(scope.tenant()).bind(model).bind(space.id).bind(self.next as i64);
        self.take(&database.fetch_all(&read).await?)?;
        let known = (self.numbers.len() + self.without.len()) as u64;
        if known != space.statistics.items {
            let read = query("SELECT number FROM recall_item WHERE space = $1 ORDER BY number");
            let rows = database.fetch_all(&read.bind(space.id)).await?;
            let there = rows.iter().map(|row| Ok(row.get::<i64>(0)? as u64));
            self.retain(&there.collect::<Result<Vec<u64>, Error>>()?);
        }
        Ok(())
    }

    fn take(&mut self, rows: &[Row]) -> Result<(), Error> {
        for row in rows {
            let number = row.get::<i64>(0)? as u64;
            self.next = self.next.max(number + 1);
            let values = row.get::<Option<Vec<u8>>>(1)?.map(|body| vector::from_bytes(&body));
            match values.filter(|values| values.len() == self.dimension) {
                Some(values) => {
                    self.numbers.push(number);
                    self.values.extend(values);
                }
                None => self.without.push(number),
            }
        }
        Ok(())
    }

    /// Puts vectors that came later than those of newer items where they belong.
    fn put_in_order(&mut self) {
        let mut order: Vec<usize> = (0..self.numbers.len()).collect();
        order.sort_by_key(|at| self.numbers[*at]);
        let size = self.dimension;
        self.values =
            order.iter().flat_map(|at| &self.values[at * size..(at + 1) * size]).copied().collect();
        self.numbers.sort_unstable();
    }

    /// Drops all items but these, which ascend.
    fn retain(&mut self, there: &[u64]) {
        let mut kept = 0;
        for at in 0..self.numbers.len() {
            if there.binary_search(&self.numbers[at]).is_err() {
                continue;
            }
            if kept < at {
                self.numbers[kept] = self.numbers[at];
                let from = at * self.dimension;
                self.values.copy_within(from..from + self.dimension, kept * self.dimension);
            }
            kept += 1;
        }
        self.numbers.truncate(kept);
        self.values.truncate(kept * self.dimension);
        self.without.retain(|number| there.binary_search(number).is_ok());
    }
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

    /// Takes out what was kept of the same space and model at another time.
    fn take_older(&self, key: &Key, dimension: usize) -> Option<Arc<Vectors>> {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let at = kept.iter().position(|(known, vectors)| {
            known.space == key.space
                && known.model == key.model
                && known.space_revision <= key.space_revision
                && vectors.dimension == dimension
        })?;
        Some(kept.remove(at).1)
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
